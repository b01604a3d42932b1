"""The openai client against llama.cpp with a 135M model: any reply will do, but it must be read rightly."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from server import HastyClient

from infinimem.llm import reading
from infinimem.llm.base import Failure, Task
from infinimem.llm.tasks import ANSWER, MERGE

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


@pytest.mark.parametrize(("task", "variables"), [(ANSWER, ASK), (MERGE, DOCS)], ids=["answer", "merge"])
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
