"""Stage I: representatives of what a question leads to, that cover it and are near to it.

Source: xMemory, section 3.3, Eq. 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from infinimem.strategies.xmemory.objective import DIGITS

Normaliser = Literal["max", "total"]
Near = Sequence[Mapping[int, float]]
"""Of each candidate those that it covers, with the cosine: itself with 1, and its neighbours above 0."""


def min_max(values: Sequence[float]) -> list[float]:
    """Values from 0 for the least to 1 for the largest (s~ of Eq. 4); 0.5 each where all are equal."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    spread = high - low
    return [round((value - low) / spread, DIGITS) if round(spread, DIGITS) else 0.5 for value in values]


def normaliser(near: Near, kind: Normaliser) -> float:
    """Z of Eq. 4: the largest sum of one candidate's weights, or as in the published code that of all."""
    sums = [sum(covered.values()) for covered in near] or [1.0]
    return max(sums) if kind == "max" else sum(sums)


def gain(covered: Mapping[int, float], known: Collection[int], whole: float) -> float:
    """What a candidate covers that is not covered yet, as a share of Z: the first term of Eq. 4."""
    return sum(weight for other, weight in covered.items() if other not in known) / whole


def pick(
    relevance: Sequence[float],
    near: Near,
    budget: int,
    alpha: float,
    kind: Normaliser = "max",
) -> list[int]:
    """Candidates in the order in which they are taken.

    Args:
        relevance: of each to the question, any measure; ties go to the earlier candidate.
        near: what each covers.
        budget: how many at most.
        alpha: the share of the coverage term, 0 to 1.
        kind: of Z.
    """
    shares, whole = min_max(relevance), normaliser(near, kind)
    known: set[int] = set()
    taken: list[int] = []
    while len(taken) < min(budget, len(near)) and len(known) < len(near):
        left = [one for one in range(len(near)) if one not in taken]
        best = max(
            left,
            key=lambda one: (
                round(alpha * gain(near[one], known, whole) + (1 - alpha) * shares[one], DIGITS),
                shares[one],
                -one,
            ),
        )
        taken.append(best)
        known.update(near[best])
    return taken
