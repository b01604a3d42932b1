"""The public test doubles."""

from __future__ import annotations

import pytest

from infinimem.errors import ModelUnavailable
from infinimem.llm.base import Reply, total
from infinimem.llm.tasks import ANSWER
from infinimem.strategies.infini.tasks import MERGE
from infinimem.testing import ScriptedLLM

ASK = {"question": "Where?", "evidence": [], "now": ""}


def test_answers_in_order_reads_them_like_a_models_and_records_the_calls() -> None:
    llm = ScriptedLLM({"answer": [{"answer": "Lisbon", "cites": []}, "no JSON", {"answer": 1.5}]})
    replies = [llm.complete(ANSWER, ASK) for _ in range(3)]
    assert [r.failure for r in replies] == [None, "JSON_PARSE_FAIL", "SCHEMA_FAIL"]
    assert [c.task for c in llm.calls] == ["answer"] * 3 and llm.calls[0].variables == ASK
    assert llm.usage["answer"].calls == 3 == total(llm.usage).calls


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
