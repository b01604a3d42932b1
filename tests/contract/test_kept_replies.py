"""Replies of a model are kept: what was asked once costs nothing again, and gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infinimem import Memory, Turn, open_memory
from infinimem.llm.base import Reply, Task
from infinimem.llm.connect import connect
from infinimem.model import Usage
from infinimem.settings import ModelSettings

SYSTEMS = ("infini", "allmem", "gam", "recmem", "xmemory")
SAID = (
    ("Ana", "I moved to Lisbon with my cat Olive in March."),
    ("Ben", "My sister Rita visits me on 14 June with her children."),
    ("Ana", "I am allergic to peanuts, so no satay for me."),
    ("Ben", "I run ten kilometres every Sunday along the river."),
    ("Ana", "I moved to Porto with my cat Olive in May."),
    ("Ben", "My running shoes are worn out, I run every Sunday."),
)
TURNS = tuple(
    Turn(text, speaker=who, session=f"s{day}", time=f"2025-03-0{day}T09:{minute:02}")
    for day in (1, 2, 3)
    for minute, (who, text) in enumerate(SAID)
)


class Model:
    """The rules, behind an address and at ten tokens a call; counts the calls."""

    name, base_url = "small", "http://localhost/v1"

    def __init__(self) -> None:
        self.rules = connect("offline", ModelSettings())
        self.calls: list[str] = []
        self.usage: dict[str, Usage] = {}

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        self.calls.append(task.name)
        return Reply(self.rules.complete(task, variables).data, usage=Usage(1, 9, 1))


class Clock:
    """Goes on by an hour and seven minutes whenever it is asked."""

    def __init__(self, now: datetime = datetime(2025, 4, 1, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=67)
        return self.now


def opened(root: Path, strategy: str, clock: Any = None) -> tuple[Memory, Model]:
    model = Model()
    clock = clock or (lambda: datetime(2025, 4, 1, tzinfo=UTC))
    return open_memory(root, model=model, strategy=strategy, create=True, clock=clock), model


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_a_run_after_a_dry_run_asks_nothing_and_writes_what_was_shown(tmp_path: Path, strategy: str) -> None:
    """A dry run writes nothing into the library; the run after it makes no call and writes the same bytes."""
    memory, model = opened(tmp_path / "m", strategy)
    memory.record(TURNS)
    before = files(tmp_path / "m")
    shown = memory.preview()
    assert shown and model.calls
    there = files(tmp_path / "m")
    assert {path for path in before.keys() | there if before.get(path) != there.get(path)} <= {
        ".infinimem/usage", ".infinimem/lock",
    }  # fmt: skip
    memory, model = opened(tmp_path / "m", strategy)
    memory.consolidate()
    assert model.calls == []
    after = files(tmp_path / "m")
    for doc_id, (_, now) in shown.items():
        assert after[f"{doc_id}.md"] == now, doc_id
    documents = {path for path in after if path[0] != "." and not path.startswith("journal/")}
    assert {path for path in documents if after[path] != before.get(path)} == {f"{one}.md" for one in shown}
    days = memory.status()["spent"].values()
    calls = sum(one["calls"] for one in days)
    assert calls > 0 and sum(one["tokens_in"] for one in days) == 9 * calls


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_the_time_of_day_is_in_no_request(tmp_path: Path, strategy: str) -> None:
    """The same library asks the same at another time of another year."""
    memory, model = opened(tmp_path / "m", strategy, Clock())
    memory.record(TURNS)
    memory.preview()
    assert model.calls
    memory, model = opened(tmp_path / "m", strategy, Clock(datetime(2026, 9, 9, tzinfo=UTC)))
    memory.consolidate()
    assert model.calls == []
