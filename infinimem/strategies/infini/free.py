"""RewriteDoc as in the paper: a document that changed is told anew in a model's own words, beside its lines.

The text is a record in topics.free/, derived and made anew at will: no line of a topic comes of it. Where the
document only grew, the model is shown its text and the lines that are new, as in the paper; else all lines. A
reply that cannot be used leaves the text as it was, which is not current then: readers show the lines.

Source: Infini Memory, section 3.3 and prompt D.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import Entry, Plan, Put
from infinimem.store.spec import TOPICS
from infinimem.store.view import View
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.documents import TOGETHER, Maintenance, may_change
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import TELL
from infinimem.strategies.infini.topics import Account
from infinimem.strategies.readers.shown import current_text, digest, text_id
from infinimem.strategies.records.asking import Data

_ITEM = re.compile(r"- (.*?)(?: \{([0-9]+(?:, [0-9]+)*)\})?\Z")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text: its section, and the lines that it tells, where the model named them."""

    heading: str
    text: str
    seqs: tuple[int, ...]

    @property
    def shown(self) -> dict[str, object]:
        """As the task is told it, whose reply has the same form."""
        ids = [str(seq) for seq in self.seqs]
        told = [f"{', '.join(ids)}: {self.text} (# {self.heading})"]
        return {"heading": self.heading, "text": self.text, "from": ids, "told": told}


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
    name = text_id(view, document.id)
    old = view.document(name) if name in view else Document.empty(name)
    known = _told_of(old)
    grew = known and known <= entries.keys() and len(known) < len(entries)
    text = _sentences(old) if grew else []
    fresh = [of.fact(entry) for seq, entry in entries.items() if not (grew and seq in known)]
    title = of.title_of(document.id, view)
    asked = {"title": title, "text": [one.shown for one in text], "facts": fresh}
    data, wrong = asker.ask_checked(TELL, asked, lambda _: ())
    sentences = list(_read(data, entries)) if data else []
    if not sentences:
        asker.note(f"text of {document.id}: {wrong[0] if wrong else 'EMPTY'}; its lines are shown")
        return None
    if left := sorted(entries.keys() - {seq for one in sentences for seq in one.seqs}):
        asker.note(f"text of {document.id}: names no line {format_seqs(left)}")
    return _written(document, name, sentences)


def _told_of(text: Document) -> set[int]:
    """The lines that a text was written of."""
    try:
        return set(parse_seqs(str(text.header.values.get("from", ""))))
    except ValueError:
        return set()


def _read(data: Data, entries: Mapping[int, Entry]) -> Iterable[Sentence]:
    """The sentences of a reply; none can be taken for an entry, a heading or a list of seqs."""
    heading = ""
    for item in data["sentences"]:
        heading = of.clean_title(item.get("heading") or "") or heading
        text = " ".join(one_line(clean_text(item["text"])).split()).lstrip(" >#-<").rstrip(" {}")
        if text:
            yield Sentence(heading, text, tuple(dict.fromkeys(of.seqs_of(item["from"], entries))))


def _sentences(text: Document) -> list[Sentence]:
    """The sentences of a text as it stands."""
    found = []
    for number in range(text.header.end + 1, len(text.lines) + 1):
        if item := _ITEM.match(text.text_line(number)):
            headings = text.path_at(number)
            seqs = tuple(map(int, item[2].split(", "))) if item[2] else ()
            found.append(Sentence(headings[-1] if headings else "", item[1], seqs))
    return found


def _written(document: Document, name: str, sentences: Sequence[Sentence]) -> str:
    seqs = format_seqs(sorted(place.seq for place in document.entries))
    lines = [
        "---",
        f"id: {quote(name)}",
        "kind: text",
        f"digest: {digest(document)}",
        f"from: {quote(seqs)}",
        "---",
    ]
    heading = ""
    for one in sentences:
        if one.heading != heading:
            heading = one.heading
            lines.append(f"# {heading}")
        named = f" {{{', '.join(map(str, one.seqs))}}}" if one.seqs else ""
        lines.append(f"- {one.text}{named}")
    return "\n".join([*lines, ""])
