"""The subconscious: every exchange as it was said, with its vector; those that are in no episode are open.

It is derived from the files: no model is asked, and nothing of it is kept. Source: RecMem, sections 3.1 and
3.2, Eq. 2 to 4.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from infinimem.model import Located
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.recmem.spec import SPEC
from infinimem.strategies.records.record import Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore, SharedDict
from infinimem.strategies.segment import ends_exchange
from infinimem.strategies.vector_index import Loaded, VectorIndex

OPEN, HELD = "open/", "held/"
"""Where exchanges stand, in place of folders: in no episode; in one."""

EPISODE, FACT = SPEC.kinds
_PREFIX = "rx"
GOES_ON = 1 << 62
"""Stands for the turn that ends an exchange which none has ended yet."""


@dataclass(frozen=True, slots=True)
class Exchange(Record):
    """An exchange; `refs` are those of its turns that are in no episode, or if there is none all of them.

    Args:
        state: where it stands.
        turns: all of its turns.
        by: the turn that ended it, or `GOES_ON`.
    """

    state: str = OPEN
    turns: tuple[int, ...] = ()
    by: int = GOES_ON

    @property
    def folder(self) -> str:
        return self.state

    @property
    def text(self) -> str:
        return self.summary

    @property
    def place(self) -> tuple[int, int]:
        """The order in which exchanges end; those that go on come last."""
        return self.by, self.turns[-1]


def split(turns: Iterable[Located], starts: Sequence[int]) -> Iterator[tuple[list[Located], int]]:
    """Turns of a session as exchanges, each with the turn that ended it, or `GOES_ON`.

    One ends before its first speaker is back after a reply, and with the first turn of another session.

    Args:
        starts: the first turns of all sessions, ascending.
    """
    said: list[Located] = []
    for turn in turns:
        other = _after(starts, said[-1]) if said else GOES_ON
        if other < turn.seq or (said and ends_exchange(said, turn)):
            yield said, min(other, turn.seq)
            said = []
        said.append(turn)
    if said:
        yield said, _after(starts, said[-1])


def _after(starts: Sequence[int], turn: Located) -> int:
    """The first turn of the next session that begins after a turn."""
    at = bisect_right(starts, turn.seq)
    return starts[at] if at < len(starts) else GOES_ON


class Exchanges(RecordStore):
    """The exchanges of a library, as records that stand in no file."""

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
        self._firsts: SharedDict[str, int] = SharedDict()
        """The first turn of each session; 0 where another file has it too."""
        self._starts: Sequence[int] = ()

    @classmethod
    def of(
        cls, view: View, known: Exchanges | None = None, changed: Collection[str] | None = None
    ) -> Exchanges:
        """The exchanges as a view shows them (`View.derived`); see `RecordStore.load`."""
        if known is None or changed is None:
            known, changed = cls(view), view.ids("evidence")
        sessions = {doc_id for doc_id in changed if doc_id.startswith(EVIDENCE)}
        if not all(known._grew(view, doc_id) for doc_id in sessions):
            return cls.of(view)
        new = known.copy()
        new.view, new.files = view.bare(), view.derived(RecordStore.load)
        if begun := sorted(_first(view, doc_id) for doc_id in sessions - known._firsts.keys()):
            new._starts = [*known._starts, *filter(None, begun)]
            new._firsts.update((doc_id, _first(view, doc_id)) for doc_id in sessions)
            ends = ((doc_id, known.records[names[-1]].by) for doc_id, names in known._by_session.items())
            sessions |= {doc_id for doc_id, by in ends if by == GOES_ON}
        for doc_id in sorted(sessions):
            new._settle(view, doc_id)
        files = [doc_id for doc_id in changed if doc_id.startswith(SPEC.record_folders)]
        renamed = {seq for one in (known.files, new.files) for name in files for seq in one.turns_in(name)}
        for name in sorted({new.of_turn[seq] for seq in renamed if seq in new.of_turn}):
            unit = new.records[name]
            said = [turn for turn in map(new.turn, unit.turns) if turn]
            told = view.lines.cited_by(EPISODE.prefix, unit.turns[0], unit.turns[-1])
            if len(said) == len(unit.turns):
                new._put(_unit(said, unit.by, told))
        waiting = {*new.waiting, *new.records.changed(known.records)}
        unread = {*view.lines.waiting()}
        found = (new.records[name] for name in waiting if new.is_open(name))
        new.waiting = {unit.id for unit in found if unit.by == GOES_ON or unit.by in unread}
        return new

    def _grew(self, view: View, doc_id: str) -> bool:
        """Whether a session is new and begins last, or its turns are those that it had and further ones."""
        had = [seq for name in self._by_session.get(doc_id, ()) for seq in self.records[name].turns]
        now = [turn.seq for turn in _turns(view, doc_id)]
        if now[: len(had)] != had or any(seq in self.of_turn for seq in now[len(had) :]):
            return False
        first = _first(view, doc_id)
        return first == self._firsts.get(doc_id, first) and (
            doc_id in self._firsts or not first or first > max(self._starts, default=0)
        )

    def _settle(self, view: View, doc_id: str) -> None:
        """Let the exchanges of a session be as they are now."""
        turns = _turns(view, doc_id)
        told = view.lines.cited_by(EPISODE.prefix, turns[0].seq, turns[-1].seq, doc_id) if turns else ()
        units = {unit.id: unit for unit in (_unit(*one, told) for one in split(turns, self._starts))}
        for old in map(self.records.__getitem__, self._by_session.pop(doc_id, ())):
            for seq in old.turns:
                self.of_turn.pop(seq, None)
            if old.id not in units:
                del self.records[old.id]
        for name, unit in units.items():
            self.of_turn.update(dict.fromkeys(unit.turns, name))
            self._put(unit)
        if units:
            self._by_session[doc_id] = tuple(units)

    def _put(self, unit: Exchange) -> None:
        if self.records.get(unit.id) != unit:
            self.records[unit.id] = unit

    def is_open(self, name: str) -> bool:
        """Whether there is such an exchange, and no episode holds all of it."""
        return name in self.records and self.records[name].state == OPEN

    def open(self) -> list[str]:
        """All that are in no episode, in the order in which they end."""
        return self.in_order(name for name, unit in self.records.items() if unit.state == OPEN)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Exchanges in the order in which they end."""
        return sorted(names, key=lambda name: self.records[name].place)

    def said(self, names: Iterable[str]) -> list[Located]:
        """The turns of exchanges, by time and then in order."""
        units = sorted((self.records[name] for name in names), key=lambda unit: (*unit.age, unit.id))
        places = (self.turn(ref.seq) for unit in units for ref in unit.refs)
        return [place for place in places if place]


def _turns(view: View, doc_id: str) -> list[Located]:
    entries = view.document(doc_id).entries if doc_id in view else ()
    return sorted((turn for turn in entries if not view.repeats(turn)), key=lambda turn: turn.seq)


def _first(view: View, doc_id: str) -> int:
    entries = view.document(doc_id).entries if doc_id in view else ()
    return entries[0].seq if entries and not view.repeats(entries[0]) else 0


def _unit(said: Sequence[Located], by: int, told: Collection[int]) -> Exchange:
    """An exchange as it is embedded (Eq. 4), without its day: exchanges of a day would be near for it."""
    left = [turn for turn in said if turn.seq not in told]
    spoken = (turn.entry for turn in left or said)
    rows = ((one.fields.get("speaker") or one.role, one.text) for one in spoken)
    return Exchange(
        record_id(_PREFIX, said[0].seq),
        SPEC,
        "\n".join(f"{who}: {text}" for who, text in rows),
        time=said[-1].entry.time,
        refs=tuple(Ref(turn.seq) for turn in left or said),
        state=OPEN if left else HELD,
        turns=tuple(turn.seq for turn in said),
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
