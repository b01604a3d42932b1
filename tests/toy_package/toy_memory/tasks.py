"""The one language task: its wording is in prompts/name_a_card.md, `name` answers it offline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.llm.base import Task
from infinimem.llm.tasks import TEXT, object_of

NAME = Task(
    "name_a_card",
    frozenset({"text"}),
    object_of(name=TEXT),
    "toy_memory.tasks:name",
    prompts="toy_memory.prompts",
)


def name(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The text itself."""
    return {"name": variables["text"]}
