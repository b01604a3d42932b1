"""The objective f that themes are kept balanced and coherent by; every formula by itself.

Source: xMemory, section 3.2, Eq. 1 to 3. Vectors have length 1, or 0 where a text says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
"""Vectors of facts, a row each."""

EPSILON = 1e-3
"""Of sigma, which is 0 where themes lie at even distances."""
DIGITS = 6
"""Of f, and of cosines that are compared; beyond them sums in another order differ."""


@dataclass(frozen=True, eq=False)
class Theme:
    """What f takes of a theme.

    Args:
        size: n_k, how many facts it has.
        centre: mu_k, the mean of their vectors, of length 1 (of zeros where they cancel out).
        cohesion: the mean cosine of its facts and mu_k (Eq. 3).
        purity: the mean cosine of all pairs of them, which f does not take; 1 for one alone.
    """

    size: int
    centre: Rows
    cohesion: float
    purity: float

    @classmethod
    def of(cls, rows: Rows) -> Theme:
        """The theme of facts with these vectors; at least one."""
        count, mean = len(rows), rows.mean(axis=0)
        length = float(np.linalg.norm(mean))
        centre = mean / length if round(length, DIGITS) else np.zeros_like(mean)
        pairs = count * count * (mean @ mean) - (rows * rows).sum()
        purity = float(pairs / (count * (count - 1))) if count > 1 else 1.0
        return cls(count, centre, float((rows @ centre).mean()), purity)


def sparsity(sizes: Sequence[int]) -> float:
    """How evenly facts are spread: N^2 / (K * sum n_k^2) (Eq. 2); 1 for themes of one size."""
    return sum(sizes) ** 2 / (len(sizes) * sum(size * size for size in sizes))


def nearest(centres: Rows) -> Rows:
    """s_k, the cosine of a theme's centre and the nearest other one (Eq. 3); 0 for one alone."""
    if len(centres) < 2:
        return np.zeros(len(centres))
    cosines = centres @ centres.T
    np.fill_diagonal(cosines, -np.inf)
    found: Rows = cosines.max(axis=1)
    return found


def bell(near: Rows) -> Rows:
    """g(s_k) = exp(-(s_k - m)^2 / 2 sigma^2), which falls for themes that are redundant or islands (Eq. 3).

    m is the median of s, sigma the median of |s_k - m|, and `EPSILON`.
    """
    middle = np.median(near)
    sigma = np.median(np.abs(near - middle)) + EPSILON
    found: Rows = np.exp(-((near - middle) ** 2) / (2 * sigma**2))
    return found


def semantics(themes: Sequence[Theme]) -> float:
    """The mean over themes of cohesion times g(s_k) (Eq. 3)."""
    weights = bell(nearest(np.stack([theme.centre for theme in themes])))
    return float(np.mean(weights * np.array([theme.cohesion for theme in themes])))


def objective(themes: Iterable[Theme]) -> float:
    """f, the sum of both scores, to 6 decimals (Eq. 1); 0 for no themes."""
    found = tuple(themes)
    if not found:
        return 0.0
    return round(sparsity([theme.size for theme in found]) + semantics(found), DIGITS)
