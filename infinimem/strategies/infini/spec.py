"""What the program knows of Infini Memory (infinimem/spec.py). Source: arXiv 2606.10677."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infinimem.settings import Harmless, Portion
from infinimem.spec import PROMPT, StrategySpec, Way


@dataclass(frozen=True)
class InfiniSettings:
    """[infini]: the writing of topic documents. Lengths are tokens.

    Defaults are the paper's (section 4.1) where it gives a number.
    """

    feed: Harmless[Literal["chunk", "exchange", "turn"]] = "chunk"
    chunk_tokens: Portion = 2048
    """Tokens of turns that one extraction is shown. A reply that keeps all of them word for word fits the
    limit of a reply; of twice as many it would not."""
    workers: Harmless[int] = 4
    """Extractions that a model is asked for side by side."""
    current_threshold: Harmless[int] = 5000
    stale_seconds: Harmless[float] = 3600.0
    markdown_length: Portion = 5000
    plan_split_threshold: Portion = 5000
    planner_docs: Harmless[int] = 50
    plan_retries: Harmless[int] = 3
    merge_max_tokens: Harmless[int] = 1000
    merge_frequency: Harmless[int] = 10
    merge_trigger_min_count: Harmless[int] = 50
    merge_group_max: Harmless[int] = 4
    summary_length: Harmless[int] = 100
    maintenance: Harmless[bool] = True
    shows: Harmless[Literal["lines", "free"]] = "lines"
    """What readers show of a whole document: its lines, or the text of them that `rewrite = "free"` wrote."""


def estimate(size: int, turns: int, settings: InfiniSettings) -> tuple[int, int, int]:
    """Turns are read once; a consolidation asks three times, about a part of what was drawn. By 125 turns."""

    chunks = -(-size // max(settings.chunk_tokens, 1))
    flushes = -(-size // max(settings.current_threshold, 1))
    calls = chunks + flushes * (3 if settings.maintenance else 1)
    return (calls, calls * PROMPT + 2 * size, size - size // 3)


SPEC = StrategySpec(
    name="infini",
    strategy="infinimem.strategies.infini.strategy:Infini",
    writes=("topics/",),
    archived="archive/",
    texts="topics.free/",
    buffer="CURRENT",
    settings=InfiniSettings,
    estimate=estimate,
    methods={
        "infini": Way("infini", None, "agent"),
        "infini-h": Way("infini", "hybrid", "hybrid"),
        "infini-summary": Way("infini", "summary", "summary"),
        "infini-bm25": Way("infini", "bm25", "bm25"),
        "infini-retrieve": Way("infini"),
        "infini-turns": Way("infini", draws=False),
        "infini-search": Way("infini", "search", draws=False),
    },
    groups={
        "five": ("infini-retrieve", "infini-turns"),
        "five-answers": ("infini", "infini-h", "infini-turns"),
    },
    takes=("search", "reader"),
    reads=frozenset({"shows"}),
)
