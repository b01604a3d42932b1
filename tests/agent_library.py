"""An agent of rules: it reads tasks as any agent does, and answers by the offline rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infinimem import Memory, Turn, open_memory
from infinimem.errors import ReplyAwaited
from infinimem.llm import tasks
from infinimem.llm.base import Reply, Task
from infinimem.llm.connect import connect
from infinimem.settings import ModelSettings

SYSTEMS = ("infini", "allmem", "gam", "recmem", "xmemory")
SAID = (
    ("Ana", "I moved to Lisbon with my cat Olive in March."),
    ("Ben", "My sister Rita visits me on 14 June with her children."),
    ("Ana", "I am allergic to peanuts, so no satay for me."),
    ("Ben", "I run ten kilometres every Sunday along the river."),
    ("Ana", "I moved to Porto with my cat Olive in May."),
    ("Ben", "My running shoes are worn out, I run every Sunday."),
)


def said(*days: int) -> list[Turn]:
    """A session a day."""
    return [
        Turn(text, speaker=who, session=f"s{day}", time=f"2025-03-{day:02}T09:{minute:02}")
        for day in days
        for minute, (who, text) in enumerate(SAID)
    ]


class Scripted:
    """The model "agent"; what the rules would say to each material that it was asked about is noted."""

    name, base_url = "agent", ""

    def __init__(self) -> None:
        self.rules = connect("offline", ModelSettings())
        self.replies: dict[str, Any] = {}
        self.answered: list[str] = []

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        self.replies[tasks.render(task, variables).user] = self.rules.complete(task, variables).data
        raise ReplyAwaited([])

    def reply(self, text: str) -> str:
        """What it says to a task; of its parts by their numbers."""
        materials = [part for _, part in re.findall(r"^(`{3,})\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)]
        self.answered += materials
        parts = re.findall(r"^## Part (\d+)$", text, re.MULTILINE)
        replies = [self.replies[material] for material in materials]
        return json.dumps(dict(zip(parts, replies, strict=True)) if parts else replies[0])


def opened(root: Path, strategy: str = "infini", agent: Scripted | None = None) -> tuple[Memory, Scripted]:
    agent = agent or Scripted()
    return open_memory(root, model=agent, strategy=strategy, create=True), agent


def by_model(root: Path, turns: Sequence[Turn], strategy: str) -> Memory:
    """The same by a model that is asked at once and says the same."""
    agent = Scripted()
    agent.complete = agent.rules.complete  # type: ignore[method-assign]
    agent.name = "rules"
    memory, _ = opened(root, strategy, agent)
    memory.record(turns)
    memory.consolidate()
    return memory


def work(memory: Memory, agent: Scripted, most: int = 1000) -> int:
    """Answer until nothing is left; the number of tasks."""
    for count in range(most):
        if (task := memory.tasks.take()) is None:
            assert not memory.tasks.open()
            return count
        reply = agent.reply(task.text)
        if memory.tasks.answer(task.number, reply):
            assert memory.tasks.answer(task.number, reply) == []
    return most


def reply_to(text: str) -> str:
    """What an agent says to a task of Infini Memory that goes by its text alone: each turn is an entry."""
    kind = re.search(r"^# Task \d+: (\w+)", text)[1]  # type: ignore[index]
    parts = re.findall(r"^## Part (\d+)$", text, re.MULTILINE)
    materials = [part for _, part in re.findall(r"^(`{3,})\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)]
    replies = [_said(kind, material) for material in materials]
    return json.dumps(dict(zip(parts, replies, strict=True)) if parts else replies[0])


def _said(kind: str, material: str) -> dict[str, Any]:
    if kind == "extract":
        rows = re.findall(r"^\[(\d+)\].*?: (.*)\.$", material.partition("TURNS:")[2], re.MULTILINE)
        return {"entries": [{"from": [seq], "text": said, "topic": "Talk"} for seq, said in rows]}
    if kind == "summarize":
        ids = re.findall(r"^(topics/\S+): ", material, re.MULTILINE)
        return {"summaries": [{"id": one, "summary": "What was said."} for one in ids]}
    return {"plan": {"assign": []}, "compare": {"superseded": []}}[kind]
