"""Check a plan against the library as it is under the lock, and turn it into documents and changes of files.

In: a plan, the view that it was made from, and the view of now. Out: a verdict; then files and a receipt.
Promise: a line or record that changed in between is never overwritten. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from infinimem import law, tokens
from infinimem.grounding.sentences import is_repetition, source_of, unsupported
from infinimem.law import Verdict
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.markdown.signature import format_entry, format_seqs, parse_seqs
from infinimem.model import CURRENT, Derived, Move, NewEntry, Plan, Reason, Receipt, ReceiptRow
from infinimem.store.commit import FileChange, Moves
from infinimem.store.files import digest
from infinimem.store.line_map import reverse_diff
from infinimem.store.lines import ID, aliases_of, fold
from infinimem.store.receipts import format_receipt, last_forget, with_suffix
from infinimem.store.spec import ARCHIVE, EVIDENCE, HIDDEN, INBOX, MEMORIES, TOPICS, WAITING
from infinimem.store.state import REFUSED, drawn_list
from infinimem.store.view import View, archive_of, whole
from infinimem.terms import DAYS, MONTHS

REVIEW = "review"
"""What receipts call that which a person approved."""
MEMORY = "memory"
"""What they call a change of a model's own files."""
_WRITES = {REVIEW: (TOPICS, CURRENT, INBOX, EVIDENCE, *HIDDEN), "reimport": (TOPICS,), MEMORY: (MEMORIES,)}
"""Where plans may write that are no strategy's, whoever keeps the library just now."""
SEE_ALSO = "see_also"
MOST = 3
"""Links of a document."""
COMMON, SHARE = 8, 3
"""A name in more topics than this, or than one of so many, tells nothing of one of them."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÖØ-Þ][\w-]{2,}")
"""What is written with a capital inside a sentence."""
_NO_NAMES = frozenset((*MONTHS, *(f"{day}{end}" for day in DAYS for end in ("", "s"))))
_LINK = re.compile(r"\[\[([^\[\]|#]+)")

HEADER_KEYS = frozenset(
    {"id", "title", "summary", "token_count", "created_time", "update_log", "aux", "aliases", SEE_ALSO}
)
"""The keys of a topic document's header that the program writes, and `TYPE`; all others are a person's."""
TYPE = ("type", "topic")
"""By which other programs tell a topic document from pages of other kinds."""

LOG_LENGTH = 20
"""Entries of a document's update_log; the journal has all."""


def verified(plan: Plan, base: View | None, now: View, approved: Collection[int] = ()) -> Verdict:
    """Ask the law about a plan that was made from `base`, as the library is now; `approved` as law.verify."""
    if base is not None:
        if stale := _overtaken(plan, base, now):
            return Verdict(plan, (), stale)
        plan = _current(plan, base, now)
    roots = _WRITES.get(plan.op, now.spec.writes)
    files = (now.spec.texts,) if now.spec.has_entries and plan.op not in _WRITES else None
    return law.verify(plan, now.entry, roots, approved, same=is_repetition, files=files)


def not_yet_drawn(adds: Sequence[NewEntry], view: View) -> tuple[NewEntry, ...]:
    """Return the new entries but those that another process has drawn from the same turns meanwhile."""
    pending = {place.seq for place in view.uncited({seq for add in adds for seq in add.origin})}
    drawn = ((add, _turns(add.origin, view)) for add in adds)
    return tuple(add for add, turns in drawn if not turns or not pending.isdisjoint(turns))


def awaiting(plan: Plan, view: View) -> Plan:
    """Return a plan whose new entries stand in INBOX if a turn of theirs awaits approval, as with `approve`
    every turn does from then on."""
    cited = {seq for add in plan.adds for seq in add.origin}
    turns = {seq: place.doc_id for seq in _turns(cited, view) if (place := view.entry(seq))}
    waiting = {seq for seq, doc_id in turns.items() if doc_id.startswith(WAITING)}
    if view.settings.write.approve:
        homes = {doc_id: home_of(view, doc_id, WAITING) for doc_id in {*turns.values()}}
        moves = [Move(seq, homes[turns[seq]], why="waits") for seq in sorted(turns.keys() - waiting)]
        plan, waiting = replace(plan, moves=(*plan.moves, *moves)), {*turns}
    adds = [add if waiting.isdisjoint(add.origin) else replace(add, to=INBOX) for add in plan.adds]
    return replace(plan, adds=tuple(adds))


def home_of(view: View, doc_id: str, folder: str) -> str:
    """Return the document of the same session, or day, in another folder of turns."""
    document, home = view.document(doc_id), folder + doc_id.rpartition("/")[2]
    session = document.header.values.get("session")
    if home in view and view.document(home).header.values.get("session") != session:
        home = view.lines.session(str(session), folder) or f"{home}-{document.entries[0].seq}"
    return home


def lists_after(plan: Plan, view: View) -> dict[str, Set[int]]:
    """Return the turns that a plan drew from, and those of which nothing was accepted, by list."""
    turns: Set[int] = frozenset()
    is_draft = plan.op == "append" and view.spec.has_entries
    if is_draft:
        turns = {*plan.empty, *plan.refused, *(seq for add in plan.adds for seq in add.origin)}
    elif view.spec.sparse and plan.op != "rebuild":
        turns = {*plan.empty}
    return {drawn_list(view.spec): _turns(turns, view), REFUSED: {*plan.refused} if is_draft else frozenset()}


def _turns(seqs: Collection[int], view: View) -> set[int]:
    return {seq for seq in seqs if (place := view.entry(seq)) and place.doc_id.startswith(EVIDENCE)}


def _current(plan: Plan, base: View, now: View) -> Plan:
    stood = {place.seq: place.doc_id for move in plan.moves if (place := base.entry(move.seq))}
    left = [seq for seq, was in sorted(stood.items()) if not (at := now.entry(seq)) or at.doc_id != was]
    if not left:
        return plan
    note = f"left out, moved or deleted meanwhile: {format_seqs(left)}"
    moves = tuple(move for move in plan.moves if move.seq not in left)
    return replace(plan, moves=moves, notes=(*plan.notes, note))


def _overtaken(plan: Plan, base: View, now: View) -> tuple[Reason, ...]:
    if last_forget(base) != last_forget(now):
        return (Reason("FORGOTTEN", (), "lines were forgotten since, and its words may quote them"),)

    def data(view: View, doc_id: str) -> bytes | None:
        return view.document(doc_id).to_bytes() if doc_id in view else None

    changed = (put.doc_id for put in plan.records if data(base, put.doc_id) != data(now, put.doc_id))
    return tuple(Reason("STALE_RECORD", (), doc_id) for doc_id in changed)


def name_receipt(head: Receipt, plan: Plan, view: View, first_seq: int) -> Receipt:
    """Return the receipt of a plan under its name, which documents tell; seqs as for `render`."""
    places = [place for move in plan.moves if (place := view.entry(move.seq))]
    cited = sorted({seq for add in plan.adds for seq in add.origin})  # each once: a long turn has many
    origins = [place.entry.line for seq in cited if (place := view.entry(seq))]
    changed = {a.to for a in plan.adds} - {CURRENT}  # most are appended there, and leave no receipt
    changed |= {p.doc_id for p in places} | {m.to for m in plan.moves}
    changed |= {d.doc_id for d in plan.derived} | {p.doc_id for p in plan.records}
    before = [digest(view.document(doc_id).to_bytes()) for doc_id in sorted(changed) if doc_id in view]
    return with_suffix(head, before, first_seq, origins, plan.adds, plan.moves, plan.derived, plan.records)


def receipt_and_changes(
    done: Rendered, view: View, head: Receipt, notes: Sequence[str]
) -> tuple[Receipt, list[FileChange]]:
    """Return the receipt, begun with `head`, and the files that change, that of the receipt last."""
    old = {doc_id: view.document(doc_id) if doc_id in view else None for doc_id in done.documents}
    signs = head.op in ("stamp", "undate", "edit")  # where the lines stand
    changes, files = [], []
    for doc_id, new in done.documents.items():
        moves = Moves() if signs else Moves.between(old[doc_id], new)
        before, after = (one.to_bytes() if one else None for one in (old[doc_id], new))
        changes.append(FileChange(f"{doc_id}.md", before, after, moves))
        was, now = digest(before), digest(after)
        files.append((done.names.get(doc_id, doc_id), done.sums.get(was, was), now))
    receipt = replace(
        head if head.suffix else with_suffix(head, done.rows, files, done.quoted),
        rows=tuple(done.rows),
        quoted=tuple(done.quoted),
        files=tuple(files),
        notes=tuple(one_line(clean_text(note)) for note in notes),
    )
    way = done.reverse_diffs
    if way is None:
        way = [
            row
            for doc_id in sorted(old)
            for row in reverse_diff(doc_id, old[doc_id], done.documents[doc_id], done.removed)
        ]
    return receipt, [*changes, FileChange(f"{receipt.id}.md", None, format_receipt(receipt, way))]


def violations(view: View, done: Rendered) -> list[Reason]:
    before, after = done.sides(view)
    return law.conserved(before, after, done.added, done.removed)


def name_clashes(view: View, done: Rendered) -> list[Reason]:
    """Return new documents whose names some file systems take for that of another."""
    new = [doc_id for doc_id, document in done.documents.items() if document and doc_id not in view]
    counts = Counter(map(fold, new))
    return [
        Reason("BAD_TARGET", (), f"{doc_id} is another's name")
        for doc_id in new
        if view.lines.named(ID, fold(doc_id)) or counts[fold(doc_id)] > 1
    ]


# ── which lines stand where afterwards ──────────────────────────────────────────────────────────
# Lines are taken out and put in whole. What is written new is the lines of `adds`, stamps on what a person
# typed, headings, and the program's own header keys.


@dataclass
class Rendered:
    """The documents that change (None: deleted), the rows of the receipt, and what the law is told.

    `quoted` lines read so before a person changed them; `names` and `sums` stand for what the receipt must
    not tell, `reverse_diffs` for those of the very bytes before.
    """

    documents: dict[str, Document | None] = field(default_factory=dict)
    rows: list[ReceiptRow] = field(default_factory=list)
    added: list[law.Line] = field(default_factory=list)
    removed: list[law.Line] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)
    reverse_diffs: list[str] | None = None

    def sides(self, view: View) -> list[Counter[law.Line]]:
        """Return the lines of these documents, before and after."""
        before = [view.document(doc_id) for doc_id in self.documents if doc_id in view]
        after = [one for one in self.documents.values() if one]
        return [
            Counter((place.seq, place.entry.line) for one in some for place in one.entries)
            for some in (before, after)
        ]

    def permit(self, view: View) -> None:
        """Tell the law that every line was meant to come and go that does."""
        before, after = self.sides(view)
        self.removed += sorted((before - after).elements())
        self.added += sorted((after - before).elements())


def render(plan: Plan, view: View, first_seq: int, receipt: Receipt) -> Rendered:
    """Apply a plan that `law.verify` passed, with seqs for new lines from the first on."""
    return _PlanRenderer(view, receipt).render(plan, first_seq)


def by_heading(adds: Iterable[NewEntry], first_seq: int, added: Iterable[law.Line]) -> str:
    """Return new lines as a buffer's end takes them: those without a heading, then each heading's."""
    headings = {seq: add.heading for seq, add in enumerate(adds, first_seq)}
    sections: dict[str, list[str]] = {"": []}
    for seq, line in added:
        heading = headings.get(seq, "")
        sections.setdefault(heading, [f"# {heading}"]).append(line)
    return "".join(f"{line}\n" for lines in sections.values() for line in lines)


class _PlanRenderer:
    def __init__(self, view: View, receipt: Receipt) -> None:
        self._view = view
        self._receipt = receipt
        self._result = Rendered()
        self._documents = self._result.documents
        self._gained: Counter[str] = Counter()
        self._archived: Counter[str] = Counter()

    def render(self, plan: Plan, first_seq: int) -> Rendered:
        arrivals: dict[str, dict[str, list[str]]] = {}
        leaving: dict[str, set[int]] = {}
        takers: dict[str, Counter[str]] = {}
        turns: dict[str, list[law.Line]] = {}

        for seq, add in enumerate(plan.adds, first_seq):
            line = self._line(seq, add)
            arrivals.setdefault(add.to, {}).setdefault(add.heading, []).append(line)
            self._gained[add.to] += 1
            self._result.added.append((seq, line))
            self._result.rows.append(ReceiptRow(seq, "-", add.to, "added"))
        for move in plan.moves:
            place = self._view.entry(move.seq)
            assert place is not None
            target, heading = move.to, move.heading
            related = {"superseded": f"superseded by {move.by}", "duplicate": f"duplicate of {move.by}"}
            why = related.get(move.why, move.why)
            if move.archives:
                target = archive_of(move.to)
                heading = f"{why.capitalize()} (receipt {self._receipt.label})"
                self._archived[move.to] += 1
            elif target.startswith(HIDDEN[1]):
                heading = f"{why.capitalize()} (receipt {self._receipt.label})"
            elif place.doc_id != move.to:
                self._gained[move.to] += 1
            leaving.setdefault(place.doc_id, set()).add(move.seq)
            takers.setdefault(place.doc_id, Counter())[move.to] += 1
            if target.startswith(EVIDENCE):
                turns.setdefault(target, []).append((move.seq, place.entry.line))
            else:
                arrivals.setdefault(target, {}).setdefault(heading, []).append(place.entry.line)
            self._result.rows.append(ReceiptRow(move.seq, place.doc_id, target, why))

        for doc_id, seqs in leaving.items():
            self._documents[doc_id] = self._get(doc_id).without(seqs)
        for doc_id, sections in arrivals.items():
            self._put(doc_id, sections)
        for doc_id, lines in turns.items():
            self._put_turns(doc_id, lines)
        for doc_id in leaving:
            if doc_id.startswith(EVIDENCE) and not self._get(doc_id).body.strip():
                self._documents[doc_id] = None
        self._drop_emptied(takers)
        self._write_headers(plan)
        for put in plan.records:
            there = self._view.document(put.doc_id) if put.doc_id in self._view else None
            data = None if put.text is None else put.text.encode("utf-8", "surrogatepass")
            self._documents[put.doc_id] = new = None if data is None else Document.parse(put.doc_id, data)
            if new == there:
                del self._documents[put.doc_id]
        return self._result

    def _line(self, seq: int, add: NewEntry) -> str:
        origins = [place.entry for place in map(self._view.entry, add.origin) if place is not None]
        fields = {}
        speakers = {entry.fields.get("speaker") for entry in origins}
        if len(speakers) == 1 and (speaker := speakers.pop()):
            fields["speaker"] = speaker
        refers = one_line(clean_text(add.refers or ""))
        told = {"by": add.by, "refers": refers, "when": add.when, "label": add.label}
        time = law.latest(entry.time for entry in origins)
        if time is None:  # then it is dated by its recording
            told["observed"] = law.latest(entry.fields.get("observed") for entry in origins)
        fields |= {key: value for key, value in told.items() if value}
        return format_entry(
            seq,
            one_line(clean_text(add.text)),
            time=time,
            source=source_of(add.text, origins),
            origin=tuple(sorted(add.origin)),
            fields=fields,
            with_block_id=self._view.settings.block_ids,
        )

    def _get(self, doc_id: str) -> Document:
        edited = self._documents.get(doc_id)
        if edited is not None:
            return edited
        return self._view.document(doc_id) if doc_id in self._view else Document.empty(doc_id)

    def _put(self, doc_id: str, sections: Mapping[str, Sequence[str]]) -> None:
        document = self._get(doc_id)
        if doc_id.startswith(ARCHIVE):
            if not document.header.end:
                document = headed(document, {"id": quote(doc_id), "kind": "archive"})
            sections = {
                "": [line for heading in sections for line in ("", f"## {heading}", *sections[heading])]
            }
        for heading, lines in sections.items():
            document = document.insert(lines, heading)
        self._documents[doc_id] = document

    def _put_turns(self, doc_id: str, lines: Sequence[law.Line]) -> None:
        document = self._get(doc_id)
        if not document.lines and (place := self._view.entry(lines[0][0])):  # it begins as that of before
            old = self._view.document(place.doc_id)
            head = replace(old, id=doc_id, lines=old.lines[: old.header.end], final_newline=True)
            document = headed(head, {"id": quote(doc_id)})
        later = [(p.seq, p.entry.line) for p in document.entries if p.seq > min(lines)[0]]
        ordered = [line for _, line in sorted([*lines, *later])]
        self._documents[doc_id] = document.without({seq for seq, _ in later}).insert(ordered)

    def _drop_emptied(self, takers: Mapping[str, Counter[str]]) -> None:
        documents = self._documents
        emptied = {
            doc_id: document
            for doc_id in takers
            if (document := documents[doc_id]) and doc_id.startswith(TOPICS) and is_emptied(document)
        }
        documents.update(dict.fromkeys(emptied))
        for doc_id, document in emptied.items():
            counts = takers[doc_id]
            if standing := [taker for taker in counts if documents.get(taker, taker in self._view)]:
                successor = min(standing, key=lambda taker: (-counts[taker], taker))
                names = [doc_id.rsplit("/", 1)[-1], *aliases_of(document)]
                documents[successor] = also_called(self._get(successor), names)

    def _write_headers(self, plan: Plan) -> None:
        derived = {item.doc_id: item for item in plan.derived}
        there = {doc_id for doc_id in derived if doc_id in self._view} | self._documents.keys()
        if plan.op == "consolidate":
            there |= {
                doc_id
                for doc_id in self._view.below(TOPICS)
                if former_name(self._view.document(doc_id), self._view)
            }
        for doc_id in sorted(there):
            if self._documents.get(doc_id, ...) is None:
                continue
            document = self._get(doc_id)
            if doc_id == INBOX:
                self._documents[doc_id] = headed(document, {"id": INBOX})
            elif doc_id == CURRENT:
                epoch = self._view.epoch + (plan.op == "consolidate")
                self._documents[doc_id] = headed(document, {"id": CURRENT, "current_epoch": str(epoch)})
            elif doc_id.startswith(TOPICS):
                item = derived.get(doc_id) or Derived(doc_id, "", ())
                self._documents[doc_id] = self._topic(document, item, plan.op)
        self._link(doc_id for doc_id in there if doc_id.startswith(TOPICS))

    def _link(self, written: Iterable[str]) -> None:
        changed = {doc_id: new for doc_id, new in self._documents.items() if doc_id.startswith(TOPICS)}
        if not changed:
            return
        topics = _renamed(self._view.derived(topic_names), changed)
        few, sharing = min(COMMON, max(2, len(topics) // SHARE)), dict[str, set[str]]()
        for name, doc_id in ((name, doc_id) for doc_id, topic in topics.items() for name in topic.names):
            sharing.setdefault(name, set()).add(doc_id)
        for doc_id in sorted(doc_id for doc_id in written if changed.get(doc_id)):
            shared = Counter[str]()  # the fewer topics have a name, the more it counts
            for name in sorted(topics[doc_id].names):
                others = sharing[name] - {doc_id}
                if 0 < len(others) < few:
                    shared.update({other: 1 / len(others) for other in others})
            best = sorted(shared, key=lambda other: (-shared[other], other))[:MOST]
            self._documents[doc_id] = headed(self._get(doc_id), _see_also(best))

    def _topic(self, document: Document, fresh: Derived, op: str) -> Document:
        new = document.id not in self._view
        log = document.header.values.get("update_log", ())
        rows = [row for row in log if isinstance(row, dict)] if isinstance(log, list) else []
        rows.append(
            {
                "time": self._receipt.time,
                "op": "create" if new else "update" if op == "consolidate" else op,
                "receipt": self._receipt.label,
                "added": str(self._gained[document.id]),
                "archived": str(self._archived[document.id]),
            }
        )
        facts = [place.entry for place in document.entries]
        said = [f"{entry.fields.get('speaker', '')} {entry.time or ''} {entry.text}" for entry in facts]
        summary = fresh.summary or document.summary or _title(document.id)
        has_one = document.summary not in ("", _title(document.id))
        about = described(document) if has_one and not fresh.summary else ()
        aux = f"from: {format_seqs(about or (entry.seq for entry in facts))}"
        if unsupported(summary, said):
            aux += ", unverified: true"
        header: dict[str, str | None] = {
            "id": quote(document.id),
            **(dict([TYPE]) if TYPE[0] not in document.header.values else {}),
            **({"title": quote(title)} if (title := one_line(clean_text(fresh.title))) else {}),
            "summary": quote(one_line(clean_text(summary))),
            "token_count": str(tokens.count(document.body)),
        }
        if "created_time" not in document.header.values:
            header["created_time"] = self._receipt.time
        rows = [
            {key: one if (number := whole(one)) is None else number for key, one in row.items()}
            for row in rows[-LOG_LENGTH:]
        ]
        header["update_log"] = "".join(f"\n  - {flow(row)}" for row in rows)
        header["aux"] = f"{{{aux}}}"
        if former := former_name(document, self._view):
            document = also_called(document, [former])
        return headed(document, header)


def foreign_keys(document: Document) -> set[str]:
    """Return the keys of its header that a person gave it."""
    return {
        key
        for key, value in document.header.values.items()
        if key not in HEADER_KEYS and (key, value) != TYPE
    }


def is_emptied(document: Document, keys: Collection[str] = ()) -> bool:
    """Return whether nothing of a person's or of the memory is left in it, but these header keys and ours."""
    holds = document.entries or document.unsigned or document.has_prose
    head = document.lines[: document.header.end]
    return not (holds or foreign_keys(document) - {*keys} or any(line.lstrip()[:1] == "#" for line in head))


def described(document: Document) -> tuple[int, ...]:
    """Return the seqs that its summary, or a text, says it describes; none if it does not say."""
    aux = document.header.values.get("aux")
    try:
        return parse_seqs(str(aux["from"] if isinstance(aux, dict) else document.header.values["from"]))
    except (KeyError, ValueError):
        return ()


def headed(document: Document, changes: Mapping[str, str | None]) -> Document:
    """Return the document with header keys set; unchanged if its header has no room or cannot be read."""
    try:
        return document.with_header(changes) if changes else document
    except ValueError:
        return document


def former_name(document: Document, view: View) -> str | None:
    """Return the slug that a topic had before a person renamed its file; None if nobody did."""
    named = document.header.values.get("id")
    is_former = isinstance(named, str) and named.startswith(TOPICS) and named not in view
    return str(named).rsplit("/", 1)[-1] if is_former else None


def also_called(document: Document, names: Iterable[str]) -> Document:
    kept = dict.fromkeys([*aliases_of(document), *names])
    return headed(document, {"aliases": flow(list(kept))})


def _title(doc_id: str) -> str:
    return doc_id.rsplit("/", 1)[-1].replace("-", " ")


# ── which topics share names ────────────────────────────────────────────────────────────────────
# A link of `see_also` is written with the document that it stands in, never by itself.


class TopicNames(NamedTuple):
    """The names in a topic's entries, and the ids of the topics that its header links to."""

    names: frozenset[str]
    links: list[str]


def topic_names(
    view: View, before: Mapping[str, TopicNames] | None, changed: Collection[str] | None
) -> Mapping[str, TopicNames]:
    """Return what each topic of a snapshot names; for `View.derived`."""
    topics = view.below(TOPICS) if changed is None else (one for one in changed if one.startswith(TOPICS))
    return _renamed(before or {}, {one: view.document(one) if one in view else None for one in topics})


def _renamed(
    before: Mapping[str, TopicNames], changed: Mapping[str, Document | None]
) -> Mapping[str, TopicNames]:
    now = {doc_id: names for doc_id, names in before.items() if doc_id not in changed}
    for doc_id, document in changed.items():
        if document:
            names = {name for one in document.entries for name in _NAME.findall(one.entry.text)}
            now[doc_id] = TopicNames(frozenset(names - _NO_NAMES), links_of(document))
    return now


def links_of(document: Document) -> list[str]:
    """Return the ids of the topics that a header links to."""
    listed = document.header.values.get(SEE_ALSO)
    matches = (_LINK.match(str(link)) for link in (listed if isinstance(listed, list) else ()))
    return [match[1] for match in matches if match]


def dangling(view: View, documents: Mapping[str, Document | None]) -> dict[str, Document]:
    """Return topics whose links lead to what is gone once these documents read so, without those links."""
    changed = {doc_id: new for doc_id, new in documents.items() if doc_id.startswith(TOPICS)}
    topics = _renamed(view.derived(topic_names), changed)
    mended: dict[str, Document] = {}
    for doc_id, (_, links) in topics.items():
        if not topics.keys() >= set(links):
            document = changed.get(doc_id) or view.document(doc_id)
            with suppress(ValueError):  # a header that has no room, or cannot be read, is a person's
                mended[doc_id] = document.with_header(_see_also(link for link in links if link in topics))
    return mended


def _see_also(topics: Iterable[str]) -> dict[str, str | None]:
    return {SEE_ALSO: flow(links) if (links := [f"[[{topic}]]" for topic in topics]) else None}
