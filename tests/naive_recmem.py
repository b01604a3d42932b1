"""RecMem once more, as its paper tells it: lists and loops over vectors, no files, no index, no plans.

Written from sections 3.2 to 3.4 of the paper; where it is silent: cosines are compared to six digits, of
equal ones the earlier created is nearer, a cluster leaves the raw exchanges whole, and the new exchange
counts among theta_count (Appendix B).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Vector = Sequence[float]
Merge = Callable[[str, str], Vector | None]
"""Of an episode and an exchange: where the merged text lies, or None for "no"."""
Make = Callable[[tuple[str, ...]], list[tuple[tuple[str, ...], Vector]]]
"""Of a cluster by time: episodes as the exchanges that they name and where their texts lie."""


@dataclass
class Episode:
    """A narrative: its name, the exchanges that it holds, where it lies."""

    name: str
    units: list[str]
    vector: Vector


@dataclass
class Naive:
    """What a stream of exchanges comes to."""

    theta: float
    count: int
    merge: Merge
    make: Make
    raw: list[tuple[str, Vector]] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)
    """Exchanges of clusters that no episode tells."""
    log: list[tuple[str, ...]] = field(default_factory=list)
    """What the model was asked: ("merge", episode, exchange) or ("episodes", exchange, ...)."""

    def hear(self, name: str, vector: Vector) -> None:
        """One exchange (Eq. 4), the ones before it having been heard."""
        if not self._merged(name, vector):
            self._counted(name, vector)

    def _merged(self, name: str, vector: Vector) -> bool:
        """Eq. 6: the nearest episode is updated in place."""
        best: Episode | None = None
        for episode in self.episodes:
            if best is None or cos(vector, episode.vector) > cos(vector, best.vector):
                best = episode
        if best is None or cos(vector, best.vector) < self.theta:
            return False
        self.log.append(("merge", best.name, name))
        merged = self.merge(best.name, name)
        if merged is None:
            return False
        best.units.append(name)
        best.vector = merged
        return True

    def _counted(self, name: str, vector: Vector) -> None:
        """Eq. 5 and 7: of the nearest raw exchanges those within theta make a cluster with the new one."""
        nearest = sorted(enumerate(self.raw), key=lambda item: (-cos(vector, item[1][1]), item[0]))
        chosen = [at for at, _ in nearest[: 2 * self.count]]
        relevant = [at for at in chosen if cos(vector, self.raw[at][1]) >= self.theta]
        if len(relevant) + 1 < self.count:
            self.raw.append((name, vector))
            return
        cluster = (*(self.raw[at][0] for at in sorted(relevant)), name)
        self.log.append(("episodes", *cluster))
        left = list(cluster)
        made = 0
        for units, where in self.make(cluster):
            told = [unit for unit in cluster if unit in units and unit in left]
            if told:
                made += 1
                self.episodes.append(Episode(f"{name}-{made}", told, where))
                left = [unit for unit in left if unit not in told]
        self.unheard += left
        self.raw = [unit for at, unit in enumerate(self.raw) if at not in relevant]


def cos(one: Vector, other: Vector) -> float:
    """Of vectors of length 1."""
    return round(sum(a * b for a, b in zip(one, other, strict=True)), 6)
