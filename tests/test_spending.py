"""What models are asked for is capped, estimated, and booked on the day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infinimem import Turn, estimate, open_memory
from infinimem.errors import ModelUnavailable
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.memory import Memory
from infinimem.model import Usage
from infinimem.store.files import Files
from infinimem.store.state import note_usage, usage_by_day


class Paid(OfflineClient):
    """The rules, at a hundred tokens in and ten out a call."""

    def complete(self, task: Task, variables: object) -> Reply:
        reply = super().complete(task, variables)  # type: ignore[arg-type]
        return replace(reply, usage=reply.usage + Usage(0, 100, 10))


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2025, 3, 3, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(params=["infini", "allmem"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    return opened(tmp_path / "m", Paid(), Clock(), request.param)


def opened(root: Path, llm: LLM, clock: Clock, strategy: str = "infini") -> Memory:
    return open_memory(root, model=llm, strategy=strategy, create=True, clock=clock)


TURNS = [Turn(f"I moved to town number {number}.", session=f"s{number}") for number in range(6)]


def test_each_call_of_a_library_is_booked_once(memory: Memory) -> None:
    memory.observe(TURNS)
    memory.consolidate()
    memory.ask("Where did I move?", "hybrid")
    memory.rebuild()
    (booked,) = memory.status()["spent"].values()
    calls = memory.llm.usage.calls
    assert booked == {"calls": calls, "tokens_in": 100 * calls, "tokens_out": 10 * calls}


def test_days_stand_apart(tmp_path: Path) -> None:
    clock = Clock()
    memory = opened(tmp_path / "m", Paid(), clock)
    memory.observe(TURNS[:1])
    clock.now += timedelta(days=1)
    memory.observe(TURNS[1:2])
    assert list(memory.status()["spent"]) == ["2025-03-03", "2025-03-04"]


def test_a_cap_leaves_the_other_turns_pending(memory: Memory) -> None:
    with pytest.raises(ModelUnavailable, match="cap is spent"):
        memory.consolidate(max_tokens=0) or memory.observe(TURNS, max_tokens=0)
    assert len(memory.view.uncited()) == len(TURNS)
    with pytest.raises(ModelUnavailable, match="cap is spent"):
        memory.ask("Where did I move?", "hybrid", max_tokens=0)
    memory.observe((), max_tokens=1_000_000)
    assert memory.view.uncited() == ()


def test_rules_cost_nothing_and_leave_no_book(tmp_path: Path) -> None:
    memory = opened(tmp_path / "m", OfflineClient(), Clock())
    memory.observe(TURNS)
    assert memory.status()["spent"] == {}


def test_calls_that_took_no_tokens_leave_no_book(tmp_path: Path) -> None:
    files = Files(tmp_path)
    for usage in (Usage(1, 9, 0), Usage(1, 0, 9), Usage(1, 0, 0)):
        note_usage(files, "2025-03-04", usage)
    assert usage_by_day(files)["2025-03-04"] == Usage(2, 9, 9)


def test_an_estimate_grows_with_what_is_to_be_done(memory: Memory) -> None:
    view = memory.view
    assert estimate.for_turns(view).tokens == 0
    one, many = (estimate.for_turns(view, ["a turn"] * count).tokens for count in (1, 50))
    assert 0 < one < many
    memory.observe(TURNS)
    assert estimate.for_turns(memory.view).tokens == 0 < estimate.for_turns(memory.view, anew=True).tokens
    assert (
        0
        < estimate.for_question(memory.view, "Where?", "bm25")
        < estimate.for_question(memory.view, "Where?", "agent")
    )
