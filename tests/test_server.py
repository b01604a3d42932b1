"""The openai client against llama.cpp with a 135M model: it talks nonsense, is read rightly, the law holds.

One file, so that tests that run side by side start one server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from bench_data import Small, case, request, results
from server import HastyClient

from infinimem import Turn, open_memory
from infinimem.bench.report import write_report
from infinimem.bench.runner import Ended, Run
from infinimem.llm import reading
from infinimem.llm.base import Failure, Task
from infinimem.llm.tasks import ANSWER, JUDGE, MERGE

pytestmark = pytest.mark.server

ASK: dict[str, Any] = {
    "question": "Where does Ann live?",
    "evidence": [
        {
            "doc_id": "a",
            "lines": [{"id": "4", "time": None, "source": "user", "text": "Ann: I live in Lisbon"}],
        }
    ],
    "now": "2024-02-01",
}
DOCS = {"docs": [{"id": "topics/cats", "summary": "cats", "tokens": 9}]}
GRADE = {"question": "Where does Ann live?", "kind": "plain", "expected": ["Lisbon"], "answer": "In Porto."}


@pytest.mark.parametrize(
    ("task", "variables"), [(ANSWER, ASK), (MERGE, DOCS), (JUDGE, GRADE)], ids=["answer", "merge", "judge"]
)
def test_a_small_model_gives_data_that_fits_or_a_failure_code(
    model_url: str, task: Task, variables: dict[str, Any]
) -> None:
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    reply = client.complete(task, variables)
    assert reply.usage.calls == 1 and reply.usage.tokens_in > 100 and reply.usage.tokens_out > 0
    assert client.usage == {task.name: reply.usage}
    if reply.data is None:
        assert reply.failure in get_args(Failure)
    else:
        assert reading.read(reply.text, task.schema).data == reply.data


TALK = (
    ("user", "I moved to Lisbon in March and I am allergic to peanuts."),
    ("assistant", "Good to know: no peanuts for you in Lisbon."),
    ("user", "My sister Rita visits on 14 June with her two children."),
    ("user", "I run ten kilometres every Sunday along the river."),
)


def test_a_conversation_through_a_model_that_talks_nonsense(tmp_path: Path, model_url: str) -> None:
    root = tmp_path / "m"
    open_memory(root, model="offline", create=True)
    (root / "infinimem.toml").write_text('[infini]\nplan_retries = 1\n[reader]\nname = "hybrid"\n')
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    memory = open_memory(root, model=client)
    memory.observe(
        [Turn(text, role, session="s1", time=f"2025-05-0{n}") for n, (role, text) in enumerate(TALK, 1)]
    )
    view = memory.view
    assert len(list(view.entries("evidence"))) == len(TALK)
    assert view.uncited() == ()
    before = {place.entry.seq: place.entry.line for place in view.buffer.entries}

    memory.consolidate()
    view = memory.view
    after = {place.entry.seq: place.entry.line for s in ("default", "archive") for place in view.entries(s)}  # type: ignore[arg-type]
    assert after == before
    assert view.buffer.entries == ()
    assert memory.doctor() == []

    answer = memory.ask("Who visits in June?")
    assert answer.text
    assert answer.citations
    assert {"extract", "rewrite", "plan", "layout", "answer"} <= set(client.usage)


def test_a_run_of_a_benchmark(tmp_path: Path, model_url: str) -> None:
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    run = Run(request(tmp_path, "none", "recent", answerer=client, budget=60), Small([case("one", asked=1)]))
    assert run.estimate().total.calls == 2
    assert run.start(lambda done, total: None, 0) == Ended(2, 0)
    for result in results(tmp_path / "out"):
        assert result.usage["answer"].tokens_in > 100
        if result.failed:  # so small a model may not come to an end
            assert result.failed in ("TRUNCATED", "JSON_PARSE_FAIL", "SCHEMA_FAIL", "EMPTY")
            assert not result.verdicts and result.scores["judge strict"] == 0
        else:
            assert result.answer and result.verdicts["strict"]["reason"]
    assert [row[0] for row in write_report(tmp_path / "out")["rows"]] == ["none", "recent"]
