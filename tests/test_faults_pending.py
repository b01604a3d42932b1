"""A model that is away while turns come in, and turns that are left for later: the folder's bytes say all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_server import Say, chat, refuse, serve
from fault_library import lines, problems, tree

from infinimem import Turn, open_memory
from infinimem.errors import ModelUnavailable
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.llm.openai_client import OpenAIClient
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


class Answering(OfflineClient):
    """Answers the first calls only."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def complete(self, task: Task, variables: Any) -> Reply:
        self.left -= 1
        if self.left < 0:
            raise ModelUnavailable("no answer from localhost:1")
        return super().complete(task, variables)


@pytest.mark.parametrize("calls", range(4))
def test_what_was_drawn_before_the_model_went_away_stays(tmp_path: Path, calls: int) -> None:
    root = tmp_path / "m"
    offline(root)
    (root / "infinimem.toml").write_text('[infini]\nfeed = "turn"\n')
    memory = offline(root, model=Answering(calls))
    if calls < len(MORNING):
        with pytest.raises(ModelUnavailable):
            memory.observe(turns(MORNING, "s1"))
    else:
        memory.observe(turns(MORNING, "s1"))
    assert memory.status()["pending"] == len(MORNING) - calls
    assert [place.text for place in memory.view.entries()] == list(MORNING[: min(calls, 2)])
    offline(root, 1).observe([])
    assert [place.text for place in offline(root).view.entries()] == list(MORNING[:2])
    assert problems(root, {}) == []


# ── over a real connection ──────────────────────────────────────────────────────────────────────


def client(url: str) -> OpenAIClient:
    return OpenAIClient("m", url, api_key="k", timeout=5, retries=1, sleep=lambda seconds: None)


@pytest.mark.parametrize("answer", [Say(503), Say(200, "{", promise=99), refuse(429, "busy"), None])
def test_an_endpoint_that_is_down_and_comes_back(tmp_path: Path, answer: Say | None) -> None:
    root = tmp_path / "m"
    with serve(answer or Say(503)) as server:
        url = server.url
        if answer is not None:
            left_pending(root, client(url), ModelUnavailable)
    if answer is None:  # nobody listens there any more
        left_pending(root, client(url), ModelUnavailable)
    reply = (
        '{"entries": [{"text": "Moved to Lisbon in March.", "from": ["1"], "when": null, "refers": null}, '
        '{"text": "My sister Rita visits on 14 June.", "from": ["2"], "when": null, "refers": null}]}'
    )
    with serve(chat(reply)) as server:
        memory = offline(root, 1, client(server.url))
        drawn = memory.observe([])
        assert [place.entry.fields.get("by") for place in drawn] == ["model", None]
        assert memory.observe([]) == ()
        assert len(server.requests) == 1
    assert memory.status()["pending"] == 0


UNUSABLE = {
    "talk": chat("I'm sorry, I cannot help with that."),
    "cut off": chat('{"entries": [{"text": "I mo', finish="length"),
    "empty": chat(""),
    "other shape": chat('{"facts": []}'),
    "refused": chat(None, refusal="no"),
    "filtered": refuse(400, "filtered", code="content_filter"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
def test_an_answer_that_stays_unusable_leaves_its_turns_to_be_found_as_they_were_said(
    tmp_path: Path, answer: Say
) -> None:
    root = tmp_path / "m"
    with serve(answer) as server:
        memory = offline(root, model=client(server.url))
        assert memory.observe(turns([*MORNING, "two\n lines"], "s1")) == ()
        assert len(server.requests) < 16  # each turn by itself in the end
        assert memory.observe([]) == memory.observe([]) == ()  # three times
        asked = len(server.requests)
        assert memory.observe([]) == ()
        assert len(server.requests) == asked
    assert memory.status()["pending"] == len(memory.unanswered()) == 4
    again = offline(root)
    assert again.view.unfiled() == (1, 2, 3, 4)
    for number, text in enumerate(MORNING, 1):
        assert number in [seq for item in again.retrieve(text).items for seq in item.seqs]
    assert problems(root, {}) == []
