"""Words and pieces of words, hashed: no model, no download. Near is what is spelled alike.

Source of signed hashing: Weinberger et al., Feature Hashing for Large Scale Multitask Learning, 2009.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

_WORD = re.compile(r"\w+")
_LONGEST = 40
"""Characters of a word; what is longer is none that another text repeats."""
_PIECES = (3, 4)
"""Lengths of the pieces, with the marks at both ends of the word."""


class Lexical:
    """Counts words and their pieces in so many bins."""

    size = 512
    semantic = False
    name = "lexical 512"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        import numpy as np

        from infinimem.embedders.base import unit

        rows = np.zeros((len(texts), self.size))
        for row, text in zip(rows, texts, strict=True):
            for word, count in Counter(_WORD.findall(text.casefold())).items():
                weight = 1 + log(count)
                for place, value in _features(word[:_LONGEST]):
                    row[place] += weight * value
        return unit(rows.astype(np.float32))


@lru_cache(maxsize=1 << 15)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """Bins and values of a word: half its weight is the word's own, half that of its pieces."""
    marked = f"<{word}>"
    pieces = [marked[at : at + size] for size in _PIECES for at in range(len(marked) - size + 1)]
    share = (0.5 / len(pieces)) ** 0.5 if pieces else 0.0
    features = [(f"={word}", 0.5**0.5), *((piece, share) for piece in pieces)]
    return tuple(_hashed(feature, value) for feature, value in features)


def _hashed(feature: str, value: float) -> tuple[int, float]:
    """Bin and signed value; the sign lets features that share a bin cancel out on average."""
    code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
    return (code >> 1) % Lexical.size, value if code & 1 else -value
