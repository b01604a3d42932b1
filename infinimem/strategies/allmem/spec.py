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
    """[allmem]: units, their links and their consolidation, then how they are read.

    Where the paper lost a number, it is chosen here (theta_coh, merges of at most 4, degrees). `preset =
    "paper"` has the paper's form.
    """

    describe_turns: Harmless[int] = 12
    """Turns of a session that one call describes."""
    context_turns: Harmless[int] = 6
    """Turns before them that a call is shown too."""
    likeness: Harmless[float] = 0.3
    """Least likeness, 0 to 1, of a neighbour that a unit is diagnosed beside; with 0 all units are."""
    split: Harmless[bool] = True
    merge: Harmless[bool] = True
    update: Harmless[bool] = True
    """Each operator may be switched off by itself."""
    confidence: Harmless[float] = 0.9
    """Least confidence of a proposal (Eq. 28)."""
    confidence_split: Harmless[float] = 0.0
    confidence_merge: Harmless[float] = 0.0
    confidence_update: Harmless[float] = 0.0
    """The same of one operator's; 0 for that of all (C.4)."""
    coherence: Harmless[float] = 0.7
    """Least mean cosine over the pairs of a merge (Eq. 29)."""
    merge_max: Harmless[int] = 4
    coverage: Harmless[float] = 0.8
    """Least share of a unit's text that its segments hold together."""
    online_anchors: Harmless[int] = 10
    """Neighbours on the surface that a new unit is compared with (Eq. 4)."""
    attach: Harmless[int] = 3
    attach_min: Harmless[float] = 0.65
    """Least cosine of such a link."""
    degree_semantic: Harmless[int] = 8
    degree_version: Harmless[int] = 0
    """Most links of a kind that lead from a unit (Eq. 12); 0 for any number of version links. Those by which
    alone a unit is reached stay, however many (B.7)."""
    every_sessions: Harmless[int] = 3
    """Sessions after which the buffer is consolidated; 0 for never."""
    buffer_max: Harmless[int] = 200
    """Units in the buffer after which it is, whatever the sessions; 0 for any number."""
    every_hours: Harmless[float] = 0.0
    """Hours after the oldest unit in the buffer was said, at which it is too (C.6); 0 for never."""
    workers: Harmless[int] = 8
    anchors: Harmless[int] = 10
    """Units of the surface from which a question starts."""
    words: Harmless[float] = 1.0
    """What search's ranking of the turns counts beside the cosine."""
    floor: Harmless[float] = 0.3
    """Least share of the best score of what a question starts from, and of what an answer is shown."""
    candidates: Harmless[int] = 40
    """Units that a question looks at, anchors included."""
    hops: Harmless[int] = 2
    """How far links are followed; 0 for not at all."""
    final: Harmless[int] = 16
    beside: Harmless[int] = 8
    """Of these, how many bring the turns before and after them."""
    by_time: Harmless[bool] = False
    """Whether an answer is given them as they were said, and not best first."""
    block_tokens: Harmless[int] = 2048
    visibility: Harmless[bool] = True
    """Whether a question starts from the surface alone."""
    recovery_links: Harmless[bool] = True
    type_priority: Harmless[bool] = True
    """Whether version and sibling links are followed before the others."""
    successors_first: Harmless[bool] = True
    """Whether an archived unit ranks behind the one that stands for it."""

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
