"""A client for one job: when it is replayed, what the model said to the same question is not asked again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infinimem.llm.base import LLM, Bill, Reply, Task, Wrapper
from infinimem.model import Usage


class Replayed(Wrapper):
    """Puts each question once: of a library that changed meanwhile only those are new that it changed.

    Args:
        llm: the client, which other jobs share; what this job takes is booked here.
    """

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self._bill, self._said = Bill(), dict[tuple[str, str], Reply]()

    @property
    def usage(self) -> dict[str, Usage]:
        return self._bill

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`. A reply that is replayed is booked anew: the first try left no receipt."""
        question = task.name, json.dumps(variables, sort_keys=True, default=repr)
        if question not in self._said:
            self._said[question] = self._llm.complete(task, variables)
        reply = self._said[question]
        self._bill.book(task.name, reply.usage)
        return reply
