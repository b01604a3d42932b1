"""Means over questions, and how sure a difference of two methods is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

RESAMPLES = 10_000
_AT_ONCE = 1000  # resamples in one matrix: 1,500 questions take 12 MB


def mean(values: Collection[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def macro(groups: Mapping[str, Collection[float]]) -> float:
    """The mean of the means of the groups that hold anything: a small category counts like a large one."""
    return mean([mean(values) for values in groups.values() if values])


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least this share of all reach; 0 of nothing.

    Args:
        values: in any order; infinite ones count as the largest.
        share: 0 to 1.
    """
    ordered = sorted(values)
    if not ordered:
        return 0.0
    rank = -int(-(share * len(ordered)) // 1)  # rounded up
    return ordered[min(max(rank, 1), len(ordered)) - 1]


@dataclass(frozen=True)
class Difference:
    """A mean difference with its interval.

    Args:
        mean: of one method minus the other, over the same questions.
        low: end of the interval.
        high: the other end.
        questions: how many both answered.
    """

    mean: float
    low: float
    high: float
    questions: int

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def paired_difference(
    ours: Sequence[float],
    theirs: Sequence[float],
    resamples: int = RESAMPLES,
    seed: int = 7,
    level: float = 0.95,
) -> Difference:
    """Paired bootstrap: questions are drawn with replacement, both methods' scores of each together.

    Args:
        ours: a score for each question.
        theirs: the other method's, in the same order.
        resamples: how often.
        seed: the same seed gives the same interval.
        level: of confidence; the interval lies between percentiles (Efron and Tibshirani, 1993).

    Raises:
        ValueError: the two are not of one length.
    """
    import numpy as np

    if len(ours) != len(theirs):
        raise ValueError("a paired difference needs two scores for each question")
    if not ours:
        return Difference(0.0, 0.0, 0.0, 0)
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    generator = np.random.default_rng(seed)
    means = []
    for done in range(0, resamples, _AT_ONCE):
        drawn = generator.integers(0, len(differences), (min(_AT_ONCE, resamples - done), len(differences)))
        means.append(differences[drawn].mean(axis=1))
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return Difference(float(differences.mean()), float(low), float(high), len(differences))
