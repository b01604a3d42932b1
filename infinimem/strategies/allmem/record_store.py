"""The bank: all units of a library with their links, as one value to try edits on.

Source: All-Mem, section 3.1 (bank, surface) and Appendix B.2 (evidence by reference).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from infinimem.markdown.document import Document
from infinimem.model import Finding, Located, Put
from infinimem.store.records import held_by
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.allmem.unit import (
    ARCHIVED,
    KINDS,
    UNITS,
    Quote,
    Record,
    Ref,
    Unit,
    is_unit_id,
    moment,
    number_of,
    parse,
    render,
    unit_id,
)
from infinimem.strategies.graph.links import Graph, Link

LONGEST = 24_000
"""Characters of evidence that a model is shown, except of what it shall cut."""

_Read = tuple[Document, Record | Finding]


class RecordStore:
    """Units by id, and their links. Units are values; what changes is which of them stand here.

    Args:
        turn: gives a turn of the evidence by seq.
    """

    def __init__(self, turn: Callable[[int], Located | None]) -> None:
        self.units: dict[str, Unit] = {}
        self.graph = Graph()
        self.visible: set[str] = set()
        """Ids of the units on the surface."""
        self.lost: dict[str, tuple[Link, ...]] = {}
        """Links to units that are not here, or cannot be read: they stay in the files."""
        self.findings: tuple[Finding, ...] = ()
        """Of files that hold no unit."""
        self.turn = turn
        self._read: dict[str, _Read] = {}
        self._records: dict[str, Record] | None = None
        """As loaded; None once the bank may have been edited."""
        self._suffixes: dict[int, int] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.units

    def __len__(self) -> int:
        return len(self.units)

    def copy(self) -> RecordStore:
        """A bank to try edits on."""
        twin = RecordStore(self.turn)
        twin.units, twin.visible, twin.lost = self.units.copy(), self.visible.copy(), self.lost.copy()
        twin.graph, twin.findings = self.graph.copy(), self.findings
        twin._read, twin._suffixes = self._read, self._suffixes.copy()
        return twin

    # ── loading ─────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(cls, view: View, known: RecordStore | None = None) -> RecordStore:
        """The bank as a view shows it.

        Args:
            view: the library.
            known: one that was loaded before; what did not change since is not read again.
        """
        bank = cls(lambda seq: _turn(view, seq))
        before = known._read if known else {}
        for doc_id in view.ids("all"):
            if doc_id.startswith((UNITS, ARCHIVED)):
                document = view.document(doc_id)
                read = before.get(doc_id)
                bank._read[doc_id] = read if read and read[0] is document else (document, parse(document))
        chosen = bank._choose()
        if known and known._records is not None and not known.lost and known._records.keys() <= chosen.keys():
            bank.units, bank.visible = known.units.copy(), known.visible.copy()
            bank.graph = known.graph.copy()
            old = known._records
            bank._fill({name: found for name, found in chosen.items() if old.get(name) is not found})
        else:
            bank._fill(chosen)
        bank._records = chosen
        return bank

    def _choose(self) -> dict[str, Record]:
        """What was read by name; a unit that stands in both folders is taken from the surface."""
        chosen: dict[str, Record] = {}
        findings = []
        for doc_id, (_, found) in sorted(self._read.items(), reverse=True):  # "units" before "archive"
            name = doc_id.rsplit("/", 1)[-1]
            if is_unit_id(name):
                number, suffix = number_of(name)
                self._suffixes[number] = max(suffix, self._suffixes.get(number, 0))
            if isinstance(found, Finding):
                findings.append(found)
            elif name in chosen:
                findings.append(Finding("error", f"{name} stands on the surface too; delete one", doc_id))
            else:
                chosen[name] = found
        self.findings = tuple(reversed(findings))
        return chosen

    def _fill(self, records: Mapping[str, Record]) -> None:
        """Take units in, in place of those of the same names."""
        for name in sorted(records):
            self._keep(records[name].unit)
            self.graph.add_node(name)
        for name, record in records.items():
            if lost := tuple(link for link in record.links if link.to not in self.units):
                self.lost[name] = lost
            for kind in KINDS:
                here = [link for link in record.links if link.kind == kind and link.to in self.units]
                if here or self.graph.out(name, kind):
                    self.graph.put(name, kind, here)

    # ── editing ─────────────────────────────────────────────────────────────────────────────────

    def _keep(self, unit: Unit) -> None:
        self.units[unit.id] = unit
        (self.visible.add if unit.visible else self.visible.discard)(unit.id)

    def put(self, unit: Unit) -> None:
        """A new unit, or another value for one that is here; links stay."""
        number, suffix = unit.order
        self._suffixes[number] = max(suffix, self._suffixes.get(number, 0))
        self._keep(unit)
        self.graph.add_node(unit.id)

    def archive(self, name: str) -> None:
        """Take a unit from the surface; nothing else of it changes (section 3.1)."""
        self._keep(replace(self.units[name], visible=False))

    def new_id(self, number: int) -> str:
        """The next free id of a derived unit; files that cannot be read count too."""
        return unit_id(number, self._suffixes.get(number, 0) + 1)

    def turn_id(self, seq: int) -> str:
        """The id of a turn's new unit: its own, or where a person gave that to another file a derived one."""
        own = unit_id(seq)
        taken = own in self.units or any(f"{folder}{own}" in self._read for folder in (UNITS, ARCHIVED))
        return self.new_id(seq) if taken else own

    def held(self) -> frozenset[int]:
        """Seqs of the turns that have a unit, be it one that cannot be read; as `View.cited`."""
        unread = (document for document, found in self._read.values() if isinstance(found, Finding))
        refs = (ref.seq for unit in self.units.values() for ref in unit.refs)
        return frozenset((*refs, *(seq for document in unread for seq in held_by(document))))

    def links(self, name: str) -> tuple[Link, ...]:
        """All links that the unit's file holds."""
        return (*self.graph.links(name), *self.lost.get(name, ()))

    # ── evidence ────────────────────────────────────────────────────────────────────────────────

    def quotes(self, name: str) -> tuple[Quote, ...]:
        """What a unit's evidence says, each piece once: a representative's by time, then seq (Appendix D)."""
        unit = self.units[name]
        if not unit.sources:
            return tuple(map(self.quote, unit.refs))
        refs: set[Ref] = set()
        seen, waiting = {name}, list(unit.sources)
        while waiting:
            source = waiting.pop()
            if source not in seen and source in self.units:
                seen.add(source)
                refs.update(self.units[source].refs)
                waiting += self.units[source].sources
        found = map(self.quote, refs)
        return tuple(sorted(found, key=lambda said: (moment(said.time), said.ref.seq, said.ref.span or ())))

    def quote(self, ref: Ref) -> Quote:
        """What a reference stands for."""
        place = self.turn(ref.seq)
        if place is None:
            return Quote(ref, None, None, "")
        entry = place.entry
        start, end = ref.span or (0, len(entry.text))
        return Quote(ref, entry.fields.get("speaker"), entry.time, entry.text[start:end], entry.role)

    def text(self, name: str) -> str:
        """The words of a unit's evidence alone, piece after piece: what a split cuts."""
        return "\n".join(said.text for said in self.quotes(name))

    def cut(self, name: str, start: int, end: int) -> tuple[Ref, ...]:
        """References to characters `start` to `end` of `text`."""
        refs = []
        at = 0
        for said in self.quotes(name):
            first, last = max(start - at, 0), min(end - at, len(said.text))
            if first < last:
                base = said.ref.span[0] if said.ref.span else 0
                refs.append(Ref(said.ref.seq, (base + first, base + last)))
            at += len(said.text) + 1
        return tuple(refs)

    def render(self, name: str) -> str:
        """The unit's file."""
        return render(self.units[name], self.links(name), self.quotes(name))


def _turn(view: View, seq: int) -> Located | None:
    place = view.entry(seq)
    return place if place and place.doc_id.startswith(EVIDENCE) else None


def shown_unit(
    bank: RecordStore, name: str, called: str | None = None, *, whole: bool = False
) -> dict[str, object]:
    """A unit with its evidence, as a model is shown it (llm/tasks.py).

    Args:
        bank: that it stands in.
        name: its id.
        called: the id that the model is told; None for its own.
        whole: whether the text is shown to its end, however long it is.
    """
    unit = bank.units[name]
    speakers = {said.speaker for said in bank.quotes(name)}
    text = bank.text(name)
    return {
        "id": called or name,
        "time": unit.time,
        "speaker": speakers.pop() if len(speakers) == 1 else None,
        "text": text if whole else text[:LONGEST],
        "summary": unit.summary,
        "keywords": list(unit.keywords),
    }


def shown_anchor(unit: Unit) -> dict[str, object]:
    """A neighbour: its descriptor alone."""
    return {"id": unit.id, "time": unit.time, "summary": unit.summary, "keywords": list(unit.keywords)}


def changed(before: RecordStore, after: RecordStore) -> tuple[str, ...]:
    """Units that differ between two banks, in order of creation."""
    names = [
        name
        for name in before.units.keys() | after.units.keys()
        if before.units.get(name) != after.units.get(name)
        or (before.graph.links(name) != after.graph.links(name))
        or before.lost.get(name) != after.lost.get(name)
    ]
    return tuple(sorted(names, key=number_of))


def puts(before: RecordStore, after: RecordStore) -> tuple[Put, ...]:
    """The records that turn one bank into the other: a unit that left the surface moves to the archive.

    A unit names as its origin the turns that none held before.
    """
    rows: list[Put] = []
    held = before.held()
    for name in changed(before, after):
        old, new = before.units.get(name), after.units.get(name)
        if old and (new is None or new.doc_id != old.doc_id):
            rows.append(Put(old.doc_id, None))
        if new:
            origin = tuple(ref.seq for ref in new.refs if ref.seq not in held)
            rows.append(Put(new.doc_id, after.render(name), origin))
    return tuple(rows)
