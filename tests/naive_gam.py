"""GAM's triggers, cuts and relations, and its score, written a second time and as plainly as possible.

Written from sections 0.1, 5.1, 5.3 and 5a of the design and sections 3.3 and 3.4 and appendix A of the paper.
Readings chosen where those are silent:

* A session ends when a turn of another one arrives, and a pause when the turn after it does: both are dealt
  with before that turn is active. Overflow (more tokens than the limit) is looked at once it is.
* SEGMENT is asked whenever there are active turns, even a single one. A window starts 55 turns after the one
  before, and the last reaches the end. Cuts of all windows count, but none before a window's first turn and
  none before a turn that it does not show.
* Where overflow ends the tail as well, only the tail's topic is forced: the others end at cuts.
* The neighbour of a forced cut is the topic that the very next turn begins, if its session is the same. The
  forced topic comes last among its candidates, as a sixth, unless it is one of the five nearest anyhow.
* Segments become topics one after the other, so the earlier ones of a trigger are candidates for the later.
  Of equally near topics the older one is nearer. A topic without candidates is not related.
* RELATE's first word on a candidate counts. Unknown candidates and relations are dropped as "unrelated" is.
* An edge's weight is the confidence as given. With fewer than ten events c_10 is the lowest cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp

Vector = Sequence[float]

WINDOW, SHARED, NEAREST = 60, 5, 5
RELATIONS = ("support", "contradict", "causal", "coreference", "semantic")


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two unit vectors, rounded so that equal ones compare as equal."""
    return round(sum(a * b for a, b in zip(one, other, strict=True)), 6)


def score(
    cosines: Sequence[float],
    time: Sequence[bool],
    role: Sequence[bool],
    verified: Sequence[bool],
    betas: tuple[float, float, float] = (1.4, 1.4, 1.2),
) -> list[float]:
    """Eq. 11: how near each event is, times a factor for each of time, role and confidence that holds."""
    best = sorted(cosines, reverse=True)[:10]
    scores = []
    for i, nearness in enumerate(cosines):
        likely = 1 / (1 + exp(-(nearness - best[-1]) / 0.05))
        scores.append(likely * betas[0] ** time[i] * betas[1] ** role[i] * betas[2] ** verified[i])
    return scores


@dataclass
class Turn:
    """A turn that is in no topic yet."""

    name: str
    session: str
    minute: float
    tokens: int


class Naive:
    """Keeps turns active until a trigger makes topics of them."""

    def __init__(
        self,
        limit: int,
        gap_minutes: float,
        cut: Callable[[list[str]], list[str]],
        tau: float = 0.5,
        *,
        relate: Callable[[str, list[str]], list[tuple[str, str, float]]],
        vector: Callable[[tuple[str, ...]], Vector],
    ) -> None:
        self.limit, self.gap_minutes, self.tau = limit, gap_minutes, tau
        self.cut, self.relate, self.vector = cut, relate, vector
        self.turns: list[Turn] = []
        self.topics: dict[str, list[str]] = {}  # by age
        self.vectors: dict[str, Vector] = {}
        self.forced: set[str] = set()
        self.edges: set[tuple[str, str, str, float]] = set()
        self.log: list[tuple[object, ...]] = []
        self.broken_off: Turn | None = None  # first turn of a forced topic, until another topic follows

    @property
    def active(self) -> list[str]:
        """Names of the turns that are in no topic yet."""
        return [turn.name for turn in self.turns]

    def hear(self, name: str, session: str, minute: float, tokens: int) -> None:
        """Take one turn, and deal with whatever it ends."""
        if self.turns and self.turns[-1].session != session:
            self.end()
        if self.turns and minute - self.turns[-1].minute >= self.gap_minutes:
            self._take(self._segments(), tail_stays=True)
        self.turns.append(Turn(name, session, minute, tokens))
        if sum(turn.tokens for turn in self.turns) > self.limit:
            segments = self._segments()
            tail = segments[-1]
            forced = len(segments) == 1 or sum(turn.tokens for turn in tail) > self.limit
            self._take(segments, tail_stays=not forced)
            if forced:
                self.forced.add(tail[0].name)
                self.broken_off = tail[0]

    def end(self) -> None:
        """Make topics of all that is active."""
        if self.turns:
            self._take(self._segments(), tail_stays=False)

    def _segments(self) -> list[list[Turn]]:
        """The active turns, cut where SEGMENT says that a subject ends."""
        names = self.active
        cuts: set[str] = set()
        # A window that would show shared turns alone is not opened.
        for start in range(0, max(len(names) - SHARED, 1), WINDOW - SHARED):
            shown = names[start : start + WINDOW]
            self.log.append(("cut", *shown))
            cuts.update(name for name in self.cut(shown) if name in shown[1:])
        segments: list[list[Turn]] = [[]]
        for turn in self.turns:
            if turn.name in cuts:
                segments.append([])
            segments[-1].append(turn)
        return segments

    def _take(self, segments: list[list[Turn]], tail_stays: bool) -> None:
        """Make topics of the segments; the last may stay active instead."""
        self.turns = segments.pop() if tail_stays else []
        for segment in segments:
            self._topic(segment)

    def _topic(self, segment: list[Turn]) -> None:
        """Make a topic of the turns and relate it to older ones."""
        new, names = segment[0].name, [turn.name for turn in segment]
        vector = self.vector(tuple(names))
        candidates = sorted(self.topics, key=lambda old: -cosine(vector, self.vectors[old]))[:NEAREST]
        before, self.broken_off = self.broken_off, None
        if before and before.session == segment[0].session and before.name not in candidates:
            candidates.append(before.name)
        self.topics[new], self.vectors[new] = names, vector
        if not candidates:
            return
        self.log.append(("relate", new, *candidates))
        answered: set[str] = set()
        for old, relation, confidence in self.relate(new, list(candidates)):
            if old in candidates and old not in answered and relation in RELATIONS and confidence > self.tau:
                self.edges.add((new, old, relation, confidence))
            answered.add(old)
