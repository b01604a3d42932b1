"""The three operators: deterministic edits of a bank, given what to make. Nothing is ever deleted.

The space follows each edit. Source: All-Mem, Appendix B.2 (semantics) and B.3 (rewiring under caps).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from infinimem.grounding.when import day_of, fits
from infinimem.strategies.allmem.plans import Part
from infinimem.strategies.allmem.spec import SPEC, AllmemSettings
from infinimem.strategies.allmem.unit import SEMANTIC, SIBLING, SURFACE, UNIT, VERSION
from infinimem.strategies.graph.links import Link
from infinimem.strategies.graph.rewire import redirect, settle
from infinimem.strategies.records.descriptor import Descriptor, unverified
from infinimem.strategies.records.record import UNVERIFIED, Record
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex


@dataclass(frozen=True)
class Edits:
    """What an operator did, beside what it did to the units that it was given.

    Args:
        created: ids.
        redirected: units of which a semantic link leads elsewhere now, or nowhere.
    """

    created: tuple[str, ...]
    redirected: frozenset[str]


class Editor:
    """Edits one bank.

    Args:
        bank: is edited in place.
        space: follows it.
        settings: most links of a kind, and neighbours that a new unit may be linked to (Eq. 21).
    """

    def __init__(self, bank: RecordStore, space: VectorIndex, settings: AllmemSettings) -> None:
        self.bank = bank
        self.space = space
        self.settings = settings

    def split(self, name: str, parts: Sequence[Part]) -> Edits:
        """Put siblings in a unit's place, one for each piece of its evidence (B.2.1)."""
        old = self.bank.records[name]
        siblings = []
        for part in parts:
            told = [(said.text, day_of(said.time)) for said in map(self.bank.quote, part.refs)]
            new = Record(
                self.bank.new_id(UNIT.prefix, old.order[0]),
                SPEC,
                part.descriptor.summary,
                part.descriptor.keywords,
                old.time,
                old.session,
                part.refs,
                when=old.when if old.when and fits(old.when, told) else None,  # it is these words that tell
            )
            siblings.append(self._create(new, part.descriptor))
        self.bank.archive(name)
        self.space.sync(self.bank, (*siblings, name))
        for one in siblings:
            self._version(one, (name,))
            cap = self.settings.degree_sibling
            settle(self.bank.graph, SIBLING, one, siblings, cap, self.space.cos, lambda *_: None)
        return self._rewired(siblings, siblings, (name,))

    def merge(self, names: Sequence[str], found: Descriptor) -> Edits:
        """Put one representative in the place of units that say the same (B.2.2)."""
        newest = max((self.bank.records[name] for name in names), key=lambda unit: (unit.age, unit.order))
        sessions = {self.bank.records[name].session for name in names}
        new = Record(
            self.bank.new_id(UNIT.prefix, newest.order[0]),
            SPEC,
            found.summary,
            found.keywords,
            newest.time,
            sessions.pop() if len(sessions) == 1 else None,
            sources=tuple(names),
            when=newest.when,
        )
        self._create(new, found)
        for name in names:
            self.bank.archive(name)
        self.space.sync(self.bank, (new.id, *names))
        self._version(new.id, names)
        return self._rewired([new.id], [new.id], names)

    def update(self, current: str, superseded: str, found: Descriptor) -> Edits:
        """Renew the descriptor of what holds now, and archive what does not (B.2.3)."""
        old = self.bank.records[current]
        if (old.summary, old.keywords) != (found.summary, found.keywords):
            said = (*self.bank.quotes(current), *self.bank.quotes(superseded))
            self.bank.put(
                replace(
                    old,
                    summary=found.summary,
                    keywords=found.keywords,
                    aux=UNVERIFIED if unverified(found, said) else (),
                )
            )
        if superseded in self.bank.visible:
            self.bank.archive(superseded)
        self.space.sync(self.bank, (current, superseded))
        self._version(current, (superseded,))
        return self._rewired([current], (), (superseded,))

    # ── parts of all three ──────────────────────────────────────────────────────────────────────

    def _create(self, unit: Record, found: Descriptor) -> str:
        self.bank.put(unit)
        if unverified(found, self.bank.quotes(unit.id)):
            self.bank.put(replace(unit, aux=UNVERIFIED))
        return unit.id

    def _version(self, name: str, older: Iterable[str]) -> None:
        for target in older:
            self.bank.graph.add(name, Link(VERSION, target))

    def _rewired(self, reps: Sequence[str], created: Sequence[str], gone: Sequence[str]) -> Edits:
        """Redirect what led to units that are gone, and link the new ones (B.3)."""
        graph, visible = self.bank.graph, self.bank.visible
        redirected: set[str] = set()
        for name in gone:
            redirected |= redirect(
                graph, SEMANTIC, name, reps, visible, self.settings.degree_semantic, self._near, self._weight
            )
        sources = {to for name in gone for to in graph.out(name, SEMANTIC)}
        for name in created:
            nearest = self.space.nearest(
                self.space.row(name), self.settings.online_anchors, SURFACE, without=(name,)
            )
            found = {near for near, _ in nearest} | (sources & visible)
            settle(graph, SEMANTIC, name, found, self.settings.degree_semantic, self._near, self._weight)
        return Edits(tuple(created), frozenset(redirected))

    def _near(self, source: str, to: str) -> tuple[float, datetime, int]:
        """Key of a semantic link: nearer first, then newer (Eq. 13)."""
        return (self.space.cos(source, to), *self.bank.records[to].age)

    def _weight(self, source: str, to: str) -> float:
        return round(self.space.cos(source, to), 3)
