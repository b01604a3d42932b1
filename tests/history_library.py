"""A small library with a past: turns, entries in topics, a line that another superseded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from infinimem.memory import Memory, open_memory
from infinimem.model import Move, NewEntry, Plan, Receipt, Turn
from infinimem.store.view import Applied, Outcome

TALK = (
    Turn("I live in Lisbon.", speaker="Nora", time="2025-03-03T10:00:00", session="s1", turn="D1:1"),
    Turn("I rent a flat near Lisbon castle.", speaker="Nora", time="2025-03-03T10:01:00", session="s1"),
    Turn("I moved to Porto.", speaker="Nora", time="2025-06-01", session="s2", turn="D2:1"),
    Turn("My dog is called Rex.", speaker="Nora", time="2025-06-01", session="s2"),
)
LISBON, FLAT, PORTO, REX = range(5, 9)
"""Seqs of the entries; the turns have 1 to 4."""
HOME, DOG = "topics/home", "topics/dog"


def moved(seq: int, to: str = HOME, heading: str = "Home") -> Move:
    return Move(seq, to, heading)


def superseded(old: int, by: int, to: str = HOME) -> Move:
    return Move(old, to, "", "superseded", by)


def apply(memory: Memory, *moves: Move, op: str = "consolidate", **rest: object) -> Outcome:
    return memory.library.apply(Plan(op, moves=moves, **rest))  # type: ignore[arg-type]


def sorted_into(memory: Memory, *ways: tuple[int, str]) -> Receipt:
    """These lines moved to these documents by one receipt."""
    outcome = apply(memory, *(moved(seq, to, "Facts") for seq, to in ways))
    assert isinstance(outcome, Applied), outcome
    assert outcome.receipt
    return outcome.receipt


def told(root: Path, turns: Iterable[Turn]) -> Memory:
    """A new library with turns, numbered from 1, and behind them an entry of each in the buffer."""
    memory = open_memory(root, model="offline", create=True)
    places = memory.library.record(turns)
    memory.library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in places)))
    return memory


def filled(root: Path) -> Memory:
    """Turns 1-4, drawn from as they are (5-8), sorted by receipt 1; receipt 2 archived 5 in favour of 7."""
    memory = told(root, TALK)
    for outcome in (
        apply(memory, moved(LISBON), moved(FLAT), moved(PORTO), moved(REX, DOG, "Rex")),
        apply(memory, superseded(LISBON, PORTO)),
    ):
        assert isinstance(outcome, Applied)
        assert outcome.receipt
    return memory


def rewrite(memory: Memory, doc_id: str, old: str, new: str) -> None:
    """A person edits a file."""
    path = memory.library.root / f"{doc_id}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
