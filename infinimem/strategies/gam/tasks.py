"""The language tasks of topics and their relations (llm/tasks.py). Source: GAM, Appendix E.1 and E.2."""

from __future__ import annotations

from infinimem.llm.base import Task
from infinimem.llm.tasks import TEXT, TEXTS, list_of, task

TOPIC = task("topic", "turns", 512, "tell:topic", keywords=TEXTS, summary=TEXT)
"""What turns in a row are about: keywords, the most telling first, and one or two sentences."""

RELATE = task(
    "relate",
    "topic others",
    1024,
    "tell:relate",
    relations=list_of(id=TEXT, relation=TEXT, confidence={"type": "number", "minimum": 0, "maximum": 1}),
)
"""How a topic that just ended is related to earlier ones, and how sure that is. `topic`, `others`: an anchor,
[anchor, …]; which relations there are stands in the template, others are none."""

ALL: tuple[Task, ...] = (TOPIC, RELATE)
