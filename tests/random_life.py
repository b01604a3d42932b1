"""What happens to a library of records: people talk, edit, forget and take back, in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence

from infinimem import Turn
from infinimem.errors import LibraryError, UsageError
from infinimem.memory import Memory

_STEPS = ("say", "say", "say", "consolidate", "forget", "undo", "edit", "rebuild")


def live(
    memory: Memory,
    chance: random.Random,
    steps: int,
    say: Callable[[], Sequence[Turn]],
    edit: Callable[[], None],
    sound: Callable[[Collection[int]], None],
) -> None:
    """Let so many things happen to a library that is empty.

    Args:
        say: gives what is said next.
        edit: a person changes a file, if there is one.
        sound: looks at the library after each step; it is told the seqs of all turns that it holds.
    """
    said: set[int] = set()
    for _ in range(steps):
        step = chance.choice(_STEPS)
        if step == "say":
            said |= {place.seq for place in memory.record(say())}
        elif step == "consolidate":
            memory.consolidate()
        elif step == "forget" and said:
            said -= {*memory.forget([chance.choice(sorted(said))]).seqs}
        elif step == "undo" and memory.receipts():
            try:
                memory.undo()
            except (LibraryError, UsageError):
                continue
        elif step == "edit":
            edit()
        elif step == "rebuild":
            memory.rebuild()
        memory.observe(())
        sound(said)


def named_once(memory: Memory, said: Collection[int], records: Iterable[Sequence[int]]) -> int:
    """That all turns are there and looked at, and in one record at most; how many are in one."""
    view = memory.view
    assert {place.seq for place in view.entries("evidence")} == said
    assert not view.uncited() or memory.unanswered()  # then the model was of no use, and is asked again
    named = [seq for seqs in records for seq in seqs]
    assert len(named) == len(set(named)) and set(named) <= set(said)
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []
    return len(named)
