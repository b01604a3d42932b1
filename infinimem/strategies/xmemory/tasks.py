"""The language tasks of episodes, facts and themes (llm/tasks.py). Source: xMemory, Appendix C."""

from __future__ import annotations

from dataclasses import replace

from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task

EPISODE = task("episode", "turns reason", 2048, "tell:episode", title=TEXT, content=TEXT, when=MAYBE)
"""A block told. `turns`: [turn, …] in order; `reason`: why they are one, "" if nobody said."""

FACTS = task("facts", "episode turns", 2048, "tell:facts", facts=list_of(text=TEXT, **{"from": IDS}))
"""What the turns say that will hold for long. `episode`: what was told of them."""

THEME = task("theme", "facts", 256, "tell:theme", summary=TEXT)
"""A name for what facts have in common. `facts`: [fact, …]."""

GATE = task(
    "gate",
    "question themes facts episodes",
    512,
    "tell:gate",
    sufficient={"type": "boolean"},
    episodes=IDS,
    messages=IDS,
)
"""Which episodes answer what facts leave open, and of which the messages are needed. `themes` and
`facts`: [fact, …]; `episodes`: [{"id", "title", "time"}, …], the likeliest first."""

GUESS = replace(task("guess", "question themes facts episodes", 64, "tell:guess", answer=TEXT), logprobs=True)
"""A short answer, whose log probabilities tell how sure a model is. `episodes`: [fact, …], what they tell."""
