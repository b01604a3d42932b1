"""Lexical indexes: which rows hold any of these terms, the likeliest first.

An index gathers candidates; scoring.py ranks them, so that every engine gives the same result. It knows
terms and keys of rows, nothing of documents.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from rank_bm25 import BM25Plus

Kind = Literal["entries", "blocks"]
"""What is ranked."""
KINDS: tuple[Kind, ...] = ("entries", "blocks")
GROUPS = ("live", "archive", "evidence", "journal")
"""Of documents that can be found."""
ASIDE = "both/aside"
"""Of documents that are the strategy's ledgers or a sibling's: they have no rows."""
SHELVES = (*(f"{kind}/{group}" for kind in (*KINDS, "both") for group in GROUPS), ASIDE)
"""Entries and heading blocks of each group of documents; a document without entries has blocks for both."""
ORDINALS = 24
"""Bits of a key that number the rows of a part."""


def key(uid: int, ordinal: int) -> int:
    """The key of a row: of its part, and of its place in it."""
    return uid << ORDINALS | ordinal


def shelves_of(kind: Kind, groups: Collection[str] = GROUPS) -> set[str]:
    """The shelves on which rows of a kind stand."""
    return {f"{one}/{group}" for one in (kind, "both") for group in groups}


class LexicalIndex(Protocol):
    """A seam: every engine passes the same contract tests."""

    def candidates(self, terms: Sequence[str], limit: int, shelves: Collection[str]) -> list[int]:
        """Keys of the rows that hold at least one term, in ascending order.

        Args:
            terms: distinct query terms.
            limit: if more rows than this match, only the likeliest are given.
            shelves: the rows of these alone.
        """
        ...


def nowhere(shelf: str, key: int, terms: Sequence[str]) -> None:
    """Takes rows that no engine needs to know."""


class MemoryIndex:
    """An index in memory, for libraries of a size that is read in a moment; nothing is written to disk."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, int, Sequence[str]]] = []

    def add(self, shelf: str, key: int, terms: Sequence[str]) -> None:
        """Add a row; keys ascend."""
        self._rows.append((shelf, key, terms))

    def candidates(self, terms: Sequence[str], limit: int, shelves: Collection[str]) -> list[int]:
        held = [term for term in dict.fromkeys(terms) if term in self._holders]
        holders = sorted({number for term in held for number in self._holders[term]})
        found = [number for number in holders if self._rows[number][0] in shelves]
        if len(found) > limit:
            scores = self._engine.get_batch_scores(held, found)
            best = sorted(zip(scores, found, strict=True), key=lambda pair: (-pair[0], pair[1]))
            found = sorted(number for _, number in best[:limit])
        return [self._rows[number][1] for number in found]

    @cached_property
    def _holders(self) -> dict[str, list[int]]:
        holders: dict[str, list[int]] = {}
        for number, (_, _, terms) in enumerate(self._rows):
            for term in set(terms):
                holders.setdefault(term, []).append(number)
        return holders

    @cached_property
    def _engine(self) -> BM25Plus:
        # Okapi's weights go negative on tiny libraries; Plus stays above zero.
        from rank_bm25 import BM25Plus

        return BM25Plus([terms for _, _, terms in self._rows])
