"""Reading JSON out of what models write."""

from __future__ import annotations

import json
from typing import Any

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import ALL

from infinimem.llm.tasks import ANSWER, MAX_REPLY, SEARCHING, read
from infinimem.strategies.infini.plan import PLAN

GOOD: dict[str, Any] = {"answer": "Lisbon", "cites": ["41"]}
SEARCHING_WITH = '{"answer": "", "cites": [], "calls": [{"name": "grep", "arguments": {"x": %s}}]}'


@each(
    "text",
    [
        json.dumps(GOOD),
        f"  \n{json.dumps(GOOD, indent=2)}\n",
        f"```json\n{json.dumps(GOOD)}\n```",
        f"Sure, here it is:\n```\n{json.dumps(GOOD)}\n```\nAnything else?",
        f"Use {{x}}:\n```json\n{json.dumps(GOOD)}\n```\nor {{y}}.",
        f"The answer is {json.dumps(GOOD)} as asked.",
        f"<think>Maybe {{this}} or {{that}}?</think>\n{json.dumps(GOOD)}",
    ],
)
def test_finds_the_object(text: str) -> None:
    reply = read(text, ANSWER.schema)
    assert reply.data == GOOD and reply.failure is None and reply.text == text


@each(
    ("text", "failure"),
    [
        ("", "EMPTY"),
        ("  \n", "EMPTY"),
        ("I cannot help with that.", "JSON_PARSE_FAIL"),
        ('{"answer": "Lis', "JSON_PARSE_FAIL"),
        ('{"answer": "Lisbon", "cites": ["41"}', "JSON_PARSE_FAIL"),
        ('{"answer": NaN, "cites": []}', "JSON_PARSE_FAIL"),
        ('{"answer": ' + "[" * 100_000, "JSON_PARSE_FAIL"),
        ('{"answer": ' + "9" * 10_000 + "}", "JSON_PARSE_FAIL"),
        ('{"answer": "Lisbon"}', "SCHEMA_FAIL"),
        ('{"answer": null, "cites": []}', "SCHEMA_FAIL"),
        ('["answer"]', "SCHEMA_FAIL"),
        ("null", "SCHEMA_FAIL"),
        ('```json\n{"cites": []}\n```', "SCHEMA_FAIL"),
    ],
)
def test_every_failure_has_its_code(text: str, failure: str) -> None:
    reply = read(text, ANSWER.schema)
    assert (reply.data, reply.failure) == (None, failure)
    assert reply.detail and "\n" not in reply.detail


@each("depth", [60, 300, 600, 900, 2000])
@each("around", [("[", "]"), ('{"x": ', "}")])
def test_what_is_nested_without_end_is_no_answer(depth: int, around: tuple[str, str]) -> None:
    deep = around[0] * depth + "1" + around[1] * depth
    for task, text in ((ANSWER, f'{{"answer": "x", "cites": {deep}}}'), (SEARCHING, SEARCHING_WITH % deep)):
        reply = read(text, task.schema)
        assert reply.data is None and reply.failure == "JSON_PARSE_FAIL"


def test_a_reply_beyond_all_size_is_not_parsed() -> None:
    reply = read(json.dumps({**GOOD, "answer": "x" * MAX_REPLY}), ANSWER.schema)
    assert reply.failure == "TRUNCATED" and len(reply.text) == MAX_REPLY


def test_a_schema_failure_says_where() -> None:
    reply = read('{"assign": [{"doc_id": null, "fact_ids": []}]}', PLAN.schema)
    assert "assign[0]" in reply.detail and "new_title" in reply.detail


def test_lone_surrogates_become_a_character_that_files_can_hold() -> None:
    data = read('{"answer": "\\ud83d", "cites": []}', ANSWER.schema).data
    assert data == {"answer": "\ufffd", "cites": []}


@given(st.text() | st.text(alphabet='{}[]":,`\\ \nabc01'))
def test_never_raises(text: str) -> None:
    for task in ALL:
        reply = read(text, task.schema)
        assert (reply.data is None) == (reply.failure is not None)
