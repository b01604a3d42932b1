"""A client for one job: when it is replayed, what the model said to the same question is not asked again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any

from infinimem.llm.base import LLM, Bill, Reply, Task, Wrapper
from infinimem.model import Usage


class Replayed(Wrapper):
    """Puts each question once in all passes: of a library that changed only those are new that it changed.

    Args:
        llm: the client, which other jobs share; what this job takes is booked here.
    """

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self._bill, self._lock = Bill(), Lock()
        self._said: dict[tuple[str, str], list[Reply]] = {}
        self._put = Counter[tuple[str, str]]()

    @property
    def usage(self) -> dict[str, Usage]:
        return self._bill

    def begin(self) -> None:
        """A pass begins: questions are put again from the first."""
        self._put.clear()

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`. A reply that is replayed is booked anew: the first try left no receipt."""
        question = task.name, json.dumps(variables, sort_keys=True, default=repr)
        with self._lock:
            number, said = self._put[question], self._said.setdefault(question, [])
            self._put[question] += 1
        if number < len(said):
            reply = said[number]
        else:
            said.append(reply := self._llm.complete(task, variables))
        self._bill.book(task.name, reply.usage)
        return reply
