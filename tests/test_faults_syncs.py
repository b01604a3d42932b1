"""The model of a loss of power sees what matters: with any of the program's syncs taken away, it finds a
folder that is broken. The seed is printed where the test fails, and $INFINIMEM_SEED repeats it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_library import parsed_once as parsed_once
from fault_library import seed as seed
from fault_power_runs import WORKLOADS
from fault_power_search import Search
from fault_power_search import scratch as scratch

NEEDLESS = {
    "_create > stage: file in .infinimem/": "it only tells git what to leave out",
    "_create > sync_folder_of: folder in .infinimem/": "it only tells git what to leave out",
}
"""Syncs without which nothing is lost that matters, and why they are there."""


@pytest.mark.parametrize(
    "size", [pytest.param(60, id="short"), pytest.param(2_000, id="long", marks=pytest.mark.soak)]
)
def test_each_sync_is_missed_when_it_is_taken_away(scratch: Path, seed: int, size: int) -> None:
    search = Search(scratch, 0)  # the same runs, and so the same syncs, each time; what is searched differs
    tapes = [search.record(work.__name__, work) for work in WORKLOADS]
    for number, tape in enumerate(tapes[1:3]):
        tapes += search.interrupted(tape, 2, f"interrupted {number}")
    search.chance.seed(seed)
    left = {role for tape in tapes for role in tape.roles() if role.split(",")[0] not in NEEDLESS}
    for tries in (size // 12, size // 4, size, 8 * size):
        for tape in tapes:
            left -= {role for role in sorted(left) if search.without(tape, role, tries)}
    assert not left, f"{search.states} states; nothing is lost without: {sorted(left)}"
