"""Extraction over HTTP: a turn is asked about once, portions go side by side and are applied in order."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_server import Say, chat, refuse, serve

from infinimem import Turn, open_memory
from infinimem.errors import ModelUnavailable
from infinimem.llm.openai_client import OpenAIClient
from infinimem.memory import Memory

WAIT = 60.0
"""Seconds for threads that have to meet."""


def bees(request: Mapping[str, Any]) -> list[dict[str, str]]:
    """The turns that a request asks about."""
    shown = request["messages"][-1]["content"]
    found = re.findall(r"^\[(\d+)\].*: (I keep \d+ bees\.)$", shown, re.MULTILINE)
    return [{"id": seq, "text": text} for seq, text in found]


def extracted(request: Mapping[str, Any]) -> Say:
    """Each turn as it was said."""
    entries = [{"text": t["text"], "from": [t["id"]], "when": None, "refers": None} for t in bees(request)]
    return chat(json.dumps({"entries": entries}))


def memory_of(root: Path, url: str, **infini: object) -> Memory:
    root.mkdir()
    (root / "infinimem.toml").write_text(
        "".join(["[infini]\n", *(f"{k} = {json.dumps(v)}\n" for k, v in infini.items())])
    )
    client = OpenAIClient("m", base_url=url, api_key="k", timeout=WAIT, retries=0)
    return open_memory(root, model=client, trust=True)


def said(number: int) -> Turn:
    return Turn(f"I keep {number} bees.", session=f"s{number}")


def test_of_threads_one_asks_about_a_pending_turn(tmp_path: Path) -> None:
    both, release = threading.Barrier(2, timeout=WAIT), threading.Event()

    def slowly(request: dict[str, Any]) -> Say:
        release.wait(0.2)  # the other thread has recorded its turn, and sees this one pending
        return extracted(request)

    with serve(slowly) as server:
        memory = memory_of(tmp_path / "library", server.url)

        def observe(number: int) -> None:
            memory.record([said(number)])
            both.wait()
            memory.observe([])

        threads = [threading.Thread(target=observe, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        asked = [turn["text"] for request in server.requests for turn in bees(request)]
    assert sorted(asked) == ["I keep 1 bees.", "I keep 2 bees."]
    assert len(list(memory.view.entries())) == 2


def test_portions_are_asked_about_side_by_side_and_applied_in_order(tmp_path: Path) -> None:
    three, ended = threading.Barrier(3, timeout=WAIT), [threading.Event() for _ in range(5)]
    ended[4].set()

    def backwards(request: dict[str, Any]) -> Say:
        number = int(bees(request)[0]["text"].split()[2])
        if number:  # the first comes alone, for there are no topics yet
            three.wait()  # all three are being asked for at once
            ended[number + 1].wait(WAIT)
            ended[number].set()
        return extracted(request)

    with serve(backwards) as server:
        memory = memory_of(tmp_path / "library", server.url, feed="turn", workers=3)
        memory.observe([said(number) for number in range(4)])
    texts = [place.entry.text for place in memory.view.buffer.entries]
    assert texts == ["I keep 0 bees.", "I keep 1 bees.", "I keep 2 bees.", "I keep 3 bees."]


def test_what_came_before_a_failure_is_kept_and_the_rest_stays_pending(tmp_path: Path) -> None:
    def second_fails(request: dict[str, Any]) -> Say:
        return refuse(400, "no") if "keep 1 bees" in str(bees(request)) else extracted(request)

    with serve(second_fails) as server:
        memory = memory_of(tmp_path / "library", server.url, feed="turn", workers=3)
        with pytest.raises(ModelUnavailable):
            memory.observe([said(number) for number in range(5)])
    assert [place.entry.text for place in memory.view.buffer.entries] == ["I keep 0 bees."]
    assert [place.entry.text for place in memory.view.uncited()] == [
        f"I keep {n} bees." for n in (1, 2, 3, 4)
    ]
