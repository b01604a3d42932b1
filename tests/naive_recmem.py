"""RecMem's steps 1 and 2, written a second time and as plainly as possible, to be run beside the real ones.

Written from sections 0.1, 4.1, 4.3 and 5a of the design and from sections 3.2 and 3.3 of the paper; facts
(REFINE) are left out. Where those are silent, it was read like this:

* A threshold is met by a cosine that equals it once both are rounded to six digits.
* Of equally near episodes, as of equally near raw units, the earlier one counts as nearer.
* Only the episode nearest to the unit is put to MERGE. After a "no" no second one is tried.
* A unit looks only at units heard before it, and only at raw ones: in no episode, not left out by EPISODES.
* What EPISODES says about units that it was not shown counts for nothing, nor does a unit's second mention.
* An episode's vector is that of its text as given, even where an earlier episode took some of its units.
* Only episodes that are made are numbered, so the numbers have no gap. Units of an episode stand by time,
  and a merged unit, being the latest, comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Vector = Sequence[float]


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two unit vectors, rounded so that equal ones compare as equal."""
    return round(sum(a * b for a, b in zip(one, other, strict=True)), 6)


@dataclass
class Unit:
    """An exchange that was heard."""

    name: str
    vector: Vector


@dataclass
class Episode:
    """A narrative and the units that it tells of."""

    name: str
    units: list[str]
    vector: Vector


class Naive:
    """Takes ended exchanges one by one: merges each into an episode, or counts what recurs with it."""

    def __init__(
        self,
        theta_sim: float,
        theta_count: int,
        merge: Callable[[str, str], Vector | None],
        make: Callable[[tuple[str, ...]], list[tuple[tuple[str, ...], Vector]]],
    ) -> None:
        self.theta_sim = round(theta_sim, 6)
        self.theta_count = theta_count
        self.merge = merge
        self.make = make
        self.log: list[tuple[str, ...]] = []
        self.episodes: list[Episode] = []
        self.unheard: list[str] = []
        self.raw: list[Unit] = []

    def hear(self, name: str, vector: Vector) -> None:
        """Take one ended exchange through both steps."""
        unit = Unit(name, vector)
        if self._merged(unit):
            return
        recurring = self._recurring(unit)
        self.raw.append(unit)
        if len(recurring) + 1 >= self.theta_count:
            self._consolidate(unit, recurring)

    def _merged(self, unit: Unit) -> bool:
        """Step 1: whether the nearest episode, if it is near enough, takes the unit."""
        nearest: Episode | None = None
        for episode in self.episodes:
            if nearest is None or cosine(unit.vector, episode.vector) > cosine(unit.vector, nearest.vector):
                nearest = episode
        if nearest is None or cosine(unit.vector, nearest.vector) < self.theta_sim:
            return False
        self.log.append(("merge", nearest.name, unit.name))
        merged = self.merge(nearest.name, unit.name)
        if merged is None:
            return False
        nearest.vector = merged
        nearest.units.append(unit.name)
        return True

    def _recurring(self, unit: Unit) -> list[Unit]:
        """Step 2: of the nearest raw units, twice as many as must recur, those that are near enough."""
        # Sorting keeps the order of equals, and raw units stand in the order in which they were heard.
        by_nearness = sorted(self.raw, key=lambda other: -cosine(unit.vector, other.vector))
        nearest = by_nearness[: 2 * self.theta_count]
        return [other for other in nearest if cosine(unit.vector, other.vector) >= self.theta_sim]

    def _consolidate(self, unit: Unit, recurring: list[Unit]) -> None:
        """Make episodes of the unit and what recurs with it; none of these is raw afterwards."""
        names = [other.name for other in [*recurring, unit]]
        cluster = [other.name for other in self.raw if other.name in names]
        self.log.append(("episodes", *cluster))
        taken: list[str] = []
        made = 0
        for named, vector in self.make(tuple(cluster)):
            units = [name for name in cluster if name in named and name not in taken]
            if not units:
                continue
            made += 1
            taken.extend(units)
            self.episodes.append(Episode(f"{unit.name}-{made}", units, vector))
        self.unheard.extend(name for name in cluster if name not in taken)
        self.raw = [other for other in self.raw if other.name not in cluster]
