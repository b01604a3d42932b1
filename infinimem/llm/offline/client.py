"""The offline client. Each task names its rule, which is imported when the task first comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.llm.base import Bill, Reply, Task
from infinimem.model import Usage
from infinimem.spec import load


class OfflineClient:
    """Answers every language task by deterministic rules; claims no contradiction and phrases no fact."""

    def __init__(self) -> None:
        self.name = "offline"
        self.usage = Bill()

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Answer by the task's rules.

        Raises:
            ValueError: a variable is missing or unused.
        """
        from infinimem.llm import tasks

        tasks.check(task.name, task.variables, variables)
        used = Usage(calls=1)
        self.usage.book(task.name, used)
        return Reply(load(task.rule)(variables), usage=used)
