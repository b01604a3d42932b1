"""What every client owes to its callers, whoever answers behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from fake_server import chat, serve
from garbage import GarbageLLM

from infinimem.llm.base import LLM, Failure
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


def test_a_reply_says_what_it_took(llm: LLM) -> None:
    assert llm.complete(ANSWER, ASK).usage.calls == llm.complete(EXTRACT, TOLD).usage.calls == 1


def test_variables_must_be_exactly_those_of_the_task(llm: LLM) -> None:
    for wrong in ({}, {**ASK, "more": 1}):
        with pytest.raises(ValueError, match=r"missing|unused"):
            llm.complete(ANSWER, wrong)


def test_it_has_a_name(llm: LLM) -> None:
    assert llm.name and "\n" not in llm.name
