"""The offline client. Each task names its rule, which is imported when the task first comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.llm.base import Reply, Task
from infinimem.model import Usage
from infinimem.spec import load


class OfflineClient:
    """Answers every language task by deterministic rules; claims no contradiction and phrases no fact."""

    name = "offline"

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Answer by the task's rules.

        Raises:
            ValueError: a variable is missing or unused.
        """
        from infinimem.llm import tasks

        tasks.check(task.name, task.variables, variables)
        return Reply(load(task.rule)(variables), usage=Usage(calls=1))
