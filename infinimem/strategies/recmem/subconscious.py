"""The subconscious: every exchange as it was said, with its vector; which of them an exchange recurs in.

No model is asked here, and nothing of it is kept: what is raw (in no episode) is derived from the files.
Source: RecMem, section 3.2, Eq. 2 to 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from infinimem.model import Located
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.graph.links import SharedDict
from infinimem.strategies.recmem.spec import SPEC
from infinimem.strategies.records.open_turns import Exchange, Named, exchanges
from infinimem.strategies.records.record import Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore, turn_of
from infinimem.strategies.vector_index import Loaded, Row, VectorIndex

RAW, WAITING, HELD = "raw/", "waiting/", "held/"
"""Where exchanges stand, in place of folders: looked at and in no episode; still to be looked at; in one."""

EPISODE, FACT = SPEC.kinds
_PREFIX = "rx"
AT_ONCE = 256
"""Exchanges that one product compares with all."""
SLACK = 1e-4
"""How far it may be off."""
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Unit(Record):
    """An exchange: the turns of it that are in no episode, or if there is none all of them."""

    state: str = WAITING

    @property
    def folder(self) -> str:
        return self.state

    @property
    def text(self) -> str:
        return self.summary


class Units(RecordStore):
    """The exchanges of a library, as records that stand in no file."""

    def __init__(self, view: View) -> None:
        super().__init__(SPEC, view.entry)
        self.records: SharedDict[str, Unit]  # type: ignore[assignment]
        self.unit_of: SharedDict[int, str] = SharedDict()
        """The exchange of each turn."""
        self._turns: SharedDict[str, tuple[Exchange, int]] = SharedDict()
        """All turns of an exchange, and the one that ended it; 0 where it goes on."""
        self._going: tuple[Exchange, ...] = ()
        self._said: SharedDict[str, tuple[Located, ...]] = SharedDict()
        """What was taken in of each evidence document."""
        self._told = Named(EPISODE.prefix)
        """The turns that episodes hold."""
        self._waiting: SharedDict[str, None] = SharedDict()
        self._last = 0

    @classmethod
    def of(cls, view: View, known: Units | None = None, changed: Collection[str] | None = None) -> Units:
        """The exchanges as a view shows them (`View.derived`); see `RecordStore.load`."""
        new = None if known is None or changed is None else known._appended(view, changed)
        if known is None or changed is None or new is None:
            known, changed = cls(view), view.ids("all")
            new = known._appended(view, changed) or []
        units = known.copy()
        units.turn = partial(turn_of, view)
        touched = {*units._grown(view, new), *units._waiting}
        units._told, seqs = units._told.updated(view, changed)
        touched.update(units.unit_of[seq] for seq in seqs if seq in units.unit_of)
        for name in sorted(touched):
            units._settle(view, name)
        units._loaded()
        return units

    def _appended(self, view: View, changed: Collection[str]) -> list[Located] | None:
        """What was said since, in order; None where what was said before is not what it was."""
        new: list[Located] = []
        for doc_id in changed:
            if doc_id.startswith(EVIDENCE):
                before = self._said.get(doc_id, ())
                now = view.document(doc_id).entries if doc_id in view else ()
                if now[: len(before)] != before:
                    return None
                new += (turn for turn in now[len(before) :] if not view.repeats(turn))
        new.sort(key=lambda turn: turn.seq)
        return None if new and new[0].seq <= self._last else new

    def _grown(self, view: View, new: Sequence[Located]) -> Iterator[str]:
        """Take in what was said; the exchanges that it belongs to or ends."""
        ended, going = exchanges(view, new, self._going)
        self._going = tuple(going)
        for said, by in (*ended, *((said, 0) for said in going)) if new else ():
            name = record_id(_PREFIX, said[0].seq)
            self._turns[name] = said, by
            for turn in said:
                self.unit_of[turn.seq] = name
            yield name
        for turn in new:
            self._said[turn.doc_id] = view.document(turn.doc_id).entries
            self._last = turn.seq

    def _settle(self, view: View, name: str) -> None:
        """Let a unit be as it is now."""
        said, by = self._turns[name]
        left = tuple(turn for turn in said if turn.seq not in self._told)
        waits = bool(left) and (not by or by in view.lines.waiting)
        if waits:
            self._waiting[name] = None
        else:
            self._waiting.pop(name, None)
        # as it is embedded (Eq. 4), without its day: exchanges of a day would be near for it
        spoken = (turn.entry for turn in left or said)
        rows = ((one.fields.get("speaker") or one.role, one.text) for one in spoken)
        unit = Unit(
            name,
            SPEC,
            "\n".join(f"{who}: {text}" for who, text in rows),
            time=said[-1].entry.time,
            refs=tuple(Ref(turn.seq) for turn in left or said),
            state=WAITING if waits else RAW if left else HELD,
        )
        if self.records.get(name) != unit:
            self._put(unit)

    def move(self, name: str, state: str) -> None:
        """Let a unit stand elsewhere, to try it."""
        self._put(replace(self.records[name], state=state))

    def _put(self, unit: Unit) -> None:
        self._edited.add(unit.id)
        self.records[unit.id] = unit

    def due(self) -> Mapping[int, Sequence[str]]:
        """The exchanges that ended and wait to be looked at, by the turn that ended them, in that order."""
        found: dict[int, list[str]] = {}
        for name in sorted(self._waiting, key=self._place):
            found.setdefault(self._turns[name][1], []).append(name)
        return found

    def _place(self, name: str) -> tuple[int, int]:
        """The order in which exchanges end; those that go on come last."""
        said, by = self._turns[name]
        return by or _NEVER, said[-1].seq

    def open(self) -> list[str]:
        """All that are in no episode, in this order."""
        return sorted((name for name, unit in self.records.items() if unit.state != HELD), key=self._place)

    def turns(self, names: Iterable[str]) -> list[Located]:
        """Their turns, by time and then in order."""
        units = sorted((self.records[name] for name in names), key=lambda unit: (*unit.age, unit.id))
        places = (self.turn(ref.seq) for unit in units for ref in unit.refs)
        return [place for place in places if place]


@dataclass(frozen=True)
class Held:
    """What is known of a library: its records and its exchanges, and where both lie."""

    records: RecordStore
    index: VectorIndex
    units: Units
    near: VectorIndex

    def is_open(self, name: str) -> bool:
        """Whether there is such an exchange, and no episode holds all of it."""
        return name in self.units and self.units.records[name].state != HELD

    def move(self, name: str, state: str, to: str) -> bool:
        """Let an exchange that stands there stand elsewhere until the library is looked at anew."""
        if name not in self.units or self.units.records[name].state != state:
            return False
        self.units.move(name, to)
        self.near.sync(self.units, (name,))
        return True


class Holding:
    """Gives `Held` of the view that was asked for last, for one thread at a time."""

    def __init__(self, records: Loaded) -> None:
        self._records, self._units = records, Loaded(Units.of)

    @contextmanager
    def at(self, view: View) -> Iterator[Held]:
        """As `Loaded.at`; the exchanges may be moved."""
        with self._records.at(view) as (records, index), self._units.at(view) as (units, near):
            assert isinstance(units, Units)
            yield Held(records, index, units.copy(), near)


def recurs(units: Units, near: VectorIndex, name: str, theta: float, count: int) -> list[str]:
    """The raw exchanges in which one recurs (Eq. 5); fewer than `count`, itself among them, are none.

    The paper's text asks for `count` others; its Appendix B and its code count the new one, as is done
    here.
    """
    row: Row = near.row(name)
    found = near.nearest(row, 2 * count, (RAW,), without=(name,))
    close = [other for other, cosine in found if cosine >= theta]
    return close if len(close) + 1 >= count else []


def crowded(near: VectorIndex, names: Sequence[str], theta: float, count: int) -> set[str]:
    """The exchanges that may make a cluster with others of them, in whatever order they came."""
    rows = np.stack([near.row(name) for name in names])
    found: set[str] = set()
    for at in range(0, len(rows), AT_ONCE):
        close = (rows[at : at + AT_ONCE] @ rows.T >= theta - SLACK).sum(axis=1)
        found.update(names[at + place] for place in np.flatnonzero(close >= count).tolist())
    return found
