"""The work that fault tests disturb: three appends, and a consolidation of five files.

It can be repeated: whatever was done before is not done again, so after any fault a second run leads to the
same library.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from fault_disk import hooked, nothing
from fault_library import problems

from infinimem.model import CURRENT, Derived, Located, Move, NewEntry, Plan, Turn
from infinimem.store.files import Files
from infinimem.store.library import Library, init
from infinimem.store.sequence import MARK
from infinimem.store.state import check
from infinimem.store.view import Applied

Point = TypeVar("Point")
Acknowledge = Callable[[Sequence[Located]], object]
"""Told the lines that a call returned, after it returned."""

BEFORE = (
    ("I live in Porto.", "topics/home"),
    ("Ana is allergic to peanuts.", "topics/food"),
    ("I drink green tea.", "topics/tea"),
)
TOLD = (
    Turn("I moved to Lisbon in March.", time="2025-03-03", session="old", key="a"),
    Turn("My bike is red,\nits lock is blue.", time="2025-03-04", session="new", key="b"),
    Turn("Ana is allergic to peanuts.", time="2025-03-05", session="new", key="c"),
)


def prepare(root: Path) -> None:
    """A library with three topics, one line in each."""
    library = init(root)
    for text, topic in BEFORE:
        tell(library, Turn(text, time="2025-03-01", session="old"))
        outcome = library.apply(Plan("consolidate", moves=(_move(library.view().buffer.entries[0], topic),)))
        assert isinstance(outcome, Applied)


def work(root: Path, acknowledge: Acknowledge) -> None:
    """Open the library, append three times, consolidate. No person was there: `stamp` has nothing to do."""
    library = opened(root)
    for turn in TOLD:
        tell(library, turn, acknowledge)
    library.adopt_edits()
    consolidate(library)


def opened(root: Path) -> Library:
    """The library an hour later, so that what the store looks after with time is looked after each time,
    however long the tests run."""
    return Library(root, clock=lambda: datetime.now(UTC) + timedelta(hours=1))


def tell(library: Library, turn: Turn, acknowledge: Acknowledge = len) -> None:
    """Record a turn, and draw an entry from whatever is still to be drawn from."""
    acknowledge(library.record([turn]))
    waiting = library.view().uncited()
    if waiting:
        outcome = library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in waiting)))
        assert isinstance(outcome, Applied)
        acknowledge(outcome.added)


def consolidate(library: Library) -> None:
    """CURRENT to a topic that grows and to one that is new, a duplicate to the archive, one topic away."""
    view = library.view()
    survivors = {place.text: place for place in view.entries() if place.doc_id != CURRENT}
    moves = []
    for place in view.buffer.entries:
        if (survivor := survivors.get(place.text)) is not None:
            moves.append(Move(place.seq, survivor.doc_id, why="duplicate", by=survivor.seq))
        else:
            moves.append(_move(place, "topics/home" if "Lisbon" in place.text else "topics/bike"))
    if not moves:
        return
    moves += [_move(place, "topics/food") for place in view.document("topics/tea").entries]
    derived = Derived("topics/home", "where I live", tuple(move.seq for move in moves[:1]))
    outcome = library.apply(Plan("consolidate", moves=tuple(moves), derived=(derived,)))
    assert isinstance(outcome, Applied), outcome


def _move(place: Located, topic: str) -> Move:
    return Move(place.seq, topic, "Facts")


def state(root: Path) -> dict[str, int]:
    """What stands where, and what receipts there are; the same after every undisturbed or repeated run."""
    library = opened(root)
    view = library.view()
    places = [place for scope in ("default", "archive", "evidence") for place in view.entries(scope)]
    found = Counter(f"{place.doc_id}: {place.text}" for place in places)
    found.update(f"{receipt.op}, {len(receipt.rows)} rows" for receipt in library.receipts())
    return dict(found)


def wrong(root: Path, told: Mapping[int, str], expected: Mapping[str, int]) -> list[str]:
    """What is wrong after a fault; then the work is done again, and must end where it always ends.

    Args:
        root: the library.
        told: text by seq of all that was acknowledged.
        expected: `state` of an undisturbed run.
    """
    with hooked(nothing):
        try:
            found = problems(root, told)
            work(root, len)
            found += [f"done again: {problem}" for problem in problems(root, told)]
            ended = state(root)
        except Exception as error:
            return [f"cannot be opened, or worked with: {error!r}"]
    differ = {line for line, _ in ended.items() ^ expected.items()}
    return found + [f"{ended.get(line)} times: {line}" for line in sorted(differ)]


def copy(library: Path, to: Path) -> Path:
    """A fresh copy, its machine state too, in place of what was there."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(library, to)
    check(Files(to), claim=True)
    if mark := (to / MARK).read_bytes().split()[:1] if (to / MARK).exists() else []:
        (to / MARK).write_bytes(mark[0] + b"\n")  # in the place of the first one, which counts no further
    return to


def only_wrong(found: Mapping[Point, list[str]]) -> dict[Point, list[str]]:
    """The points where something was wrong, and what."""
    return {point: violations for point, violations in found.items() if violations}


def append_to(file: Path) -> Acknowledge:
    """Acknowledge in a file, where it stays when this process is killed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        descriptor = os.open(file, flags)
    except OSError:  # one failure, and it was meant for the library
        descriptor = os.open(file, flags)

    def acknowledge(lines: Sequence[Located]) -> None:
        told = f"{json.dumps([(line.seq, line.text) for line in lines])}\n".encode()
        with suppress(OSError):  # likewise
            os.write(descriptor, told)
            return
        os.write(descriptor, told)

    return acknowledge


def acknowledged(file: Path) -> dict[int, str]:
    """Text by seq of what a process had acknowledged in a file."""
    if not file.exists():
        return {}
    whole = (line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n"))
    return {seq: text for line in whole for seq, text in json.loads(line)}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that the work begins with."""
    root = tmp_path_factory.mktemp("prepared") / "library"
    with hooked(nothing):
        prepare(root)
    return root


@pytest.fixture(scope="module")
def expected(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """`state` of a library whose work was not disturbed."""
    root = copy(prepared, tmp_path_factory.mktemp("expected") / "library")
    with hooked(nothing):
        work(root, len)
    return state(root)
