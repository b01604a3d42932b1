"""Every template fits its task, every schema is one that strict servers take, and rendering is strict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import ALL

from infinimem.llm import tasks
from infinimem.llm.base import Task
from infinimem.llm.tasks import SELECT, shown
from infinimem.strategies.infini.strategy import EXTRACT


@each("task", ALL)
def test_a_template_uses_exactly_the_variables_of_its_task(task: Task) -> None:
    assert tasks.placeholders(task) == task.variables


def test_there_is_no_template_without_a_task() -> None:
    names = {f.name for f in resources.files("infinimem.prompts").iterdir() if f.name.endswith(".md")}
    assert names == {f"{task.name}.md" for task in ALL}


def _objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if schema.get("type") == "object":
        yield schema
    for child in [*schema.get("properties", {}).values(), schema.get("items", {})]:
        if child:
            yield from _objects(child)


@each("task", ALL)
def test_schemas_name_all_keys_and_allow_no_others(task: Task) -> None:
    assert task.schema["type"] == "object"
    for schema in _objects(task.schema):
        if "properties" in schema:  # the arguments of a tool are the one free object
            optional = schema["properties"].keys() - set(schema["required"])
            assert all("null" in schema["properties"][name]["type"] for name in optional)
            assert set(schema["required"]) <= schema["properties"].keys()
            assert schema["additionalProperties"] is False


@given(st.text(st.sampled_from("[1] x:\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), max_size=30))
def test_no_text_passes_for_a_line_of_its_own(text: str) -> None:
    told = shown([{"id": "7", "text": text}, {"id": "8", "text": "end"}])
    assert [line for line in told.splitlines() if not line.startswith(" " * 8) and line.strip()] == [
        told.splitlines()[0],
        "[8]: end",
    ]


def test_missing_and_unused_variables_are_errors() -> None:
    with pytest.raises(ValueError, match="missing: context, problems, topics; unused: other"):
        tasks.render(EXTRACT, {"turns": [], "other": 1})
    with pytest.raises(ValueError, match="missing: limit"):
        tasks.check(SELECT.name, SELECT.variables, {"question": "", "docs": []})
    tasks.check(EXTRACT.name, EXTRACT.variables, {"turns": [], "context": [], "topics": [], "problems": []})
