"""What the program knows of Infini Memory (infinimem/spec.py). Source: arXiv 2606.10677."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infinimem.settings import Harmless, Portion
from infinimem.spec import PROMPT, StrategySpec


@dataclass(frozen=True)
class InfiniSettings:
    """[infini]: the writing of topic documents. Lengths are tokens; docs/STRATEGIES.md has a table."""

    feed: Harmless[Literal["chunk", "turn"]] = "chunk"
    chunk_tokens: Portion = 2048
    workers: Harmless[int] = 4
    current_threshold: Harmless[int] = 5000
    stale_seconds: Harmless[float] = 3600.0
    grouping: Harmless[Literal["extract", "rewrite"]] = "extract"
    rewrite: Harmless[Literal["moves", "free"]] = "moves"
    shows: Harmless[Literal["lines", "free"]] = "lines"
    summary: Harmless[Literal["model", "paper", "rule"]] = "model"
    summary_length: Harmless[int] = 100
    compare_docs: Harmless[int] = 8
    markdown_length: Portion = 5000
    plan_split_threshold: Portion = 5000
    planner_docs: Harmless[int] = 50
    merge_max_tokens: Harmless[int] = 1000
    merge_frequency: Harmless[int] = 10
    merge_trigger_min_count: Harmless[int] = 50
    merge_group_max: Harmless[int] = 4
    maintenance: Harmless[bool] = True


def estimate(size: int, turns: int, settings: InfiniSettings) -> tuple[int, int, int]:
    """Turns are read once; a consolidation asks four times, about a part of what was drawn. By 125 turns.
    Where documents are written anew, each flush reads and writes about twice what it takes in."""

    chunks = -(-size // max(settings.chunk_tokens, 1))
    flushes = -(-size // max(settings.current_threshold, 1))
    calls = chunks + flushes * (4 if settings.maintenance else 1)
    anew = 2 * size if settings.rewrite == "free" else 0
    return (calls, calls * PROMPT + 2 * size + 2 * anew, size - size // 3 + anew)


SPEC = StrategySpec(
    name="infini",
    strategy="infinimem.strategies.infini.strategy:Infini",
    writes=("topics/",),
    archived="archive/",
    texts="topics.free/",
    buffer="CURRENT",
    settings=InfiniSettings,
    presets={
        "paper": {  # sections 3.3 to 4.1, prompts A to E; the other defaults are the paper's
            "infini": {
                "chunk_tokens": 4096,
                "grouping": "rewrite",
                "rewrite": "free",
                "shows": "free",
                "summary": "paper",
                "compare_docs": 0,
            },
            "reader": {"agent": "paper"},
        }
    },
    estimate=estimate,
    takes=("search", "reader"),
    reads=frozenset({"shows"}),
)
