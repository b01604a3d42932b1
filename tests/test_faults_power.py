"""The power fails at any moment: what was acknowledged is there, once and whole, and nothing else is half.

The disk is a model (fault_power.py) that may lose, tear and reorder whatever was not synced. That it sees
what matters is a test too: with any of the program's syncs taken away, it finds a folder that is broken.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from fault_library import parsed_once as parsed_once
from fault_power_runs import WORKLOADS, wandering
from fault_power_search import Search

MEMORY = Path("/dev/shm")


@pytest.fixture
def scratch(tmp_path: Path, parsed_once: None) -> Iterator[Path]:
    """A folder in memory where there is one."""
    home = Path(tempfile.mkdtemp(dir=MEMORY)) if MEMORY.is_dir() else tmp_path
    try:
        yield home
    finally:
        if home != tmp_path:
            shutil.rmtree(home)


NEEDLESS = {
    "_create > stage: file in .infinimem/": "it only tells git what to leave out",
    "_create > sync_folder_of: folder in .infinimem/": "it only tells git what to leave out",
}
"""Syncs without which nothing is lost that matters, and why they are there."""


def soak(size: int) -> object:
    return pytest.param(size, id="long", marks=pytest.mark.soak)


@pytest.mark.parametrize("size", [pytest.param(400, id="short"), soak(50_000)])
def test_a_loss_of_power_takes_nothing_that_was_acknowledged(scratch: Path, size: int) -> None:
    search = Search(scratch)
    share = min(1000, size // 10)
    for number in count():
        if number >= len(WORKLOADS) and search.states >= size:
            break
        work = WORKLOADS[number] if number < len(WORKLOADS) else wandering(number)
        tape = search.record("run", work)
        wrong = search.explore(tape, share)
        for again in search.interrupted(tape, 2):
            wrong += search.explore(again, share // 4)
        assert not wrong, f"{work.__name__} {number}, {search.states} states:\n" + "\n\n".join(wrong)


@pytest.mark.parametrize("size", [pytest.param(60, id="short"), soak(2_000)])
def test_each_sync_is_missed_when_it_is_taken_away(scratch: Path, size: int) -> None:
    search = Search(scratch)
    tapes = [search.record(work.__name__, work) for work in WORKLOADS]
    for number, tape in enumerate(tapes[1:3]):
        tapes += search.interrupted(tape, 2, f"interrupted {number}")
    left = {role for tape in tapes for role in tape.roles() if role.split(",")[0] not in NEEDLESS}
    for tries in (size // 12, size // 4, size, 8 * size):
        for tape in tapes:
            left -= {role for role in sorted(left) if search.without(tape, role, tries)}
    assert not left, f"{search.states} states; nothing is lost without: {sorted(left)}"
