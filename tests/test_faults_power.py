"""The power fails at any moment: what was acknowledged is there, once and whole, and nothing else is half.

The disk is a model (fault_power.py) that may lose, tear and reorder whatever was not synced. That it sees
what matters is a test too (test_faults_syncs.py). Each run looks at other states: the seed is printed where
a test fails, and $INFINIMEM_SEED repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fault_library import parsed_once as parsed_once
from fault_library import seed as seed
from fault_power_runs import WORKLOADS, Run, appends, wandering
from fault_power_search import Search
from fault_power_search import scratch as scratch


def losses(search: Search, work: Callable[[Run], None], share: int) -> None:
    """Look at `share` states of a run, and at some of runs that mend what a loss of power left of it."""
    tape = search.record("run", work)
    wrong = search.explore(tape, share)
    for again in search.interrupted(tape, 2):
        wrong += search.explore(again, share // 4)
    assert not wrong, f"{search.states} states:\n" + "\n\n".join(wrong)


# In what is appended the most went unnoticed: of every byte of a line's end another state follows.
@pytest.mark.parametrize(
    ("work", "share"),
    [
        *(pytest.param(work, 300 if work is appends else 40, id=work.__name__) for work in WORKLOADS),
        *(pytest.param(work, 1000, id=f"{work.__name__}-long", marks=pytest.mark.soak) for work in WORKLOADS),
    ],
)
def test_a_loss_of_power_takes_nothing_that_was_acknowledged(
    scratch: Path, seed: int, work: Callable[[Run], None], share: int
) -> None:
    losses(Search(scratch, seed), work, share)


@pytest.mark.parametrize(
    "size", [pytest.param(40, id="short"), pytest.param(50_000, id="long", marks=pytest.mark.soak)]
)
def test_it_takes_nothing_from_runs_at_random(scratch: Path, seed: int, size: int) -> None:
    search = Search(scratch, seed)
    while search.states < size:
        losses(search, wandering(search.chance.randrange(10**9)), min(1000, size))
