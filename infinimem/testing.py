"""A test double for code that uses infinimem: a client that says what it is told to say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from infinimem.llm import tasks
from infinimem.llm.base import Reply, Task
from infinimem.model import Usage

Answer = Mapping[str, Any] | str | Reply | Exception
"""A dict (the reply's data), raw text, a whole `Reply` (to play a failure), or an error to raise."""
Script = Sequence[Answer] | Callable[[Mapping[str, Any]], Answer]


class Call(NamedTuple):
    task: str
    variables: Mapping[str, Any]


class ScriptedLLM:
    """Answers each task from a script and records the calls. A script is a task's answers in order, or a
    function of its variables; dicts and texts are read like a real model's reply."""

    def __init__(self, scripts: Mapping[str, Script], *, name: str = "scripted") -> None:
        self.name = name
        self.calls: list[Call] = []
        self._scripts = dict(scripts)
        self._played = Counter[str]()
        self._lock = Lock()

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Answer from the script, or raise what it holds; AssertionError if it has no further answer."""
        tasks.check(task.name, task.variables, variables)
        self.calls.append(Call(task.name, variables))
        script = self._scripts.get(task.name, ())
        if callable(script):
            answer = script(variables)
        else:
            with self._lock:
                played = self._played[task.name]
                self._played[task.name] += 1
            if played >= len(script):
                raise AssertionError(
                    f"script of task {task.name!r}: {len(script)} answers, call {played + 1} came"
                )
            answer = script[played]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        reply = tasks.read(text, task.schema)
        return Reply(reply.data, reply.failure, reply.detail, reply.text, Usage(calls=1))
