"""The one ranking: BM25 over what a piece says, what stands around it, and the whole it belongs to.

A turn like "I drew it yesterday" is found by its neighbours and by the session that is about the
drawing. Pieces come in as bags of terms; ties are left to the caller's order.

Source: BM25 as in STRATEGIES 1.7 (k1, b, idf with + 1). The weights of the fields were chosen on the LoCoMo
development conversations, where recall is flat around them, and checked on LongMemEval's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from infinimem.retrieval.lexical import LexicalIndex, MemoryIndex

AROUND_WEIGHT, WHOLE_WEIGHT = 0.5, 0.5
OWN_B, CONTEXT_B = 0.3, 0.5
K1 = 1.2
CANDIDATES = 1000


@dataclass(frozen=True)
class Bags:
    """The searchable terms of one piece.

    Args:
        own: what it says, with who said it and when.
        around: what stands around it.
        whole: key of the document or session that it belongs to.
    """

    own: tuple[str, ...]
    around: tuple[str, ...] = ()
    whole: Hashable = None


class Field:
    """BM25 over one bag of terms a position.

    Args:
        bags: the terms, in the order of their positions.
        b: how much longer bags are held back, 0 to 1.
    """

    def __init__(self, bags: Sequence[Sequence[str]], b: float) -> None:
        self._counts = [Counter(bag) for bag in bags]
        mean = sum(map(len, bags)) / len(bags) if bags else 0.0
        self._norms = [K1 * (1 - b + b * (len(bag) / mean if mean else 0.0)) for bag in bags]
        holders = Counter(term for counts in self._counts for term in counts)
        self._idf = {
            term: math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
            for term, holding in holders.items()
        }

    def score(self, terms: Sequence[str], position: int) -> float:
        """The sum over the distinct terms of idf times saturated frequency; 0 where none occurs."""
        counts, norm = self._counts[position], self._norms[position]
        total = 0.0
        for term in terms:
            if frequency := counts.get(term, 0):
                total += self._idf[term] * frequency * (K1 + 1) / (frequency + norm)
        return total


class Ranking:
    """A fixed list of pieces that can be ranked for any query.

    Args:
        pieces: their bags; positions in it are what `best` returns.
        wholes: the terms of each document or session that pieces name as their `whole`.
    """

    def __init__(self, pieces: Sequence[Bags], wholes: dict[Hashable, Sequence[str]] | None = None) -> None:
        wholes = wholes or {}
        numbers = {key: number for number, key in enumerate(wholes)}
        self._whole = [numbers.get(piece.whole) for piece in pieces]
        self._own = Field([piece.own for piece in pieces], OWN_B)
        self._around = Field([piece.around for piece in pieces], CONTEXT_B)
        self._wholes = Field(list(wholes.values()), CONTEXT_B)
        self._index: LexicalIndex = MemoryIndex([piece.own + piece.around for piece in pieces])

    def best(self, terms: Sequence[str]) -> list[tuple[int, float]]:
        """Positions and scores of all candidates, higher scores first, then lower positions."""
        found = []
        wholes: dict[int | None, float] = {None: 0.0}
        for position in self._index.candidates(terms, CANDIDATES):
            whole = self._whole[position]
            if whole is not None and whole not in wholes:
                wholes[whole] = self._wholes.score(terms, whole)
            score = self._own.score(terms, position) + AROUND_WEIGHT * self._around.score(terms, position)
            score += WHOLE_WEIGHT * wholes[whole]
            found.append((position, round(score, 4)))  # an order must not hang on the last bits of a float
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))
