"""RewriteDoc as in the paper: a document that changed is told anew in a model's own words, beside its lines.

The text is a record in topics.free/, derived and made anew at will: no line of a topic comes of it. Where the
document only grew, the model is shown its text and the lines that are new, as in the paper; else all lines. A
reply that cannot be used leaves the text as it was, which is not current then: readers show the lines.

Source: Infini Memory, section 3.3 and prompt D.
"""

from __future__ import annotations

from contextlib import suppress

from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import Plan, Put
from infinimem.store.spec import TOPICS
from infinimem.store.view import View
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.documents import TOGETHER, Maintenance, may_change
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import TELL
from infinimem.strategies.infini.topics import Account
from infinimem.strategies.readers.shown import current_text, digest, text_id


def retell(view: View, asker: Account) -> Maintenance:
    """Plans that tell documents whose text is not current, and delete texts of documents that are gone."""
    limit = view.settings.of(InfiniSettings).markdown_length
    live = {text_id(view, doc_id) for doc_id in view.below(TOPICS)}
    gone = [Put(name, None) for name in view.below(view.spec.texts) if name not in live]
    due = [
        row.id
        for row in view.catalog(folder=TOPICS)
        if row.tokens <= limit and may_change(row.id, view) and current_text(view, row.id) is None
    ]
    while due or gone:
        texts = {text_id(view, one): _told(view.document(one), view, asker) for one in due[:TOGETHER]}
        puts = [*gone, *(Put(name, text) for name, text in texts.items() if text)]
        view = (yield Plan("retell", records=tuple(puts))).view
        due, gone = due[TOGETHER:], []
    return view


def _told(document: Document, view: View, asker: Account) -> str | None:
    """A document's text anew; None if there is no usable reply."""
    entries = {place.seq: place.entry for place in document.entries}
    name, known = text_id(view, document.id), set[int]()
    if name in view:
        with suppress(ValueError):  # whoever edited it
            known = set(parse_seqs(str(view.document(name).header.values.get("from"))))
    grew = bool(known) and known < entries.keys()
    fresh = [of.fact(entry) for seq, entry in entries.items() if not (grew and seq in known)]
    text = view.document(name).body.strip() if grew else ""
    asked = {"title": of.title_of(document.id, view), "text": text, "facts": fresh}
    data, wrong = asker.ask_checked(TELL, asked, lambda _: ())
    lines, cited, heading = list[str](), set[int](), ""
    for item in data["sentences"] if data else ():
        # none can be taken for an entry, a heading or a list of seqs
        said = " ".join(one_line(clean_text(item["text"])).split()).lstrip(" >#-<").rstrip(" {}")
        title, seqs = of.clean_title(item.get("heading") or ""), of.seqs_of(item["from"], entries)
        if said and title and title != heading:
            heading = title
            lines.append(f"# {heading}")
        if said:
            cited.update(seqs)
            named = ", ".join(map(str, dict.fromkeys(seqs)))
            lines.append(f"- {said} {{{named}}}" if named else f"- {said}")
    if not lines:
        asker.note(f"text of {document.id}: {wrong[0] if wrong else 'EMPTY'}; its lines are shown")
        return None
    if left := sorted(entries.keys() - cited):
        asker.note(f"text of {document.id}: names no line {format_seqs(left)}")
    head = [f"id: {quote(name)}", "kind: text", f"digest: {digest(document)}"]
    return "\n".join(["---", *head, f"from: {quote(format_seqs(sorted(entries)))}", "---", *lines, ""])
