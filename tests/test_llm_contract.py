"""What every client owes to its callers, whoever answers behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from fake_server import chat, serve
from garbage import GarbageLLM

from infinimem.llm.base import LLM, Failure, total
from infinimem.llm.offline import OfflineClient
from infinimem.llm.openai_client import OpenAIClient
from infinimem.llm.reading import read
from infinimem.llm.tasks import ANSWER
from infinimem.strategies.infini.tasks import EXTRACT
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


def test_usage_adds_up_by_task(llm: LLM) -> None:
    replies = [llm.complete(ANSWER, ASK), llm.complete(ANSWER, ASK), llm.complete(EXTRACT, TOLD)]
    assert set(llm.usage) == {"answer", "extract"} and llm.usage["answer"].calls == 2
    assert total(llm.usage) == total({str(n): reply.usage for n, reply in enumerate(replies)})


def test_variables_must_be_exactly_those_of_the_task(llm: LLM) -> None:
    for wrong in ({}, {**ASK, "more": 1}):
        with pytest.raises(ValueError, match=r"missing|unused"):
            llm.complete(ANSWER, wrong)
    assert total(llm.usage).calls == 0
