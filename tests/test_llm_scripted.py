"""The public test doubles."""

from __future__ import annotations

from typing import Any

import pytest
from cases import each
from garbage import GarbageLLM
from language_tasks import ALL

from infinimem.errors import ModelUnavailable
from infinimem.llm.base import Reply
from infinimem.llm.reading import read
from infinimem.llm.tasks import ANSWER
from infinimem.strategies.infini.tasks import MERGE, REWRITE
from infinimem.testing import ScriptedLLM

ASK = {"question": "Where?", "evidence": [], "now": ""}


def test_answers_in_order_reads_them_like_a_models_and_records_the_calls() -> None:
    llm = ScriptedLLM({"answer": [{"answer": "Lisbon", "cites": []}, "no JSON", {"answer": 1.5}]})
    replies = [llm.complete(ANSWER, ASK) for _ in range(3)]
    assert [r.failure for r in replies] == [None, "JSON_PARSE_FAIL", "SCHEMA_FAIL"]
    assert [c.task for c in llm.calls] == ["answer"] * 3 and llm.calls[0].variables == ASK
    assert [r.usage.calls for r in replies] == [1, 1, 1]


def test_plays_errors_failures_and_functions() -> None:
    cut = Reply(None, "TRUNCATED", "cut")
    llm = ScriptedLLM({"answer": [ModelUnavailable("gone"), cut], "merge": lambda v: {"groups": v["docs"]}})
    with pytest.raises(ModelUnavailable, match="gone"):
        llm.complete(ANSWER, ASK)
    assert llm.complete(ANSWER, ASK) is cut
    assert llm.complete(MERGE, {"docs": []}).data == {"groups": []}


def test_a_script_that_ends_says_so() -> None:
    llm = ScriptedLLM({"answer": []})
    with pytest.raises(AssertionError, match="task 'answer': 0 answers, call 1 came"):
        llm.complete(ANSWER, ASK)
    with pytest.raises(AssertionError, match="'merge'"):
        llm.complete(MERGE, {"docs": []})


def _variables(names: frozenset[str]) -> dict[str, Any]:
    return {name: [{"id": str(n), "text": f"fact {n}"} for n in range(5)] for name in names}


@each("task", ALL, ids=lambda task: task.name)
def test_garbage_fits_the_schema_and_repeats_itself(task: Any) -> None:
    first, second, other = GarbageLLM(1), GarbageLLM(1), GarbageLLM(2)
    ours = [first.complete(task, _variables(task.variables)) for _ in range(20)]
    assert ours == [second.complete(task, _variables(task.variables)) for _ in range(20)]
    assert ours != [other.complete(task, _variables(task.variables)) for _ in range(20)]
    assert all(read(reply.text, task.schema).data == reply.data for reply in ours)


def test_garbage_names_real_ids_too() -> None:
    llm = GarbageLLM()
    named = {
        fact
        for _ in range(20)
        for topic in (llm.complete(REWRITE, _variables(REWRITE.variables)).data or {})["topics"]
        for fact in topic["fact_ids"]
    }
    assert {str(n) for n in range(5)} < named
