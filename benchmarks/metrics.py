"""Measures of a ranking against the set of what should have been found."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence

CUTS = (5, 10, 20, 50)


def distinct(ranked: Iterable[Hashable]) -> list[Hashable]:
    """Each once, where it stands first."""
    return list(dict.fromkeys(ranked))


def recall(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """The share of `gold` among the first k; `ranked` is distinct and `gold` is not empty."""
    return len(set(ranked[:k]) & set(gold)) / len(gold)


def ndcg(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Binary nDCG at k; the ideal ranking has min(|gold|, k) hits in front."""
    gained = sum(1 / math.log2(rank + 2) for rank, item in enumerate(ranked[:k]) if item in gold)
    return gained / sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), k)))


def mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0
