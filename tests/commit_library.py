"""A library before a transaction over five files, and what people do while that is carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_disk import Call, Hook

from infinimem.model import Move, NewEntry, Plan, Turn
from infinimem.store.library import Library, init
from infinimem.store.view import Applied


def fill(library: Library, *texts: str) -> list[int]:
    told = library.record([Turn(text, time="2025-03-01", session="s") for text in texts])
    outcome = library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    assert isinstance(outcome, Applied)
    return [place.seq for place in outcome.added]


def consolidation(seqs: list[int]) -> Plan:
    """Five files: the buffer, two topics, an archive, and a document that is new."""
    old, tea, home, new, again = seqs
    return Plan(
        "consolidate",
        moves=(
            Move(tea, "topics/tea", "Tea"),
            Move(home, "topics/home", "Rooms"),
            Move(new, "topics/new", "New"),
            Move(again, "topics/tea", why="duplicate", by=old),
        ),
    )


def prepared(root: Path) -> tuple[Library, list[int]]:
    library = init(root)
    old, place = fill(library, "Drinks green tea", "Lives in Lisbon")
    library.apply(
        Plan("consolidate", moves=(Move(old, "topics/tea", "Tea"), Move(place, "topics/home", "Rooms")))
    )
    return library, [old, *fill(library, "Likes oolong", "Has a balcony", "Plays chess", "Drinks green tea")]


@dataclass(frozen=True)
class Doing:
    """What somebody does just before a call to the disk, or just after it.

    Args:
        name: of the call.
        path: one of its arguments.
        act: what they do.
        nth: which of the calls of that name with that path.
        after: whether the call was made already.
    """

    name: str
    path: Path
    act: Callable[[], object]
    nth: int = 1
    after: bool = False


def doing(*doings: Doing) -> Hook:
    """For `hooked`: each of these is done in its moment."""
    times: Counter[tuple[str, Path]] = Counter()

    def hook(call: Call) -> Any:
        now = [one for one in doings if one.name == call.name and call.names(one.path)]
        times.update({(one.name, one.path) for one in now})
        now = [one for one in now if one.nth == times[one.name, one.path]]
        for one in now:
            if not one.after:
                one.act()
        made = call()
        for one in now:
            if one.after:
                one.act()
        return made

    return hook
