"""The language tasks of topics, their relations and cues. Source: GAM, section 4.1, Appendix E.1 and E.2."""

from __future__ import annotations

from infinimem.llm.base import Task
from infinimem.llm.tasks import IDS, TEXT, TEXTS, list_of, task

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

VERIFY = task("verify_topic", "summary turns", 512, "tell:verify_topic", unsupported=TEXTS)
"""What a topic's summary claims and its turns do not say."""

TIMES = task("time_cues", "question turns", 512, "tell:time_cues", turns=IDS)
"""The turns whose words tell of a time that the question is about."""

ALL: tuple[Task, ...] = (TOPIC, RELATE, VERIFY, TIMES)
