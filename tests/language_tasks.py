"""All language tasks of ours, those of strategies among them, and what the rules answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infinimem.evaluation import judge
from infinimem.llm import tasks
from infinimem.llm.base import Task
from infinimem.llm.offline import OfflineClient
from infinimem.llm.reading import read
from infinimem.strategies.allmem import consolidate as of_topology
from infinimem.strategies.allmem import strategy as of_units
from infinimem.strategies.gam import tasks as of_network
from infinimem.strategies.infini import tasks as of_topics
from infinimem.strategies.recmem import tasks as of_episodes
from infinimem.strategies.segment import SEGMENT
from infinimem.strategies.xmemory import partition as of_themes
from infinimem.strategies.xmemory import strategy as of_blocks

ALL = (
    *(*tasks.ALL, *judge.ALL, *of_topics.ALL, *of_episodes.ALL, *of_network.ALL, SEGMENT),
    *(
        one
        for module in (of_units, of_topology, of_blocks, of_themes)
        for one in vars(module).values()
        if isinstance(one, Task)
    ),
)


def by_rules(task: Task, **variables: Any) -> Mapping[str, Any]:
    """The offline client's reply, which must fit the schema and be the same the second time."""
    first, second = (OfflineClient().complete(task, variables).data for _ in range(2))
    assert first is not None and first == second
    assert read(json.dumps(first), task.schema).data == first
    return first
