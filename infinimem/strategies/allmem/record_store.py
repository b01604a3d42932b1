"""The bank: all units of a library with their links, as one value to try edits on.

Source: All-Mem, section 3.1 (bank, surface) and Appendix B.2 (evidence by reference).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, KeysView, Mapping, Sequence, Set
from copy import copy
from dataclasses import replace
from threading import Lock

from infinimem.markdown.document import Document
from infinimem.model import Finding, Located, Put
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
from infinimem.strategies.graph.shared_dict import SharedDict

LONGEST = 24_000
"""Characters of evidence that a model is shown, except of what it shall cut."""

_Read = tuple[Document, Record | Finding]


class RecordStore:
    """Units by id, and their links. Units are values; what changes is which of them stand here.

    Args:
        turn: gives a turn of the evidence by seq.
    """

    _growing = Lock()

    def __init__(self, turn: Callable[[int], Located | None]) -> None:
        self.units: SharedDict[str, Unit] = SharedDict()
        self.graph = Graph()
        self.lost: SharedDict[str, tuple[Link, ...]] = SharedDict()
        """Links to units that are not here, or cannot be read: they stay in the files."""
        self.held: Set[int] = frozenset()
        """Seqs of the turns that had a unit when this was loaded, be it one that cannot be read."""
        self.turn = turn
        self._surface: SharedDict[str, None] = SharedDict()
        self._findings: SharedDict[str, Finding] = SharedDict()
        self._sessions: SharedDict[str, tuple[str, ...]] = SharedDict()
        self._read: SharedDict[str, _Read] = SharedDict()
        self._suffixes: SharedDict[int, int] = SharedDict()
        self._edited: set[str] = set()
        self._loads: list[str] = []
        """What each load changed, of all banks that follow one another; each reads as far as its own end."""
        self._upto = 0

    def __contains__(self, name: object) -> bool:
        return name in self.units

    def __len__(self) -> int:
        return len(self.units)

    @property
    def visible(self) -> KeysView[str]:
        """Ids of the units on the surface."""
        return self._surface.keys()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of files that hold no unit, by their ids."""
        return tuple(self._findings[doc_id] for doc_id in sorted(self._findings))

    @property
    def edited(self) -> Set[str]:
        """Units that may differ from what was loaded."""
        return self._edited | self.graph.changed

    def copy(self) -> RecordStore:
        """A bank to try edits on; costs the same however many units there are."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, SharedDict | Graph | set):
                setattr(twin, name, value.copy())
        return twin

    # ── loading ─────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(
        cls, view: View, known: RecordStore | None = None, changed: Collection[str] | None = None
    ) -> RecordStore:
        """The bank as a view shows it (`View.derived`).

        Args:
            view: the library.
            known: one that was loaded before; what did not change since is not read again.
            changed: documents that differ from what it was loaded from; None where that is not known.
        """
        base = known if known is not None and changed is not None and not known.edited else None
        bank = cls(view.entry) if base is None else base.copy()
        bank.turn, bank.held = lambda seq: _turn(view, seq), view.cited
        found = (*view.below(UNITS), *view.below(ARCHIVED)) if base is None else changed or ()
        documents = [doc_id for doc_id in found if doc_id.startswith((UNITS, ARCHIVED))]
        before = bank._read if known is None else known._read
        for doc_id in documents:
            if doc_id not in view:
                bank._read.pop(doc_id, None)
                continue
            document, read = view.document(doc_id), before.get(doc_id)
            bank._read[doc_id] = read if read and read[0] is document else (document, parse(document))
        names = {doc_id: doc_id.rsplit("/", 1)[-1] for doc_id in documents}
        chosen = bank._choose({*names.values()}, documents)
        away = [doc_id for doc_id, name in names.items() if name not in chosen]
        if base is not None and any(one not in view or names[one] in bank.units for one in away):
            return cls.load(view, bank)  # what linked to it has lost a link, and its suffix is free
        for name in bank.lost.keys() - chosen.keys():  # what it links to may be here now
            if record := bank._record(bank.units[name].doc_id):
                chosen[name] = record
        bank._fill(chosen)
        bank._loaded()
        return bank

    def _record(self, doc_id: str) -> Record | None:
        found = self._read[doc_id][1] if doc_id in self._read else None
        return found if isinstance(found, Record) else None

    def _choose(self, names: Collection[str], documents: Collection[str]) -> dict[str, Record]:
        """What was read by name; a unit that stands in both folders is taken from the surface."""
        chosen: dict[str, Record] = {}
        for name in filter(is_unit_id, names):
            number, suffix = number_of(name)
            self._suffixes[number] = max(suffix, self._suffixes.get(number, 0))
        for doc_id in {*documents, *(folder + name for name in names for folder in (UNITS, ARCHIVED))}:
            name = doc_id.rsplit("/", 1)[-1]
            self._findings.pop(doc_id, None)
            if doc_id not in self._read:
                continue
            found = self._read[doc_id][1]
            if isinstance(found, Finding):
                self._findings[doc_id] = found
            elif not found.unit.visible and self._record(UNITS + name):
                what = f"{name} stands on the surface too; delete one"
                self._findings[doc_id] = Finding("error", what, doc_id)
            else:
                chosen[name] = found
        return chosen

    def _fill(self, records: Mapping[str, Record]) -> None:
        """Take units in, in place of those of the same names."""
        for name in sorted(records):
            self._keep(records[name].unit)
            self.graph.add_node(name)
        for name, record in records.items():
            self.lost.pop(name, None)
            if lost := tuple(link for link in record.links if link.to not in self.units):
                self.lost[name] = lost
            for kind in KINDS:
                here = [link for link in record.links if link.kind == kind and link.to in self.units]
                if here or self.graph.out(name, kind):
                    self.graph.put(name, kind, here)

    def _loaded(self) -> None:
        """What was taken in is no edit, but news to who knows the bank that this one follows."""
        with self._growing:
            if self._upto == 0 or len(self._loads) > self._upto:
                self._loads = [""]  # the first, or a second one that follows the same bank
            else:
                self._loads += self.edited
            self._upto = len(self._loads)
        self._edited.clear()
        self.graph.changed.clear()

    def since(self, older: RecordStore | None) -> Sequence[str] | None:
        """Units that may differ between two banks as they were loaded; None where neither tells."""
        if older is None or older._loads is not self._loads or older._upto > self._upto:
            return None
        return self._loads[older._upto : self._upto]

    # ── editing ─────────────────────────────────────────────────────────────────────────────────

    def _keep(self, unit: Unit) -> None:
        self._edited.add(unit.id)
        self._seat(self.units.get(unit.id), unit)
        self.units[unit.id] = unit
        if unit.visible:
            self._surface[unit.id] = None
        else:
            self._surface.pop(unit.id, None)

    def _seat(self, old: Unit | None, new: Unit) -> None:
        """Put a unit where it belongs among those of its session."""
        if old and (old.session, old.time) == (new.session, new.time):
            return
        if old and old.session is not None:
            self._sessions[old.session] = tuple(
                name for name in self.of_session(old.session) if name != old.id
            )
        if new.session is not None:
            names = self.of_session(new.session)
            at = bisect_left(
                names, (new.age, new.order), key=lambda name: (self.units[name].age, number_of(name))
            )
            self._sessions[new.session] = (*names[:at], new.id, *names[at:])

    def of_session(self, session: str) -> tuple[str, ...]:
        """The units of a session, on the surface or not, the oldest first."""
        return self._sessions.get(session, ())

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
    same = before.since(after) == []
    names = [
        name
        for name in (before.edited | after.edited if same else before.units.keys() | after.units.keys())
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
    for name in changed(before, after):
        old, new = before.units.get(name), after.units.get(name)
        if old and (new is None or new.doc_id != old.doc_id):
            rows.append(Put(old.doc_id, None))
        if new:
            origin = tuple(ref.seq for ref in new.refs if ref.seq not in before.held)
            rows.append(Put(new.doc_id, after.render(name), origin))
    return tuple(rows)
