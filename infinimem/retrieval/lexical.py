"""Lexical indexes: which pieces of text hold any of these terms, the likeliest first.

An index gathers candidates; scoring.py ranks them, so that every engine gives the same result. It knows
terms and positions, nothing of documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rank_bm25 import BM25Plus


class LexicalIndex(Protocol):
    """A seam: every engine passes the same contract tests."""

    def __len__(self) -> int:
        """How many pieces are indexed."""
        ...

    def candidates(self, terms: Sequence[str], limit: int) -> list[int]:
        """Positions of the pieces that hold at least one term, in ascending order.

        Args:
            terms: distinct query terms.
            limit: if more pieces than this match, only the likeliest are given.
        """
        ...


class MemoryIndex:
    """An index in memory, for libraries of a size that is read in a moment; nothing is written to disk.

    Args:
        bags: the terms of each piece, in the order of their positions.
    """

    def __init__(self, bags: Sequence[Sequence[str]]) -> None:
        self._bags = bags
        self._holders: dict[str, list[int]] = {}
        for position, bag in enumerate(bags):
            for term in set(bag):
                self._holders.setdefault(term, []).append(position)

    def __len__(self) -> int:
        return len(self._bags)

    def candidates(self, terms: Sequence[str], limit: int) -> list[int]:
        held = [term for term in dict.fromkeys(terms) if term in self._holders]
        found = sorted({position for term in held for position in self._holders[term]})
        if len(found) <= limit:
            return found
        scores = self._engine.get_batch_scores(held, found)
        best = sorted(zip(scores, found, strict=True), key=lambda pair: (-pair[0], pair[1]))
        return sorted(position for _, position in best[:limit])

    @cached_property
    def _engine(self) -> BM25Plus:
        # Okapi's weights go negative on tiny libraries; Plus stays above zero.
        from rank_bm25 import BM25Plus

        return BM25Plus(self._bags)
