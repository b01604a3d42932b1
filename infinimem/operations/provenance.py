"""What the files and the receipts together know of where a line came from. Pure, over a snapshot.

history.py tells it as the story of a line, blame.py line by line of a document. Receipts may be missing or
damaged: then there is less to tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from infinimem.model import Entry, Located
from infinimem.operations.receipt_index import REPLACED, Trail, successor
from infinimem.store.records import stem, turns_behind
from infinimem.store.spec import ARCHIVE, RECORDS
from infinimem.store.state.last_seen import tracked
from infinimem.store.view import EVIDENCE, View, drawn_from


@dataclass(frozen=True)
class Said:
    """A turn, as the evidence has it."""

    seq: int
    where: str
    """Document and line."""
    session: str
    turn: str
    speaker: str
    time: str
    source: str
    text: str


class Records:
    """What the files and the receipts together know of a line."""

    def __init__(self, view: View, trail: Trail) -> None:
        self.view = view
        self.trail = trail

    def entry(self, seq: int) -> Entry | None:
        """The line as it is; of one that is gone, as a receipt quotes it."""
        place = self.view.entry(seq)
        return place.entry if place else self.trail.quoted(seq)

    def ancestors(self, entry: Entry) -> list[int]:
        """What it was drawn from, and that in turn, sorted; a person may have written a circle."""
        found: set[int] = set()
        pending: list[Entry | None] = [entry]
        while pending:
            if one := pending.pop():
                fresh = set(drawn_from(one)) - found - {entry.seq}
                found |= fresh
                pending += map(self.entry, fresh)
        return sorted(found)

    def said(self, seq: int) -> Said | None:
        """The turn with this seq; None if no turn has it."""
        place = self.view.entry(seq)
        return self.turn(place) if place and place.doc_id.startswith(EVIDENCE) else None

    def turn(self, place: Located) -> Said:
        """A line of the evidence."""
        entry = place.entry
        session = entry.fields.get("session") or self.view.document(place.doc_id).header.values.get("session")
        return Said(
            entry.seq,
            at(place),
            session if isinstance(session, str) else "",
            entry.fields.get("turn", ""),
            entry.fields.get("speaker", ""),
            entry.time or "",
            entry.source,
            entry.text,
        )

    def turns(self, entry: Entry) -> tuple[Said, ...]:
        """The turns that an entry was said in."""
        return tuple(filter(None, map(self.said, self.ancestors(entry))))

    @cached_property
    def citing(self) -> dict[int, list[Located]]:
        """Entries by what they were drawn from, live ones and archived ones."""
        found: dict[int, list[Located]] = {}
        for place in (place for doc_id in tracked(self.view) for place in self.view.document(doc_id).entries):
            for seq in drawn_from(place.entry):
                found.setdefault(seq, []).append(place)
        return found

    @cached_property
    def _behind(self) -> dict[str, tuple[int, ...]]:
        """The turns behind each record of a strategy's, by document id."""
        records = {
            doc_id: self.view.document(doc_id)
            for doc_id in self.view.ids("all")
            if doc_id.startswith(RECORDS) and not self.view.is_note(doc_id)
        }
        by_stem = {stem(doc_id): document for doc_id, document in records.items()}
        return {doc_id: turns_behind(document, by_stem.get) for doc_id, document in records.items()}

    def behind(self, doc_id: str) -> list[Said]:
        """The turns that a record comes from, as far as they are there."""
        return [turn for seq in self._behind.get(doc_id, ()) if (turn := self.said(seq))]

    def holding(self, seq: int) -> list[str]:
        """Ids of the records that come from a turn."""
        return [doc_id for doc_id, seqs in self._behind.items() if seq in seqs]

    @staticmethod
    def replaced(place: Located | None) -> tuple[str, int] | None:
        """By which line an archived one was replaced, as the heading over it says, and the words for it."""
        if place is None or not place.doc_id.startswith(ARCHIVE) or not place.headings:
            return None
        return successor(place.headings[-1])

    def heirs(self, seq: int) -> dict[int, str]:
        """Lines that came after a line or from it, and why."""
        place = self.view.entry(seq)
        is_live = place is not None and not place.doc_id.startswith(ARCHIVE)  # again, where that was undone
        known = self.trail.heirs(seq).items()
        found = {heir: why for heir, why in known if self.entry(heir) and not (is_live and why in REPLACED)}
        if told := self.replaced(place):
            found[told[1]] = told[0]
        for citing in self.citing.get(seq, ()):
            found.setdefault(citing.seq, f"drawn from {seq}")
        return found


def at(place: Located) -> str:
    """Document and line."""
    return f"{place.doc_id}:{place.start_line}"
