"""All language tasks of ours, those of strategies among them."""

from __future__ import annotations

from infinimem.llm import tasks
from infinimem.strategies.allmem import tasks as of_units
from infinimem.strategies.gam import tasks as of_network
from infinimem.strategies.infini import tasks as of_topics
from infinimem.strategies.recmem import tasks as of_episodes
from infinimem.strategies.segment import SEGMENT

ALL = (*tasks.ALL, *of_topics.ALL, *of_units.ALL, *of_episodes.ALL, *of_network.ALL, SEGMENT)
