"""Where each line came from, as the files and the receipts tell it. Pure, over a snapshot.

history.py tells it as the story of a line, and line by line of a document. Receipts may be missing or
damaged: then there is less to tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infinimem.markdown.signature import parse_entry
from infinimem.model import Entry, Located, Receipt, ReceiptRow
from infinimem.spec import folders
from infinimem.store.lines import drawn_from
from infinimem.store.receipts import receipts_of
from infinimem.store.records import stem, turns_behind
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL
from infinimem.store.state.last_seen import tracked
from infinimem.store.view import View

REPLACED = ("superseded by", "duplicate of", "rewritten as")
"""Why a line is in the archive: another one, named after these words, stands for it."""

_BY = re.compile(rf"({'|'.join(REPLACED)}) ([1-9][0-9]{{0,17}})\b", re.IGNORECASE)
_COPY = re.compile(r"renumbered from ([1-9][0-9]{0,17})\b")
_BRINGS = ("added", "stamped", "renumbered")

ByLine = Mapping[int, Sequence[Located]]
"""Lines by one that they were drawn from, or that stands for them."""


@dataclass(frozen=True)
class LineStep:
    """A row of a receipt, and the `old` line where the receipt quotes it.

    `order` is the receipt's among all: two clones may have given two receipts one number.
    """

    receipt: Receipt
    order: int
    row: ReceiptRow
    old: Entry | None

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


class Lineage:
    """What the files and the receipts, oldest first, together know of each line."""

    def __init__(self, view: View, receipts: Iterable[Receipt]) -> None:
        self.view = view
        self.receipts = tuple(receipts)
        self._steps: dict[int, list[LineStep]] = {}
        self._heirs: dict[int, dict[int, str]] = {}
        for order, receipt in enumerate(self.receipts):
            quoted = {entry.seq: entry for line in receipt.quoted if (entry := parse_entry(line))}
            for row in receipt.rows:
                steps = self._steps.setdefault(row.seq, [])
                steps.append(LineStep(receipt, order, row, quoted.get(row.seq)))
                if heir := successor(row.why):
                    self._heirs.setdefault(row.seq, {})[heir[1]] = heir[0]
                elif copied := _COPY.match(row.why):
                    self._heirs.setdefault(int(copied[1]), {})[row.seq] = row.why

    @property
    def highest(self) -> int:
        """Return the highest seq that the files or a receipt know of; 0 for none."""
        return max(self.view.max_seq, *self._steps, *(receipt.high for receipt in self.receipts), 0)

    def steps(self, seq: int) -> Sequence[LineStep]:
        """Return what receipts did to a line, oldest first."""
        return self._steps.get(seq, ())

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
                fresh = set(drawn_from(one)) - seqs - {entry.seq}
                seqs |= fresh
                pending += map(self.entry, fresh)
        return sorted(seqs)

    def said(self, seq: int) -> TurnRef | None:
        """Return the turn with this seq; None if no turn has it."""
        place = self.view.entry(seq)
        return self.turn(place) if place and place.doc_id.startswith(EVIDENCE) else None

    def turn(self, place: Located) -> TurnRef:
        """Describe a line of the evidence."""
        entry, session = place.entry, session_of(place, self.view) or ""
        turn, speaker = entry.fields.get("turn", ""), entry.fields.get("speaker", "")
        return TurnRef(
            entry.seq, at(place), session, turn, speaker, entry.time or "", entry.source, entry.text
        )

    def turns(self, entry: Entry) -> tuple[TurnRef, ...]:
        """Return the turns that an entry was said in."""
        return tuple(filter(None, map(self.said, self.ancestors(entry))))

    @cached_property
    def _behind(self) -> dict[str, tuple[int, ...]]:
        """The turns behind each record of a strategy's, by document id."""
        records = {
            doc_id: self.view.document(doc_id)
            for doc_id in self.view.ids("all")
            if doc_id.startswith(folders().records) and not self.view.is_note(doc_id)
        }
        by_stem = {stem(doc_id): document for doc_id, document in records.items()}
        return {doc_id: turns_behind(document, by_stem.get) for doc_id, document in records.items()}

    def behind(self, doc_id: str) -> list[TurnRef]:
        """Return the turns that a record comes from, as far as they are there."""
        return [turn for seq in self._behind.get(doc_id, ()) if (turn := self.said(seq))]

    def holding(self, seq: int) -> list[str]:
        """Return ids of the records that come from a turn."""
        return [doc_id for doc_id, seqs in self._behind.items() if seq in seqs]

    @staticmethod
    def replaced(place: Located | None) -> tuple[str, int] | None:
        """Return how and by which line an archived one was replaced, as the heading over it says."""
        is_archived = place is not None and place.doc_id.startswith(ARCHIVE)
        return successor(place.headings[-1]) if place and is_archived and place.headings else None

    def heirs(self, seq: int) -> dict[int, str]:
        """Return lines that came after a line or from it, and why."""
        place = self.view.entry(seq)
        is_live = place is not None and not place.doc_id.startswith(ARCHIVE)  # again, where that was undone
        known = self._heirs.get(seq, {}).items()
        heirs = {heir: why for heir, why in known if self.entry(heir) and not (is_live and why in REPLACED)}
        if heir := self.replaced(place):
            heirs[heir[1]] = heir[0]
        for citing in self.view.derived(drawn).get(seq, ()):
            heirs.setdefault(citing.seq, f"drawn from {seq}")
        return heirs


def recorded(view: View) -> Lineage:
    """Return what a snapshot tells of its lines, read once."""
    return view.derived(_recorded)


def _recorded(view: View, known: Lineage | None, changed: Collection[str] | None) -> Lineage:
    if known is not None and changed is not None and not any(one.startswith(JOURNAL) for one in changed):
        return Lineage(view, known.receipts)
    return Lineage(view, receipts_of(view) if view.initialised else ())


def superseded(view: View, known: ByLine | None, changed: Collection[str] | None) -> ByLine:
    """Return lines of the archive by what superseded them, for `View.derived`."""
    if known is not None and changed is not None and not any(one.startswith(ARCHIVE) for one in changed):
        return known
    lines: dict[int, list[Located]] = {}
    for doc_id in view.owned(ARCHIVE):
        for place in view.document(doc_id).entries:
            if heir := replaced_by(place.headings):
                lines.setdefault(heir, []).append(place)
    return {heir: sorted(old, key=lambda place: -place.seq) for heir, old in lines.items()}


def drawn(view: View, known: ByLine | None, changed: Collection[str] | None) -> ByLine:
    """Return lines by the turns that they were drawn from, for `View.derived`."""
    if known is not None and changed is not None and all(one.startswith(EVIDENCE) for one in changed):
        return known
    lines: dict[int, list[Located]] = {}
    for doc_id in tracked(view):
        for place in view.document(doc_id).entries:
            for seq in drawn_from(place.entry):
                lines.setdefault(seq, []).append(place)
    return lines


def successor(words: str) -> tuple[str, int] | None:
    """Parse "superseded by" and 41 from a row's reason or a heading of the archive; None if it names none."""
    match = _BY.match(words)
    return (match[1].lower(), int(match[2])) if match else None


def replaced_by(headings: Sequence[str]) -> int:
    """Return the seq that superseded a line of the archive, as the heading over it says; 0 where none did."""
    heir = successor(headings[-1]) if headings else None
    return heir[1] if heir and heir[0] == REPLACED[0] else 0


def session_of(place: Located, view: View) -> str | None:
    """Return the session of a turn; None for an entry."""
    if not place.doc_id.startswith(EVIDENCE):
        return None
    named = place.entry.fields.get("session") or view.document(place.doc_id).header.values.get("session")
    return named if isinstance(named, str) else None


def at(place: Located) -> str:
    """Return document and line."""
    return f"{place.doc_id}:{place.start_line}"
