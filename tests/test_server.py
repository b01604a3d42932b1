"""The openai client against llama.cpp with a 135M model: it talks nonsense, is read rightly, the law holds.

One file, so that tests that run side by side start one server.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, get_args

import pytest
from evaluation_data import Small, case, request, results
from fake_server import Say, chat, serve
from server import HastyClient
from test_readme import blocks

from infinimem import Turn, open_memory
from infinimem.evaluation.grading import JUDGE
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import Ended, Run
from infinimem.llm import reading
from infinimem.llm.base import Failure, Task
from infinimem.llm.tasks import ANSWER
from infinimem.strategies.infini.tasks import MERGE

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
        assert reading.read(reply.text, task.schema).data == reply.data


TALK = (
    ("assistant", "Good to know: no peanuts for you in Lisbon."),
    ("user", "My sister Rita visits on 14 June with her two children."),
)


@pytest.mark.soak
def test_a_conversation_through_a_model_that_talks_nonsense(tmp_path: Path, model_url: str) -> None:
    root = tmp_path / "m"
    open_memory(root, model="offline", create=True)
    (root / "infinimem.toml").write_text('[infini]\nplan_retries = 0\n[reader]\nname = "hybrid"\n')
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


class DescribingClient(HastyClient):
    """The hasty client, but a descriptor may be as long as it must."""

    def longest(self, task: Task) -> int:
        return 72 if task.name == "describe" else super().longest(task)


@pytest.mark.soak
def test_units_that_a_model_describes_and_diagnoses(tmp_path: Path, model_url: str) -> None:
    client = DescribingClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    turns = [Turn(text, role, session="s1", time="2025-05-01") for role, text in TALK]
    open_memory(tmp_path / "m", model="offline", strategy="allmem", create=True).observe(turns[:1])
    memory = open_memory(tmp_path / "m", model=client, strategy="allmem")
    memory.observe(turns[1:])
    receipt = memory.consolidate()
    assert receipt is not None and receipt.op == "consolidate"
    assert 1 <= client.asked.count("describe") <= 1 + len(turns)
    view = memory.view
    assert {place.seq for place in view.uncited()} == set(memory.unanswered())
    assert "allmem/audit/run-0001" in view and "allmem/buffer" not in view
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []
    held = {seq for item in memory.retrieve("Who visits in June?").items for seq in item.origin}
    assert held == {place.seq for place in view.entries("evidence")}
    memory.undo(receipt.id)
    assert "allmem/buffer" in memory.view


def test_the_loop_of_the_readme(
    tmp_path: Path, model_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server takes tools, a call and its result; the call is scripted, for the model never makes one."""

    def really(request: dict[str, Any]) -> Say:
        data = json.dumps({**request, "max_tokens": 4}).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{model_url}/chat/completions", data, headers)
        with urllib.request.urlopen(asked, timeout=120) as reply:
            return Say(body=reply.read().decode())

    monkeypatch.chdir(tmp_path)
    open_memory("notes", model="offline", create=True).observe([Turn("I moved to Lisbon.", session="s1")])
    function = {"name": "search", "arguments": json.dumps({"query": "Lisbon"})}
    call = {"id": "call-1", "type": "function", "function": function}
    with serve(chat(None, "tool_calls", tool_calls=[call]), really) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        exec(
            compile(blocks("In your agent's loop", "python")[0], "README.md", "exec"), {"__name__": "readme"}
        )
    assert capsys.readouterr().out.strip()
    assert "I moved to Lisbon." in server.requests[1]["messages"][-1]["content"]
    assert len(server.requests[1]["tools"]) == 5


@pytest.mark.soak
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
