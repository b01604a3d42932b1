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
