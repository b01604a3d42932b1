"""The scripts, run on a conversation written for this."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("evidence", "gold"),
    [
        (["D1:1"], ["D1:1"]),
        (["D1:1; D2:3"], ["D1:1", "D2:3"]),
        (["D1:1 D2:3", "D1:1"], ["D1:1", "D2:3"]),
        (["D01:01"], ["D1:1"]),
        (["D9:9", "D", "D:1:2"], []),
        ([], []),
    ],
)
def test_gold_is_mended(load: Any, evidence: list[str], gold: list[str]) -> None:
    assert load("locomo").gold_turns(evidence, {"D1:1", "D2:3"}) == gold


CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Mel",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I moved to Lisbon with my cat Olive last month."},
            {
                "speaker": "Mel",
                "dia_id": "D1:2",
                "text": "My dentist Dr. Vu plays the violin in a band.",
            },
        ],
    },
    "qa": [
        {"question": "Where did Ana move?", "answer": "Lisbon", "evidence": ["D1:1"], "category": 4},
        {"question": "Who plays the violin?", "answer": "Dr. Vu", "evidence": ["D1:2; D7:7"], "category": 1},
        {"question": "No evidence?", "answer": "-", "evidence": [], "category": 3},
    ],
}


def test_locomo_runs(
    load: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps([CONVERSATION]))
    monkeypatch.setattr(sys, "argv", ["locomo.py", "--data", str(data)])
    load("locomo").main()
    table = capsys.readouterr().out
    assert "| 1-4 together | 2 | 100.0 | 100.0 |" in table
    assert "| 3 open-domain | 0 |" in table
