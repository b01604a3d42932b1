"""Small samples of data sets, and the long conversation that is joined from them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from infinimem.evaluation.datasets import benchmark


@pytest.fixture
def sample(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    script = load("sample")

    def made(records: list[dict[str, Any]], *words: str) -> Path:
        (tmp_path / "data.json").write_text(json.dumps(records))
        out = tmp_path / "out.json"
        monkeypatch.setattr(sys, "argv", ["sample.py", str(tmp_path / "data.json"), str(out), *words])
        script.main()
        return out

    return made


def talk(name: str) -> dict[str, Any]:
    session = [{"speaker": "Ann", "dia_id": f"D1:{at}", "text": f"I saw {at} owls."} for at in range(1, 9)]
    asked = [
        {"question": f"Q{at}?", "answer": at, "evidence": [f"D1:{at}"], "category": 1 + at % 2}
        for at in range(1, 9)
    ]
    never = {"question": "Cats?", "evidence": ["D1:1"], "category": 5}
    conversation = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": session}
    return {"sample_id": name, "conversation": conversation, "qa": [*asked, never]}


def test_questions_of_a_conversation_are_spread(sample: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = sample([talk("a"), talk("b")], "--conversation", "b", "--each", "2")
    (case,) = benchmark("locomo").cases(out)
    assert (case.name, len(case.turns)) == ("b", 8)
    assert [question.text for question in case.questions] == ["Q1?", "Q2?", "Q5?", "Q6?"]
    assert "4 questions (multi-hop 2, temporal 2)" in capsys.readouterr().out


def test_a_beginning_is_asked_for_what_is_in_it(sample: Any) -> None:
    (case,) = benchmark("locomo").cases(sample([talk("a")], "--turns", "3"))
    assert len(case.turns) == 3
    assert [question.text for question in case.questions] == ["Q1?", "Q2?", "Q3?"]


def test_kinds_of_questions(sample: Any) -> None:
    records = [
        {
            "question_id": f"{kind}-{at}{'_abs' if at == 3 else ''}",
            "question_type": kind,
            "question": "?",
            "answer": "x",
            "question_date": "2023/05/20 (Sat) 02:21",
            "haystack_sessions": [[{"role": "user", "content": "I bought a piano."}]],
            "haystack_session_ids": ["s"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "answer_session_ids": ["s"],
        }
        for kind in ("update", "order", "other")
        for at in range(4)
    ]
    out = sample(records, "--categories", "update,order", "--each", "2")
    assert [case.name for case in benchmark("longmemeval").cases(out)] == [
        "update-0",
        "update-1",
        "order-0",
        "order-1",
    ]


def test_a_conversation_is_said_again_where_it_is_too_short(load: Any, tmp_path: Path) -> None:
    script = load("long_conversation")
    (tmp_path / "l.json").write_text(json.dumps([talk("a")]))
    cases = list(benchmark("locomo").cases(tmp_path / "l.json"))
    turns = list(script.messages(cases, 10))
    assert [turn.turn for turn in turns[7:]] == ["a.D1:8", "a.D1:1~1", "a.D1:2~1"]
    assert len({turn.session for turn in turns}) == 2
