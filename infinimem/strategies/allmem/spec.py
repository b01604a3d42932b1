"""What the program knows of All-Mem (infinimem/spec.py). Source: arXiv 2603.19595."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from infinimem.settings import Harmless
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

_PLANNED = 10
"""Units of which one is split, merged or updated."""


@dataclass(frozen=True)
class AllmemSettings:
    """[allmem]: units, their links and their consolidation, then how they are read. docs/STRATEGIES.md has a
    table. Where the paper lost a number, it is chosen here (theta_coh, merges of at most 4, degrees)."""

    describe_turns: Harmless[int] = 12
    context_turns: Harmless[int] = 6
    likeness: Harmless[float] = 0.3
    split: Harmless[bool] = True
    merge: Harmless[bool] = True
    update: Harmless[bool] = True
    confidence: Harmless[float] = 0.9
    confidence_split: Harmless[float] = 0.0
    confidence_merge: Harmless[float] = 0.0
    confidence_update: Harmless[float] = 0.0
    coherence: Harmless[float] = 0.7
    merge_max: Harmless[int] = 4
    coverage: Harmless[float] = 0.8
    online_anchors: Harmless[int] = 10
    attach: Harmless[int] = 3
    attach_min: Harmless[float] = 0.65
    degree_semantic: Harmless[int] = 8
    degree_version: Harmless[int] = 0
    every_sessions: Harmless[int] = 3
    buffer_max: Harmless[int] = 200
    every_hours: Harmless[float] = 0.0
    workers: Harmless[int] = 8
    anchors: Harmless[int] = 10
    words: Harmless[float] = 1.0
    floor: Harmless[float] = 0.3
    candidates: Harmless[int] = 40
    hops: Harmless[int] = 2
    final: Harmless[int] = 16
    beside: Harmless[int] = 8
    by_time: Harmless[bool] = False
    block_tokens: Harmless[int] = 2048
    visibility: Harmless[bool] = True
    recovery_links: Harmless[bool] = True
    type_priority: Harmless[bool] = True
    successors_first: Harmless[bool] = True

    def least(self, op: str) -> float:
        """Least confidence of a proposal of "split", "merge" or "update"."""
        return float(getattr(self, f"confidence_{op}")) or self.confidence


def estimate(size: int, turns: int, settings: AllmemSettings) -> tuple[int, int, int]:
    """Turns are described, some of them looked at beside what is like them, and a few planned for."""
    planned = -(-turns // _PLANNED)
    looked_at = turns * 3 // 5 if settings.likeness else turns
    calls = -(-turns // max(1, settings.describe_turns)) + looked_at + planned
    near = 2 if settings.likeness else settings.online_anchors
    shown = 2 * size + looked_at * near * SUMMARY + 2 * size // _PLANNED
    return (calls, calls * PROMPT + shown, calls * REPLY)


PAPER: Mapping[str, object] = {
    "describe_turns": 1,
    "context_turns": 0,
    "likeness": 0.0,
    "words": 0.0,
    "floor": 0.0,
    "beside": 0,
    "by_time": True,
    "successors_first": False,
}
"""All other defaults are the paper's (F.4), or chosen where it lost a number."""

_NAMES = [field.name for field in fields(AllmemSettings)]

SPEC = StrategySpec(
    name="allmem",
    strategy="infinimem.strategies.allmem.strategy:AllMem",
    writes=("allmem/",),
    archived="allmem/archive/",
    kinds=(Kind("unit", "u", "allmem/units/", source="unit"),),
    links=("version", "sibling", "temporal", "semantic"),
    ledgers=("allmem/buffer",),
    settings=AllmemSettings,
    readers=("topology",),
    estimate=estimate,
    presets={"paper": {"allmem": PAPER}},
    reads=frozenset(_NAMES[_NAMES.index("anchors") :]),  # those of reading stand last
    near=True,
)
(UNIT,) = SPEC.kinds
VERSION, SIBLING, TEMPORAL, SEMANTIC = SPEC.links
