"""The openai client against llama.cpp with a 135M model: it talks nonsense, is read rightly, the law holds.

One file, so that tests that run side by side start one server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from openai import OpenAI
from server import HastyClient

from infinimem import Turn, open_memory
from infinimem.evaluation.metrics import JUDGE
from infinimem.llm import tasks
from infinimem.llm.base import Failure, Task
from infinimem.llm.tasks import ANSWER
from infinimem.strategies.infini.documents import MERGE

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
    ("task", "variables"),
    [
        pytest.param(ANSWER, ASK, id="answer"),
        pytest.param(MERGE, DOCS, id="merge", marks=pytest.mark.soak),
        pytest.param(JUDGE, GRADE, id="judge", marks=pytest.mark.soak),
    ],
)
def test_a_small_model_gives_data_that_fits_or_a_failure_code(
    model_url: str, task: Task, variables: dict[str, Any]
) -> None:
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    reply = client.complete(task, variables)
    assert reply.usage.calls == 1 and reply.usage.tokens_in > 100 and reply.usage.tokens_out > 0
    if reply.data is None:
        assert reply.failure in get_args(Failure)
    else:
        assert tasks.read(reply.text, task.schema).data == reply.data


TALK = (
    ("assistant", "Good to know: no peanuts for you in Lisbon."),
    ("user", "My sister Rita visits on 14 June with her two children."),
)


@pytest.mark.soak
def test_a_conversation_through_a_model_that_talks_nonsense(tmp_path: Path, model_url: str) -> None:
    root = tmp_path / "m"
    open_memory(root, model="offline", create=True)
    (root / "infinimem.toml").write_text('[reader]\nname = "hybrid"\n')
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    memory = open_memory(root, model=client)
    memory.observe(
        [Turn(text, role, session="s1", time=f"2025-05-0{n}") for n, (role, text) in enumerate(TALK, 1)]
    )
    view = memory.view
    assert len(list(view.entries("evidence"))) == len(TALK)
    assert {place.seq for place in view.uncited()} == set(memory.unanswered())
    open_memory(root, model="offline").observe([Turn(text, role, session="s2") for role, text in TALK])
    before = {place.entry.seq: place.entry.line for place in memory.view.buffer.entries}
    assert before

    memory.consolidate()
    view = memory.view
    after = {place.entry.seq: place.entry.line for s in ("default", "archive") for place in view.entries(s)}  # type: ignore[arg-type]
    assert after == before
    assert view.buffer.entries == ()
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []

    answer = memory.ask("Who visits in June?")
    assert answer.text
    assert answer.citations
    assert {"extract", "rewrite", "plan", "answer"} <= set(client.asked)


def test_a_ready_client_of_the_openai_package_answers_too(
    tmp_path: Path, model_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`open_memory(model=OpenAI(…))` asks a real server through the client's own connections."""
    monkeypatch.setenv("INFINIMEM_MODEL", "smollm2")
    open_memory(tmp_path, model="offline", create=True).observe([Turn("Ann: I live in Lisbon.", "user")])
    with OpenAI(api_key="none", base_url=model_url) as client:
        memory = open_memory(tmp_path, model=client)
        answer = memory.ask("Where does Ann live?")
    assert answer.text and memory.llm.usage.tokens_out > 0
