"""Measures of a ranking against the set of what should have been found.

A piece is scored by the ids that it holds or cites, in rank order; an id counts where it comes first.
Relevance is binary. Sources: recall, hit and nDCG as in Manning and others, Introduction to Information
Retrieval (2008), chapter 8; nDCG with the discount 1/log2(rank + 1) of Järvelin and Kekäläinen (2002).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence

CUTS = (5, 10, 20, 50)
"""Ranks at which a list is cut."""

Piece = tuple[Collection[Hashable], int]
"""The ids that a piece of evidence holds, and its tokens."""


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


def reciprocal_rank(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """1 over the rank of the first that is in `gold`; 0 where none is. Its mean is the MRR."""
    return next((1 / rank for rank, item in enumerate(ranked, 1) if item in gold), 0.0)


def measures(
    ranked: Sequence[Hashable], gold: Collection[Hashable], cuts: Iterable[int] = CUTS, label: str = ""
) -> dict[str, float]:
    """All measures of a ranking by rank.

    Args:
        ranked: ids, best first; one that comes twice counts where it comes first.
        gold: what should be found; not empty.
        cuts: ranks.
        label: set before the names.

    Returns:
        For each k "R@k" (recall), "N@k" (nDCG), "hit@k" (whether any is there), "all@k" (whether all are).
    """
    once = distinct(ranked)
    found = {}
    for k in cuts:
        share = recall(once, gold, k)
        found[f"{label}R@{k}"] = share
        found[f"{label}N@{k}"] = ndcg(once, gold, k)
        found[f"{label}hit@{k}"] = float(share > 0)
        found[f"{label}all@{k}"] = float(share == 1)
    return found


def within(pieces: Iterable[Piece], gold: Collection[Hashable], budget: int) -> float:
    """The share of `gold` in the pieces that a reader has read before the next would go over the budget.

    Args:
        pieces: best first.
        gold: what should be found; not empty.
        budget: tokens.
    """
    seen: set[Hashable] = set()
    for ids, tokens in pieces:
        budget -= tokens
        if budget < 0:
            break
        seen.update(ids)
    return len(seen & set(gold)) / len(gold)


def tokens_until(pieces: Iterable[Piece], gold: Collection[Hashable]) -> int | None:
    """Tokens read until all of `gold` was seen; None where the pieces never hold it all."""
    missing, read = set(gold), 0
    for ids, tokens in pieces:
        if not missing:
            break
        read += tokens
        missing.difference_update(ids)
    return None if missing else read
