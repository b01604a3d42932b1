"""The power fails at any moment: what was acknowledged is there, once and whole, and nothing else is half.

The disk is a model (fault_power.py) that may lose, tear and reorder whatever was not synced. That it sees
what matters is a test too. Each run looks at other states: the seed is printed where
a test fails, and $INFINIMEM_SEED repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fault_library import parsed_once as parsed_once
from fault_library import seed as seed
from fault_power_search import WORKLOADS, Run, Search, appends, wandering
from fault_power_search import scratch as scratch


def name(work: Callable[[Run], None]) -> str:
    return work.__name__


def soak(*values: object) -> object:
    return pytest.param(*values, id="long", marks=pytest.mark.soak)


# In what is appended the most went unnoticed: of every byte of a line's end another state follows.
@pytest.mark.sample(3)
@pytest.mark.parametrize("times", [pytest.param(1, id="short"), soak(25)])
@pytest.mark.parametrize("work", WORKLOADS, ids=name)
def test_a_loss_of_power_takes_nothing_that_was_acknowledged(
    scratch: Path, seed: int, work: Callable[[Run], None], times: int
) -> None:
    search = Search(scratch, seed)
    wrong = search.explore(search.record("run", work), times * (100 if work is appends else 20))
    assert not wrong, f"{search.states} states:\n" + "\n\n".join(wrong)


@pytest.mark.parametrize("size", [pytest.param(40, id="short"), soak(50_000)])
def test_it_takes_nothing_from_runs_at_random(scratch: Path, seed: int, size: int) -> None:
    search = Search(scratch, seed)
    while search.states < size:
        tape, share = search.record("run", wandering(search.chance.randrange(10**9))), min(1000, size)
        wrong = search.explore(tape, share)
        for again in search.interrupted(tape, 2):
            wrong += search.explore(again, share // 4)
        assert not wrong, f"{search.states} states:\n" + "\n\n".join(wrong)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("runs", "share"), [pytest.param(2, 10, id="short"), soak(40, 250)])
@pytest.mark.parametrize("work", WORKLOADS, ids=name)
def test_a_second_loss_while_the_first_is_mended_takes_nothing(
    scratch: Path, seed: int, work: Callable[[Run], None], runs: int, share: int
) -> None:
    search = Search(scratch, seed)
    for again in search.interrupted(search.record("run", work), runs):
        wrong = search.explore(again, share)
        assert not wrong, f"{search.states} states:\n" + "\n\n".join(wrong)


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
    if size < 1000:  # a quarter of them, others each time
        left = {*search.chance.sample(sorted(left), len(left) // 4)}
    for tries in (size // 12, size // 4, size, 8 * size):
        for tape in tapes:
            left -= {role for role in sorted(left) if search.without(tape, role, tries)}
    assert not left, f"{search.states} states; nothing is lost without: {sorted(left)}"
