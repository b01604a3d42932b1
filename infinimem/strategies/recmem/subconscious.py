"""The subconscious: every exchange as it was said, with its vector; those that are in no episode are open.

It is derived from the files: no model is asked, and nothing of it is kept. Source: RecMem, sections 3.1 and
3.2, Eq. 2 to 4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from infinimem.model import Located
from infinimem.spec import Kind, StrategySpec
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.recmem.spec import SPEC
from infinimem.strategies.records.record import Record, Ref, record_id
from infinimem.strategies.records.record_store import Loaded, RecordStore, SharedDict, VectorIndex
from infinimem.strategies.segment import ends_exchange

EPISODE, FACT = SPEC.kinds
UNITS = StrategySpec("exchanges", "", writes=(), archived="held/", kinds=(Kind("exchange", "rx", "open/"),))
"""As if exchanges were records: those that an episode holds stand where archived ones would."""
OPEN, HELD = UNITS.record_folders
GOES_ON = 1 << 62
"""Stands for the turn that ends an exchange which none has ended yet."""


@dataclass(frozen=True, slots=True)
class Exchange(Record):
    """An exchange, `visible` while it is in no episode; `refs` are those of its turns that are in none, or if
    there is none all of them.

    Args:
        turns: all of its turns.
        by: the turn of its session that ended it, or `GOES_ON`.
    """

    turns: tuple[int, ...] = ()
    by: int = GOES_ON

    @property
    def text(self) -> str:
        return self.summary


def split(turns: Iterable[Located], starts: Sequence[int]) -> Iterator[tuple[list[Located], int]]:
    """Turns of a session as exchanges, each with the turn of the session that ended it, or `GOES_ON`.

    One ends before its first speaker is back after a reply, and with the first turn of another session.

    Args:
        starts: the first turns of all sessions, ascending.
    """
    said: list[Located] = []
    for turn in turns:
        if said and (
            ends_exchange(said, turn) or bisect_right(starts, said[-1].seq) < bisect_left(starts, turn.seq)
        ):
            yield said, turn.seq
            said = []
        said.append(turn)
    if said:
        yield said, GOES_ON


class Exchanges(RecordStore):
    """The exchanges of a library (S_sub), as records that stand in no file."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.files = RecordStore(view)
        """The records that stand in files."""
        self.records: SharedDict[str, Exchange]  # type: ignore[assignment]
        self.of_turn: SharedDict[int, str] = SharedDict()
        """The exchange of each turn."""
        self.waiting: set[str] = set()
        """Open ones that go on, or that were not looked at since they ended."""
        self._by_session: SharedDict[str, tuple[str, ...]] = SharedDict()
        self._starts: Sequence[int] = ()
        """The first turn of each session, ascending."""

    @classmethod
    def of(
        cls, view: View, known: Exchanges | None = None, changed: Collection[str] | None = None
    ) -> Exchanges:
        """The exchanges as a view shows them (`View.derived`); all anew, unless sessions only go on or begin
        behind all others."""
        if known is None or changed is None:
            known, changed = cls(view), view.ids("evidence")
        sessions = {doc_id for doc_id in changed if doc_id.startswith(EVIDENCE)}
        if not all(known._grew(view, doc_id) for doc_id in sessions):
            return cls.of(view)
        new = known.copy()
        new.view, new.files = view.bare(), view.derived(RecordStore.load)
        last = max(known._starts[-1:], default=0)
        begun = sorted(first for doc_id in sessions if (first := _first(view, doc_id)) > last)
        new._starts = [*known._starts, *begun]
        for doc_id in sorted(sessions):
            new._settle(view, doc_id)
        files = [doc_id for doc_id in changed if doc_id.startswith(SPEC.record_folders)]
        renamed = {seq for one in (known.files, new.files) for name in files for seq in one.turns_in(name)}
        for name in sorted({new.of_turn[seq] for seq in renamed if seq in new.of_turn}):
            unit = new.records[name]
            turns = [turn for turn in map(new.turn, unit.turns) if turn]
            held = view.lines.cited_by(EPISODE.prefix, unit.turns[0], unit.turns[-1])
            if len(turns) == len(unit.turns):
                new._put(_unit(turns, unit.by, held))
        unread, moved = {GOES_ON, *view.lines.waiting()}, new.records.changed(known.records)
        units = (new.records[name] for name in new.waiting | moved if new.is_open(name))
        new.waiting = {unit.id for unit in units if new.ended_by(unit.id) in unread}
        return new

    def _grew(self, view: View, doc_id: str) -> bool:
        """Whether a session is new and begins last, or its turns are those that it had and further ones."""
        had = [seq for name in self._by_session.get(doc_id, ()) for seq in self.records[name].turns]
        now, first = [turn.seq for turn in _turns(view, doc_id)], _first(view, doc_id)
        in_order = bool(had) or not first or first > max(self._starts[-1:], default=0)
        return in_order and now[: len(had)] == had and self.of_turn.keys().isdisjoint(now[len(had) :])

    def _settle(self, view: View, doc_id: str) -> None:
        """Let the exchanges of a session be as they are now."""
        turns = _turns(view, doc_id)
        held = view.lines.cited_by(EPISODE.prefix, turns[0].seq, turns[-1].seq, doc_id) if turns else ()
        units = [_unit(*one, held) for one in split(turns, self._starts)]
        for unit in units:
            self.of_turn.update(dict.fromkeys(unit.turns, unit.id))
            self._put(unit)
        if units:
            self._by_session[doc_id] = tuple(unit.id for unit in units)

    def _put(self, unit: Exchange) -> None:
        if self.records.get(unit.id) != unit:
            self.records[unit.id] = unit

    def is_open(self, name: str) -> bool:
        """Whether there is such an exchange, and no episode holds all of it."""
        return name in self.records and self.records[name].visible

    def open(self) -> list[str]:
        """All that are in no episode, in the order in which they end."""
        return self.in_order(name for name, unit in self.records.items() if unit.visible)

    def ended_by(self, name: str) -> int:
        """The turn that ended an exchange, of its session or the first of another; or `GOES_ON`."""
        unit, starts = self.records[name], self._starts
        at = bisect_right(starts, unit.turns[-1])
        return min(unit.by, starts[at]) if at < len(starts) else unit.by

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Exchanges in the order in which they end; those that go on come last."""
        return sorted(names, key=lambda name: (self.ended_by(name), self.records[name].turns[-1]))

    def said(self, names: Iterable[str]) -> list[Located]:
        """The turns of exchanges, by time and then in order."""
        units = sorted((self.records[name] for name in names), key=lambda unit: (*unit.age, unit.id))
        places = (self.turn(ref.seq) for unit in units for ref in unit.refs)
        return [place for place in places if place]


def _turns(view: View, doc_id: str) -> list[Located]:
    entries = view.document(doc_id).entries if doc_id in view else ()
    return sorted((turn for turn in entries if not view.repeats(turn)), key=lambda turn: turn.seq)


def _first(view: View, doc_id: str) -> int:
    """The first turn of a session; 0 where another file has it too."""
    entries = view.document(doc_id).entries if doc_id in view else ()
    return entries[0].seq if entries and not view.repeats(entries[0]) else 0


def _unit(turns: Sequence[Located], by: int, held: Collection[int]) -> Exchange:
    """An exchange as it is embedded (Eq. 4), without its day: exchanges of a day would be near for it."""
    left = [turn for turn in turns if turn.seq not in held]
    spoken = (turn.entry for turn in left or turns)
    rows = ((one.fields.get("speaker") or one.role, one.text) for one in spoken)
    return Exchange(
        record_id(UNITS.kinds[0].prefix, turns[0].seq),
        UNITS,
        "\n".join(f"{who}: {text}" for who, text in rows),
        time=turns[-1].entry.time,
        refs=tuple(Ref(turn.seq) for turn in left or turns),
        visible=bool(left),
        turns=tuple(turn.seq for turn in turns),
        by=by,
    )


@dataclass(frozen=True)
class Held:
    """What is known of a library: its records and its exchanges, and where both lie."""

    records: RecordStore
    index: VectorIndex
    units: Exchanges
    near: VectorIndex


@contextmanager
def held(view: View, of_records: Loaded, of_units: Loaded) -> Iterator[Held]:
    """Give what is known of a view, for one thread at a time."""
    with of_records.at(view) as (records, index), of_units.at(view) as (units, near):
        assert isinstance(units, Exchanges)
        yield Held(records, index, units, near)
