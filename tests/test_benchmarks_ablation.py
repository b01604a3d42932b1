"""The table of `locomo.py --ablate`, on a conversation written for this."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from infinimem.settings import SearchSettings

CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I moved to Lisbon with my cat Olive last month."},
            {"speaker": "Mel", "dia_id": "D1:2", "text": "My dentist plays the violin in a band."},
        ],
    },
    "qa": [{"question": "Where did Ana move?", "evidence": ["D1:1"], "category": 4}],
}


@pytest.fixture
def locomo(load: Callable[[str], ModuleType]) -> Any:
    return load("locomo")


def test_each_prior_is_switched_off_by_itself(
    locomo: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SearchSettings] = []
    ask = locomo.ask
    monkeypatch.setattr(
        locomo, "ask", lambda talk, memory: (seen.append(memory.view.settings.search), ask(talk, memory))[1]
    )
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps([CONVERSATION]))
    monkeypatch.setattr(sys, "argv", ["locomo.py", "--data", str(data), "--ablate", "--embedder", "lexical"])
    locomo.main()
    table = capsys.readouterr().out.partition("| categories 1-4 |")[2]
    for label in (*locomo.ABLATIONS, "without vectors"):
        assert f"\n| {label} | 1 | 100.0 |" in table
    off = dict.fromkeys(locomo.PRIORS, False)
    assert [SearchSettings(), SearchSettings(people=False)] == seen[:2]
    assert [SearchSettings(**off), SearchSettings(vectors=False)] == seen[-2:]


def test_what_the_settings_switch_is_ablated(locomo: Any) -> None:
    switches = {item.name for item in dataclasses.fields(SearchSettings)} - {"language"}
    assert {*locomo.PRIORS, *locomo.VECTORLESS["without vectors"]} == switches
