"""The language tasks answered by rules: no key, no network, the same reply every time, and no claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.llm.base import Reply, Task
from infinimem.model import Usage
from infinimem.spec import load


class OfflineClient:
    """Answers each language task by its rule, whose file is imported when the task first comes."""

    name = "offline"

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Answer by the task's rules; ValueError if a variable is missing or unused."""
        from infinimem.llm import tasks

        tasks.check(task.name, task.variables, variables)
        return Reply(load(task.rule)(variables), usage=Usage(calls=1))
