"""What every client owes to its callers, alone and under several threads; the public test doubles."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from fake_server import chat, serve
from garbage import GarbageLLM

from infinimem.errors import ModelUnavailable, SpendingCapReached
from infinimem.llm.base import LLM, Failure, Reply, in_order
from infinimem.llm.offline import OfflineClient
from infinimem.llm.openai_client import OpenAIClient
from infinimem.llm.replies import Cached
from infinimem.llm.tasks import ANSWER, read
from infinimem.model import Usage
from infinimem.strategies.allmem.strategy import DESCRIBE
from infinimem.strategies.infini.documents import MERGE
from infinimem.strategies.infini.strategy import EXTRACT
from infinimem.testing import ScriptedLLM

ASK: dict[str, Any] = {"question": "Where is she?", "evidence": [], "now": ""}
TOLD: dict[str, Any] = {"turns": [], "context": [], "topics": [], "problems": []}
GOOD: dict[str, Any] = {"answer": "Lisbon", "cites": []}


@pytest.fixture(params=["offline", "scripted", "garbage", "openai"])
def llm(request: pytest.FixtureRequest) -> Iterator[LLM]:
    match request.param:
        case "offline":
            yield OfflineClient()
        case "scripted":
            yield ScriptedLLM({"answer": lambda _: GOOD, "extract": lambda _: "I would rather not."})
        case "garbage":
            yield GarbageLLM()
        case _:
            with serve(chat(json.dumps(GOOD))) as server:
                yield OpenAIClient("m", server.url, api_key="k")


def test_a_reply_has_data_that_fits_or_a_failure(llm: LLM) -> None:
    for task, variables in ((ANSWER, ASK), (EXTRACT, TOLD)):
        reply = llm.complete(task, variables)
        if reply.data is None:
            assert reply.failure in get_args(Failure) and reply.detail
        else:
            assert reply.failure is None
            assert read(json.dumps(reply.data), task.schema).data == reply.data


def test_a_reply_says_what_it_took(llm: LLM) -> None:
    assert llm.complete(ANSWER, ASK).usage.calls == llm.complete(EXTRACT, TOLD).usage.calls == 1


def test_variables_must_be_exactly_those_of_the_task(llm: LLM) -> None:
    for wrong in ({}, {**ASK, "more": 1}):
        with pytest.raises(ValueError, match=r"missing|unused"):
            llm.complete(ANSWER, wrong)


# ── the public test doubles ──────────────────────────────────────────────────────────────────────────


def test_answers_in_order_reads_them_like_a_models_and_records_the_calls() -> None:
    llm = ScriptedLLM({"answer": [{"answer": "Lisbon", "cites": []}, "no JSON", {"answer": 1.5}]})
    replies = [llm.complete(ANSWER, ASK) for _ in range(3)]
    assert [r.failure for r in replies] == [None, "JSON_PARSE_FAIL", "SCHEMA_FAIL"]
    assert [c.task for c in llm.calls] == ["answer"] * 3 and llm.calls[0].variables == ASK


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


# ── under several threads ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_no_call_is_lost_from_the_account(restless: None) -> None:
    turn = {"id": "1", "role": "user", "speaker": None, "time": None, "text": "I live in Rome."}
    llm = Cached(OfflineClient())
    in_order(lambda _: llm.complete(DESCRIBE, {"context": [], "turns": [turn]}), range(200), 8)
    assert llm.usage == llm.spent == Usage(calls=200)


def test_results_stand_in_the_order_of_what_was_asked() -> None:
    begun = []

    def slow(item: int) -> int:
        begun.append(item)
        time.sleep(0.02 if item % 3 == 0 else 0)
        return item * 2

    assert in_order(slow, range(30), 8) == [item * 2 for item in range(30)]
    assert in_order(slow, [], 8) == []
    begun.clear()
    assert in_order(slow, range(4), 1) == [0, 2, 4, 6]
    assert begun == [0, 1, 2, 3]


def test_the_first_error_is_raised_and_what_has_not_begun_never_does() -> None:
    begun = []
    gate = threading.Event()

    def call(item: int) -> int:
        begun.append(item)
        if item == 1:
            raise ModelUnavailable("down")
        gate.wait(5 if item else 0)
        return item

    timer = threading.Timer(0.2, gate.set)
    timer.start()
    with pytest.raises(ModelUnavailable):
        in_order(call, range(100), 3)
    timer.join()
    assert len(begun) < 10


def test_a_cap_holds_for_calls_side_by_side() -> None:
    answer = Reply({"cards": []}, usage=Usage(1, 100, 0))

    paid = ScriptedLLM({"describe": lambda _: answer})
    capped = Cached(paid)
    with capped.cap(1000), pytest.raises(SpendingCapReached):
        in_order(lambda _: capped.complete(DESCRIBE, {"context": [], "turns": []}), range(100), 4)
    assert 10 <= len(paid.calls) < 14
