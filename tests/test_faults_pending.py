"""A model that is away while turns come in, and turns that are left for later: the folder's bytes say all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fault_library import lines, problems, tree

from infinimem import Turn, open_memory
from infinimem.errors import ModelUnavailable
from infinimem.llm.base import LLM, Reply, Task
from infinimem.memory import Memory
from infinimem.testing import ScriptedLLM

MORNING = ("I moved to Lisbon in March.", "My sister Rita visits on 14 June.", "Thanks!")
LATER = ("I am allergic to peanuts.",)
START = datetime(2025, 5, 1, 9, tzinfo=UTC)


def turns(texts: Sequence[str], session: str) -> list[Turn]:
    return [
        Turn(text, time=f"2025-05-01T0{number}:00:00", session=session, turn=f"{session}:{number}")
        for number, text in enumerate(texts)
    ]


def at(hour: int) -> Callable[[], datetime]:
    return lambda: START + timedelta(hours=hour)


def offline(root: Path, hour: int = 0, model: LLM | None = None) -> Memory:
    return open_memory(root, model=model or "offline", create=True, clock=at(hour))


def dead() -> ScriptedLLM:
    return ScriptedLLM({"extract": lambda variables: ModelUnavailable("no answer from localhost:1")})


class Killed(BaseException):
    """The process ends here."""


class Dying:
    """A model during whose first answer the process is killed."""

    name = "dying"

    def complete(self, task: Task, variables: Any) -> Reply:
        raise Killed


def evidence(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path.startswith("evidence/")}


def never_away(root: Path) -> dict[str, bytes]:
    """The folder as it is where the model was there all the time."""
    memory = offline(root)
    memory.observe(turns(MORNING, "s1"))
    offline(root, 1).observe(turns(LATER, "s2"))
    return tree(root)


def left_pending(root: Path, model: LLM, error: type[BaseException]) -> None:
    """Turns come in and nothing is drawn from them: they are recorded, CURRENT is untouched."""
    memory = offline(root, model=model)
    before = tree(root)
    with pytest.raises(error):
        memory.observe(turns(MORNING, "s1"))
    after = tree(root)
    assert {path: data for path, data in after.items() if path in before} == before
    assert after.keys() - before.keys() == evidence(after).keys() - evidence(before).keys() != set()
    for text in MORNING:
        assert any(text.encode() in data for data in evidence(after).values())
    told = {place.seq: place.text for place in memory.view.entries("evidence")}
    assert sorted(told.values()) == sorted(MORNING)
    assert problems(root, told) == []
    assert offline(root).status()["pending"] == len(MORNING)


@pytest.mark.parametrize(
    ("model", "error"), [(dead, ModelUnavailable), (Dying, Killed)], ids=["away", "kill"]
)
def test_an_hour_later_it_is_as_if_nothing_had_been(
    tmp_path: Path, model: Callable[[], LLM], error: type[BaseException]
) -> None:
    root = tmp_path / "m"
    left_pending(root, model(), error)
    memory = offline(root, 1)
    drawn = memory.observe(turns(LATER, "s2"))
    assert memory.status()["pending"] == 0
    assert [place.entry.origin for place in drawn] == [(1,), (2,), (4,)]
    there = tree(root)
    assert memory.observe([]) == ()
    assert tree(root) == there

    # The seqs differ: where the model was there, entries came before the later turn. Nothing else does.
    other = never_away(tmp_path / "other")
    assert {path: plain(data) for path, data in there.items()} == {
        path: plain(data) for path, data in other.items()
    }


def plain(data: bytes) -> list[str]:
    """The lines of a file without seqs and origins."""
    return [re.sub(r"seq=\d+|origin=[\d+-]+", "", line) for line in data.decode().splitlines()]


@pytest.mark.parametrize("how", ["observe", "consolidate"])
def test_later_without_a_new_turn_the_bytes_are_the_very_same(tmp_path: Path, how: str) -> None:
    left_pending(tmp_path / "m", dead(), ModelUnavailable)
    open_memory(tmp_path / "other", model="offline", create=True, clock=at(0)).observe(turns(MORNING, "s1"))
    for name in ("m", "other"):
        memory = offline(tmp_path / name, 1)
        memory.observe([])
        if how == "consolidate":
            memory.consolidate()
    assert tree(tmp_path / "m") == tree(tmp_path / "other")


def test_the_same_turns_sent_again_are_drawn_from_once(tmp_path: Path) -> None:
    root = tmp_path / "m"
    left_pending(root, dead(), ModelUnavailable)
    said = evidence(tree(root))
    memory = offline(root, 1)
    assert len(memory.observe(turns(MORNING, "s1"))) == 2
    assert evidence(tree(root)) == said
    assert memory.observe(turns(MORNING, "s1")) == ()
    assert len(lines(memory.view)) == len(MORNING) + 2
