"""Means over questions, and how sure a difference of two methods is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 10_000


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


def paired_differences(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    resamples: int = RESAMPLES,
    seed: int = 7,
    level: float = 0.95,
) -> dict[str, Difference]:
    """Paired bootstrap: questions are drawn with replacement, both methods' scores of each together.

    Args:
        pairs: for each measure one method's score of each question and the other's, in the same order.
        resamples: how often.
        seed: the same seed gives the same interval.
        level: of confidence; the interval lies between percentiles (Efron and Tibshirani, 1993).

    Raises:
        ValueError: two that belong together are not of one length.
    """
    import numpy as np

    if any(len(ours) != len(theirs) for ours, theirs in pairs.values()):
        raise ValueError("a paired difference needs two scores for each question")
    found = {name: Difference(0.0, 0.0, 0.0, 0) for name in pairs}
    tail = (1 - level) / 2
    for count in sorted({len(ours) for ours, _ in pairs.values()} - {0}):
        names = [name for name, (ours, _) in pairs.items() if len(ours) == count]
        ours, theirs = (np.array([pairs[name][side] for name in names]).T for side in (0, 1))
        differences = np.asarray(ours - theirs, dtype=np.float32)
        means = _times_drawn(count, resamples, seed) @ differences / count
        lows, highs = np.quantile(means, [tail, 1 - tail], axis=0)
        for name, middle, low, high in zip(names, (ours - theirs).mean(axis=0), lows, highs, strict=True):
            found[name] = Difference(float(middle), float(low), float(high), count)
    return found


@lru_cache(maxsize=2)
def _times_drawn(questions: int, resamples: int, seed: int) -> NDArray[np.float32]:
    """How often each question is drawn in each resample: the same for all measures and methods of a run."""
    import numpy as np

    generator = np.random.default_rng(seed)
    times = np.empty((resamples, questions), dtype=np.float32)
    for row in times:
        row[:] = np.bincount(generator.integers(0, questions, questions), minlength=questions)
    return times
