"""All language tasks of ours, those of strategies among them, and what the rules answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from infinimem.evaluation import metrics
from infinimem.llm import tasks
from infinimem.llm.base import Task
from infinimem.llm.offline import OfflineClient
from infinimem.llm.tasks import read
from infinimem.strategies.allmem import consolidate as of_topology
from infinimem.strategies.allmem import strategy as of_units
from infinimem.strategies.gam import strategy as of_network
from infinimem.strategies.infini import documents, plan
from infinimem.strategies.infini import strategy as of_topics
from infinimem.strategies.recmem import strategy as of_episodes
from infinimem.strategies.records.asking import SEGMENT
from infinimem.strategies.xmemory import partition as of_themes
from infinimem.strategies.xmemory import strategy as of_blocks

TIERS = replace(tasks.ANSWER, variables=tasks.ANSWER.variables | {"episodes", "facts"})
"""As RecMem's reader has it asked (`Evidence.apart`)."""

ALL = (
    *(*tasks.ALL, TIERS, *metrics.TASKS, SEGMENT),
    *(
        one
        for module in (
            of_topics,
            plan,
            documents,
            of_units,
            of_topology,
            of_blocks,
            of_themes,
            of_episodes,
            of_network,
        )
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
