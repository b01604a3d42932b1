"""A client for one job: what the model said to the same question is not asked again when the job is replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from infinimem.llm.base import LLM, Bill, Reply, Task, Wrapper
from infinimem.model import Usage


class Replayed(Wrapper):
    """Passes a question on once; a library that changed meanwhile makes other questions, and only these are new.

    Args:
        llm: the client, which other jobs share; what this job takes is booked here.
    """

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self._bill, self._said, self._lock = Bill(), dict[tuple[str, str], Reply](), Lock()
        self.asked = 0

    @property
    def usage(self) -> dict[str, Usage]:
        return self._bill

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`. A reply that is replayed is booked again: of the first try nothing stays."""
        question = task.name, json.dumps(variables, sort_keys=True, default=repr)
        with self._lock:
            reply = self._said.get(question)
        if reply is None:
            reply = self._llm.complete(task, variables)
            with self._lock:
                self._said[question] = reply
                self.asked += 1
        self._bill.book(task.name, reply.usage)
        return reply
