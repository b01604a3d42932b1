"""Where each line came from, as the files and the receipts tell it, by rows of the index that point at them.

    trace      seq, line, document, start: what its kind says, below
    mention    key of what a receipt or a record names (`_key`), document; of a file its checksums

A document that changed is taken in when somebody asks next: who writes pays nothing, and who asks reads no
receipts but those that it shows. Rows hold no text. Receipts may be missing or damaged: then there is
less to tell. history.py tells it as the story of a line, and line by line of a document.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from infinimem.markdown.document import Document
from infinimem.model import BUFFERS, Entry, Located, Receipt, ReceiptRow
from infinimem.spec import folders
from infinimem.store.index import PORTION
from infinimem.store.lines import STEM, Lines, evidence_of, fold, sources_of, stem, turns_behind
from infinimem.store.receipts import number_of, parse_receipt, quoted, receipt_ids, reverse_diffs
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, TOPICS
from infinimem.store.view import View

REPLACED = ("superseded by", "duplicate of", "rewritten as")
"""Why a line is in the archive: another one, named after these words, stands for it."""

_BY = re.compile(rf"({'|'.join(REPLACED)}) ([1-9][0-9]{{0,17}})\b", re.IGNORECASE)
_BRINGS = ("added", "stamped", "renumbered")

_JOINED = "join document d on d.id = doc"

_ROW = "row"  # a receipt has a row for seq, which `line` superseded (0: none did)
_QUOTED = "quoted"  # a receipt quotes `line`, which was drawn from seq
_DRAWN = "drawn"  # `line` was drawn from seq
_SUPERSEDED = "superseded"  # `line`, of the archive, was superseded by seq
_DESCRIBED = "described"  # the summary of a topic describes seq
_HELD = "held"  # a record names the turn seq as its evidence

_Trace = tuple[str, int, int, int]
_Mention = tuple[int, str, str]


@dataclass(frozen=True)
class LineStep:
    """A row of a receipt, and the `old` line where the receipt quotes it."""

    receipt: Receipt
    row: ReceiptRow
    old: Entry | None

    @property
    def order(self) -> tuple[int, str]:
        """The receipt's place among all: two clones may have given two receipts one number."""
        return self.receipt.number, self.receipt.id

    @property
    def brings(self) -> bool:
        """Whether the line was new, so that nothing is to be told of it before."""
        return self.row.was in ("", "-") or self.row.why.startswith(_BRINGS)


@dataclass(frozen=True)
class TurnRef:
    """A turn, as the evidence has it; `where` is document and line."""

    seq: int
    where: str
    session: str
    turn: str
    speaker: str
    time: str
    source: str
    text: str


@dataclass(frozen=True)
class StaleDependent:
    """A live entry (`seq`), or a summary (None), that depends on line `on`, which line `by` superseded."""

    where: str
    seq: int | None
    on: int
    by: int


@dataclass(frozen=True)
class _Told:
    receipt: Receipt

    @cached_property
    def steps(self) -> Mapping[int, Sequence[LineStep]]:
        steps, old = dict[int, list[LineStep]](), quoted(self.receipt)
        for row in self.receipt.rows:
            steps.setdefault(row.seq, []).append(LineStep(self.receipt, row, old.get(row.seq)))
        return steps


class Lineage:
    """What the files and the receipts of a snapshot know of each line; `told` were read already, by id."""

    def __init__(self, view: View, told: Mapping[str, _Told]) -> None:
        self.view = view
        self.told = dict(told)

    @cached_property
    def _rows(self) -> Lines:
        return self.view.index.attempt(self.view, lambda: _taken_in(self.view))

    @cached_property
    def receipts(self) -> tuple[Receipt, ...]:
        return tuple(map(self.receipt, self._journal))

    def latest(self, most: int) -> list[Receipt]:
        return [self.receipt(doc_id) for doc_id in self._journal[-most:]]

    @cached_property
    def _journal(self) -> Sequence[str]:
        return receipt_ids(self.view) if self.view.initialised else ()

    def receipt(self, doc_id: str) -> Receipt:
        return self._read(doc_id).receipt

    def _read(self, doc_id: str) -> _Told:
        if doc_id not in self.told:
            self.told[doc_id] = _Told(parse_receipt(self.view.document(doc_id)))
        return self.told[doc_id]

    @property
    def highest(self) -> int:
        """The highest seq that the files or a receipt know of; 0 for none."""
        rows = (row.seq for receipt in self.receipts for row in receipt.rows)
        return max(self.view.max_seq, *rows, *(receipt.high for receipt in self.receipts), 0)

    def steps(self, seq: int) -> Sequence[LineStep]:
        receipts = sorted(self._traced(_ROW, seq), key=_by_number)
        return [step for doc_id in receipts for step in self._read(doc_id).steps.get(seq, ())]

    def changes(self, doc_id: str) -> list[tuple[str, str, str]]:
        """Return ids of receipts that changed a document, oldest first, with its checksums around each."""
        query = f"select d.name, before, after from mention m {_JOINED} where key = ? order by m.rowid"
        rows = self._rows.all(query, _key("file", doc_id))
        return sorted((row for row in rows if row[0] in self.view), key=lambda row: _by_number(row[0]))

    def writer(self, doc_id: str, line: str) -> Receipt | None:
        """Return the last receipt that wrote a line, no entry, into a document that stood there already."""
        names = self._mentioned("line", doc_id, line)
        return self.receipt(max(names, key=_by_number)) if names else None

    def entry(self, seq: int) -> Entry | None:
        """Return the line as it is; one that is gone, as a receipt quoted it last."""
        if (place := self.view.entry(seq)) is not None:
            return place.entry
        return next((step.old for step in reversed(self.steps(seq)) if step.old), None)

    def ancestors(self, entry: Entry) -> list[int]:
        """Return what it was drawn from, and that in turn, sorted; a person may have written a circle."""
        seqs: set[int] = set()
        pending: list[Entry | None] = [entry]
        while pending:
            if one := pending.pop():
                fresh = set(one.origin) - seqs - {entry.seq}
                seqs |= fresh
                pending += map(self.entry, fresh)
        return sorted(seqs)

    def said(self, seq: int) -> TurnRef | None:
        place = self.view.entry(seq)
        return self.turn(place) if place and place.doc_id.startswith(EVIDENCE) else None

    def turn(self, place: Located) -> TurnRef:
        entry, session = place.entry, session_of(place, self.view) or ""
        turn, speaker = entry.fields.get("turn", ""), entry.fields.get("speaker", "")
        return TurnRef(
            entry.seq, at(place), session, turn, speaker, entry.known_time, entry.source, entry.text
        )

    def turns(self, entry: Entry) -> tuple[TurnRef, ...]:
        return tuple(filter(None, map(self.said, self.ancestors(entry))))

    def behind(self, doc_id: str) -> list[TurnRef]:
        return [turn for seq in self._turns(doc_id) if (turn := self.said(seq))]

    def _turns(self, doc_id: str) -> tuple[int, ...]:
        return turns_behind(self.view.document(doc_id), self._record)

    def _record(self, name: str) -> Document | None:
        named = self.view.lines.named(STEM, fold(name))
        ids = [one for one in named if stem(one) == name and one.startswith(folders().records)]
        return self.view.document(ids[-1]) if ids and not self.view.is_note(ids[-1]) else None

    def holding(self, seq: int) -> list[str]:
        records, pending = set[str](), [*self._traced(_HELD, seq)]
        while pending:
            if (record := pending.pop()) not in records:
                records.add(record)
                pending += self._mentioned("record", stem(record))
        return [doc_id for doc_id in sorted(records) if seq in self._turns(doc_id)]

    @staticmethod
    def replaced(place: Located | None) -> tuple[str, int] | None:
        """Return how and by which line an archived one was replaced, as the heading over it says."""
        is_archived = place is not None and place.doc_id.startswith(ARCHIVE)
        return successor(place.headings[-1]) if place and is_archived and place.headings else None

    def heirs(self, seq: int) -> dict[int, str]:
        place = self.view.entry(seq)
        is_live = place is not None and not place.doc_id.startswith(ARCHIVE)  # again, where that was undone
        known = {heir[1]: heir[0] for step in self.steps(seq) if (heir := successor(step.row.why))}
        heirs = {
            heir: why for heir, why in known.items() if self.entry(heir) and not (is_live and why in REPLACED)
        }
        if heir := self.replaced(place):
            heirs[heir[1]] = heir[0]
        for citing in self.drawn(seq):
            heirs.setdefault(citing.seq, f"drawn from {seq}")
        return heirs

    def drawn(self, seq: int) -> list[Located]:
        return self._places(_DRAWN, seq)

    def superseded(self, seq: int) -> list[Located]:
        return sorted(self._places(_SUPERSEDED, seq), key=lambda place: -place.seq)

    def stale(self) -> tuple[StaleDependent, ...]:
        """Return by place what depends on a superseded line: entries by `origin`, summaries by `aux.from`."""
        stale = (
            StaleDependent(where, one, seq, heir)
            for seq, heir in self._heirs_of_archived().items()
            for where, one in self._dependents(seq).items()
            if one not in (seq, heir)
        )
        return tuple(sorted(stale, key=lambda one: (one.where.rpartition(":")[0], one.seq or 0, one.on)))

    def _heirs_of_archived(self) -> dict[int, int]:
        """Return superseded lines of the archive, and by which."""
        query = f"select line, seq from trace t {_JOINED} where kind = ? order by d.name, start"
        rows = self._rows.all(query, _SUPERSEDED)
        return {seq: heir for seq, heir in rows if self.view.entry(heir)}

    def _dependents(self, seq: int) -> Mapping[str, int | None]:
        """Return by place the live entries that come from a line, and the summaries that describe it."""
        places: dict[str, int | None] = dict.fromkeys(self._traced(_DESCRIBED, seq))
        query = "select line from trace where kind in (?, ?) and seq = ?"
        seqs = [seq]
        for origin in seqs:  # more of them come on the way
            places |= {at(one): one.seq for one in self.drawn(origin) if not one.doc_id.startswith(ARCHIVE)}
            lines = set(self._rows.seqs(query, _DRAWN, _QUOTED, origin)).difference(seqs)
            seqs += [line for line in lines if (one := self.entry(line)) and origin in one.origin]
        return places

    def _traced(self, kind: str, seq: int) -> list[str]:
        query = f"select distinct d.name from trace t {_JOINED} where kind = ? and seq = ?"
        return [row[0] for row in self._rows.all(query, kind, seq) if row[0] in self.view]

    def _mentioned(self, *words: str) -> list[str]:
        query = f"select distinct d.name from mention m {_JOINED} where key = ?"
        return [row[0] for row in self._rows.all(query, _key(*words)) if row[0] in self.view]

    def _places(self, kind: str, seq: int) -> list[Located]:
        """Return the lines that rows of a seq point at, as `tracked` and the documents have them in order."""
        query = f"select d.name, start from trace t {_JOINED} where kind = ? and seq = ?"
        query += " order by d.rank = 0, d.name, start"
        return [
            place
            for name, start in self._rows.all(query, kind, seq)
            if name in self.view
            for place in self.view.document(name).entries_in(start, start)
            if place.start_line == start
        ]


def recorded(view: View) -> Lineage:
    return view.derived(_recorded)


def _recorded(view: View, known: Lineage | None, changed: Collection[str] | None) -> Lineage:
    read = known.told if known and changed is not None else {}
    return Lineage(view.bare(), {name: told for name, told in read.items() if name not in (changed or ())})


def _taken_in(view: View) -> Lines:
    """Take in documents that changed; return what a view may ask from now on."""
    lines = view.index.lines(view)
    query = "select id, name, mtime, size, inode from document where not traced order by name"
    due = lines.all(query) if view.initialised else []
    for start in range(0, len(due), PORTION):
        numbers = {
            name: number
            for number, name, *stamp in due[start : start + PORTION]
            if name in view and (view.stored is None or view.stored.stamps.get(name) == tuple(stamp))
        }
        kinds = (*BUFFERS, TOPICS, ARCHIVE, JOURNAL, *folders().records)
        ours = (name for name in numbers if name.startswith(kinds) and not view.is_note(name))
        traces: list[tuple[int, str, int, int, int]] = []
        mentions: list[tuple[int, int, str, str]] = []
        for document in view.each(ours):
            told: Iterable[_Trace] = _standing(document)
            named: Iterable[_Mention] = ()
            if document.id.startswith(JOURNAL):
                receipt = parse_receipt(document)
                told, named = _traces(receipt), _mentions(receipt, document)
            elif document.id.startswith(folders().records):
                told = ((_HELD, seq, 0, 0) for seq in evidence_of(document))
                named = ((_key("record", name), "", "") for name in sources_of(document))
            traces += ((numbers[document.id], *row) for row in told)
            mentions += ((numbers[document.id], *row) for row in named)
        rows = [(number,) for number in numbers.values()]
        with view.index.writing() as db:
            for table in ("trace", "mention"):
                db.executemany(f"delete from {table} where doc = ?", rows)
            db.executemany("insert into trace(doc, kind, seq, line, start) values(?, ?, ?, ?, ?)", traces)
            db.executemany("insert into mention(doc, key, before, after) values(?, ?, ?, ?)", mentions)
            db.executemany("update document set traced = 1 where id = ?", rows)
    return view.index.lines(view) if due else lines


def _traces(receipt: Receipt) -> Iterator[_Trace]:
    for row in receipt.rows:
        yield _ROW, row.seq, replaced_by([row.why]), 0
    for entry in quoted(receipt).values():
        yield from ((_QUOTED, seq, entry.seq, 0) for seq in entry.origin)


def _mentions(receipt: Receipt, document: Document) -> Iterator[_Mention]:
    for name, before, after in receipt.files:
        yield _key("file", name), before, after
    names = {name for name, *_ in receipt.files} if receipt.id == document.id else ()
    for back in reverse_diffs(document):
        came = {row[1:] for hunk in back.hunks for row in hunk.came if row.startswith(">")}
        yield from ((_key("line", back.doc_id, line), "", "") for line in came if back.doc_id in names)


def _standing(document: Document) -> Iterator[_Trace]:
    from infinimem.store.plans import described

    if document.id.startswith(TOPICS):
        yield from ((_DESCRIBED, seq, 0, 0) for seq in set(described(document)))
    for place in document.entries:
        yield from ((_DRAWN, seq, place.seq, place.start_line) for seq in place.entry.origin)
        if document.id.startswith(ARCHIVE) and (heir := replaced_by(place.headings)):
            yield _SUPERSEDED, heir, place.seq, place.start_line


def _key(*words: str) -> int:
    text = "\0".join(words).encode("utf-8", "surrogateescape")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


def _by_number(doc_id: str) -> tuple[int, str]:
    return number_of(doc_id), doc_id


def successor(words: str) -> tuple[str, int] | None:
    """Parse "superseded by" and 41 from a row's reason or a heading of the archive; None if it names none."""
    match = _BY.match(words)
    return (match[1].lower(), int(match[2])) if match else None


def replaced_by(headings: Sequence[str]) -> int:
    """Return the seq that superseded a line, as the last heading over it, or a row's reason, says; else 0."""
    heir = successor(headings[-1]) if headings else None
    return heir[1] if heir and heir[0] == REPLACED[0] else 0


def session_of(place: Located, view: View) -> str | None:
    if not place.doc_id.startswith(EVIDENCE):
        return None
    named = place.entry.fields.get("session") or view.document(place.doc_id).header.values.get("session")
    return named if isinstance(named, str) else None


def at(place: Located) -> str:
    return f"{place.doc_id}:{place.start_line}"
