"""The language tasks of what recurs (llm/tasks.py). Source: RecMem, Eq. 6, 7 and 9.

`turns`: [turn, …] by time; a turn is named by its id, and stands for the exchange that it is of.
"""

from __future__ import annotations

from infinimem.llm.base import Task
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task

TYPES = ("USER_EVENT", "USER_CONSTRAINT_OR_PREFERENCE", "TIME_ANCHORED_UPDATE", "ENTITY_RELATION")
"""Of facts; one of no such type has none."""

EPISODES = task("episodes", "turns", 2048, "tell:episodes", episodes=list_of(text=TEXT, **{"from": IDS}))
"""What happened in exchanges that are about one thing: a narrative a thread, and the turns that it tells."""

MERGE = task(
    "merge_episodes",
    "episode turns",
    1024,
    "tell:merge_episodes",
    should_merge={"type": "boolean"},
    merged=TEXT,
)
"""Whether an exchange goes on with an episode, and the episode then. `episode`: its narrative."""

REFINE = task(
    "refine",
    "episode turns facts",
    2048,
    "tell:refine",
    facts=list_of(text=TEXT, type=TEXT, **{"from": IDS}, replaces=MAYBE),
)
"""What the turns say that the episode leaves out. `facts`: [fact, …], those that are known already; one of
their ids in `replaces` tells which of them no longer holds."""

ALL: tuple[Task, ...] = (EPISODES, MERGE, REFINE)
