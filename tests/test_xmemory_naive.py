"""xMemory beside a second implementation of it: ATTACH, SPLIT, MERGE, f and PICK, as plainly as possible.

Written from sections 0.1, 3.1, 3.2 and 5a of the design and sections 3.2 and 3.3 of the paper. Readings:

* Cosines that decide anything are compared to six digits; within f they count in full.
* (a) A component over the cap is cut, by age, in pieces of the cap.
* (b) There are as few runs as the cap allows, two at least, as equal as can be, the longer ones first.
* (c) A third mean starts from the vector least near to both ends of the farthest pair; cosine assigns, until
  nothing changes or a hundred times; a mean left without a vector is dropped at the end.
* PICK's neighbours come from the vectors given, and only those with a cosine above 0 count. A normaliser
  other than "max" is the sum of all weights, each node's own among them. Scores are compared to six digits.
* Cosines, f and gains are compared, and logged, to six digits. "Older" is earlier made; ids compare as text.
* ATTACH asks the nearest theme alone whether it takes the fact. A full one takes it from `attach` on.
* SPLIT looks at the themes that changed since the block began, oldest first, and at the parts again, until
  none is due: what a merge filled waits for the next fact. A due theme is always
  cut, whether f rises or not: f says how. A candidate has two parts or more, none of them over the cap. Of
  candidates that are equal in f and in parts the first counts, in the order (a), (b), (c) with 2, (c) with 3.
* The larger part keeps the id, of equal ones that with the oldest fact. The others are made by oldest fact.
* The context of f is the other themes nearest to any affected one, and is the same before and after.
* MERGE, set off by what a block brings, looks at the themes that changed since it began, each with the ten
  nearest of those that it may be joined with (the paper: a small set of nearest neighbour themes), the older
  ones of equal. A pass joins one pair; tiny themes, too, stay within the cap. Of equal gains
  the pair counts whose older theme is the older one, then whose younger theme is.
* A theme lists its facts by age, after a merge too. An id that was ever used is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import ceil, exp, hypot
from statistics import median
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from infinimem.strategies.xmemory.partition import Change, Theme, ThemePartition, objective
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.strategies.xmemory.strategy import pick

Vector = Sequence[float]


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two vectors of any length, 0 where one of them has none."""
    lengths = hypot(*one) * hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def near(one: Vector, other: Vector) -> float:
    """The cosine as it is compared, so that equal ones are equal."""
    return round(cosine(one, other), 6)


def mean(vectors: Sequence[Vector]) -> list[float]:
    """The mean of the vectors, component by component."""
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def naive_objective(themes: Sequence[Sequence[Vector]]) -> float:
    """f of Eq. 1-3: how balanced the themes are, plus how coherent and how usually apart; 0 of no theme."""
    if not themes:
        return 0.0
    sizes = [len(theme) for theme in themes]
    means = [mean(theme) for theme in themes]
    nearest = []
    for k, mu in enumerate(means):
        nearest.append(max([cosine(mu, other) for j, other in enumerate(means) if j != k], default=0.0))
    middle = median(nearest)
    width = median([abs(s - middle) for s in nearest]) + 1e-3
    semantic = 0.0
    for theme, mu, s in zip(themes, means, nearest, strict=True):
        coherence = sum(cosine(x, mu) for x in theme) / len(theme)
        semantic += coherence * exp(-((s - middle) ** 2) / (2 * width**2))
    return sum(sizes) ** 2 / (len(themes) * sum(n * n for n in sizes)) + semantic / len(themes)


def naive_pick(
    relevance: Sequence[float],
    vectors: Sequence[Vector],
    budget: int,
    alpha: float = 0.7,
    knn: int = 10,
    normaliser: str = "max",
) -> list[int]:
    """Eq. 4: nodes that are relevant and stand for what none before them stands for, in order of choice."""
    nodes = range(len(vectors))
    if not nodes:
        return []
    low, high = min(relevance), max(relevance)
    wanted = [0.5 if round(high - low, 6) == 0 else round((r - low) / (high - low), 6) for r in relevance]
    weights: list[dict[int, float]] = []
    for i in nodes:
        cosines = [near(vectors[i], vector) for vector in vectors]
        others = sorted((u for u in nodes if u != i), key=cosines.__getitem__, reverse=True)[:knn]
        weights.append({i: 1.0} | {u: cosines[u] for u in others if cosines[u] > 0})
    sums = [sum(weight.values()) for weight in weights]
    z = max(sums) if normaliser == "max" else sum(sums)
    chosen: list[int] = []
    covered: set[int] = set()
    while len(covered) < len(nodes) and len(chosen) < budget:
        ranked = []
        for i in nodes:
            if i not in chosen:
                gain = sum(w for u, w in weights[i].items() if u not in covered) / z
                ranked.append((-round(alpha * gain + (1 - alpha) * wanted[i], 6), -wanted[i], i))
        chosen.append(min(ranked)[2])
        covered.update(weights[chosen[-1]])
    return chosen


def components(rows: Sequence[Vector], edge: float, cap: int) -> list[list[int]]:
    """(a): what hangs together by cosines of `edge` or more, cut at the cap."""
    left = list(range(len(rows)))
    parts: list[list[int]] = []
    while left:
        part = [left.pop(0)]
        for i in part:  # which grows as it is read
            part.extend(j for j in left if near(rows[i], rows[j]) >= edge)
            left = [j for j in left if j not in part]
        part.sort()
        parts.extend(part[at : at + cap] for at in range(0, len(part), cap))
    return parts


def runs(rows: Sequence[Vector], cap: int) -> list[list[int]]:
    """(b): runs along the first principal component, whose largest entry is positive."""
    centred = np.array(rows) - np.array(mean(rows))
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.argmax(np.round(np.abs(axis), 6))])
    order = sorted(range(len(rows)), key=lambda i: round(float(centred[i] @ axis), 6))
    count = max(2, ceil(len(rows) / cap))
    return [sorted(int(i) for i in run) for run in np.array_split(np.array(order), count)]


def means(rows: Sequence[Vector], count: int) -> list[list[int]]:
    """(c): two or three means, which start from the farthest pair."""
    farthest = min(combinations(range(len(rows)), 2), key=lambda pair: near(rows[pair[0]], rows[pair[1]]))
    ends = list(farthest)
    if count == 3:
        ends.append(min(range(len(rows)), key=lambda i: max(near(rows[i], rows[end]) for end in ends)))
    centres = [list(rows[end]) for end in ends]
    groups: list[list[int]] = []
    for _ in range(100):
        before = groups
        groups = [[] for _ in centres]
        for i, row in enumerate(rows):
            nearness = [near(row, centre) for centre in centres]
            groups[nearness.index(max(nearness))].append(i)
        if groups == before:
            break
        for centre, group in zip(centres, groups, strict=True):
            if group:
                centre[:] = mean([rows[i] for i in group])
    return [group for group in groups if group]


class Naive:
    """Keeps facts in themes: attaches those of a block, then splits, then merges."""

    def __init__(
        self,
        attach: float,
        attach_room: float,
        theme_max: int,
        purity: float,
        merge_min: float,
        tiny_min: float,
        context: int = 10,
        graph_edge: float = 0.66,
    ) -> None:
        self.attach = attach
        self.attach_room = attach_room
        self.cap = theme_max
        self.purity = purity
        self.merge_min = merge_min
        self.tiny_min = tiny_min
        self.context = context
        self.graph_edge = graph_edge
        self.vectors: dict[str, Vector] = {}  # by age
        self.themes: dict[str, list[str]] = {}  # by age
        self.used: set[str] = set()
        self.changed: set[str] = set()  # since the block began
        self.log: list[tuple[object, ...]] = []

    def close(self, block: list[tuple[str, Vector]]) -> None:
        """Take the facts of one closed block."""
        self.changed = set()
        for name, vector in block:
            self.vectors[name] = vector
            self._attach(name)
        while due := [theme for theme in self.themes if theme in self.changed and self._due(theme)]:
            self._split(due[0])
        for _ in range(2):
            if not self._merge(tiny=False):
                break
        while self._merge(tiny=True):
            pass

    def _rows(self, facts: list[str]) -> list[Vector]:
        return [self.vectors[fact] for fact in facts]

    def _near(self, one: str, other: str) -> float:
        """How near two themes are to each other."""
        return near(mean(self._rows(self.themes[one])), mean(self._rows(self.themes[other])))

    def _make(self, facts: list[str]) -> None:
        """Make a theme of the facts and name it after the oldest."""
        theme, count = facts[0], 1
        while theme in self.used:
            count += 1
            theme = f"{facts[0]}-{count}"
        self.used.add(theme)
        self.themes[theme] = facts
        self.changed.add(theme)

    def _attach(self, name: str) -> None:
        ranked = []
        for theme, facts in self.themes.items():
            ranked.append((-near(self.vectors[name], mean(self._rows(facts))), len(facts), theme))
        if ranked:
            minus, size, theme = min(ranked)
            if -minus >= self.attach or (-minus >= self.attach_room and size < self.cap):
                self.themes[theme].append(name)
                self.changed.add(theme)
                return
        self._make([name])

    def _due(self, theme: str) -> bool:
        """Whether a theme is over the cap, or at the cap and too mixed."""
        facts = self.themes[theme]
        if len(facts) != self.cap or len(facts) < 2:
            return len(facts) > self.cap
        cosines = [near(one, other) for one, other in combinations(self._rows(facts), 2)]
        return round(sum(cosines) / len(cosines), 6) < self.purity

    def _f(self, affected: list[str], parts: list[list[str]]) -> float:
        """f if the affected themes were these parts, among the nearest of the others."""
        others = [theme for theme in self.themes if theme not in affected]
        others.sort(key=lambda theme: -max(self._near(theme, one) for one in affected))
        around = [self.themes[theme] for theme in others[: self.context]]
        return round(naive_objective([self._rows(facts) for facts in parts + around]), 6)

    def _split(self, theme: str) -> None:
        facts = self.themes[theme]
        rows = self._rows(facts)
        hanging = components(rows, self.graph_edge, self.cap)
        ways = [hanging, runs(rows, self.cap), means(rows, 2), means(rows, 3)]
        ranked = []
        for place, way in enumerate(ways):
            parts = [[facts[i] for i in part] for part in sorted(way)]
            if len(parts) > 1 and all(len(part) <= self.cap for part in parts):
                ranked.append((-self._f([theme], parts), len(parts), place, parts))
        minus, _, _, parts = min(ranked)
        told = sorted(list(part) for part in parts)
        self.log.append(("split", theme, told, self._f([theme], [facts]), -minus))
        sizes = [len(part) for part in parts]
        self.themes[theme] = parts.pop(sizes.index(max(sizes)))
        self.changed.add(theme)
        for part in parts:
            self._make(part)

    def _joinable(self, theme: str, tiny: bool) -> list[str]:
        """The themes that it may be joined with."""
        fit = []
        for other in self.themes:
            sizes = [len(self.themes[theme]), len(self.themes[other])]
            if other == theme or sum(sizes) > self.cap or (tiny and min(sizes) > 1):
                continue
            if self._near(theme, other) >= (self.tiny_min if tiny else self.merge_min):
                fit.append(other)
        return sorted(fit, key=lambda other: -self._near(theme, other))[:10]

    def _merge(self, tiny: bool) -> bool:
        """Join the pair that gains most, if any gains: of near themes, or of a tiny one and a near one."""
        best: tuple[float, str, str] | None = None
        joinable = {theme: self._joinable(theme, tiny) for theme in self.changed}
        for older, younger in combinations(self.themes, 2):
            if younger not in joinable.get(older, ()) and older not in joinable.get(younger, ()):
                continue
            one, other = self.themes[older], self.themes[younger]
            gain = self._f([older, younger], [one + other]) - self._f([older, younger], [one, other])
            if round(gain, 6) > (best[0] if best else 0.0):
                best = (round(gain, 6), older, younger)
        if best is None:
            return False
        gain, survivor, gone = best
        if len(self.themes[gone]) > len(self.themes[survivor]):
            survivor, gone = gone, survivor
        both = self.themes[survivor] + self.themes.pop(gone)
        self.themes[survivor] = [fact for fact in self.vectors if fact in both]
        self.changed = self.changed - {gone} | {survivor}
        self.log.append(("merge", survivor, gone, gain))
        return True


# ── beside ours ─────────────────────────────────────────────────────────────────────────────────────

CLOSE = 3e-6
"""Of figures that both round to six digits."""


class Stream:
    """Blocks of facts, some of them near to each other, and the thresholds of a run."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        size = int(chance.integers(2, 9))
        centres = chance.normal(size=(int(chance.integers(1, 6)), size))
        count = int(chance.integers(8, 45))
        rows = centres[chance.integers(0, len(centres), count)]
        rows = rows + float(chance.uniform(0.2, 1.2)) * chance.normal(size=(count, size))
        self.rows: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        attach = float(chance.uniform(0.3, 0.9))
        self.own = XmemorySettings(
            attach=attach,
            attach_room=attach * float(chance.uniform(0.6, 1.0)),
            purity=float(chance.uniform(0.3, 0.95)),
            edge=float(chance.uniform(0.4, 0.95)),
            merge_min=float(chance.uniform(0.4, 0.95)),
            tiny_min=float(chance.uniform(0.2, 0.8)),
            theme_max=int(chance.integers(2, 13)),
        )
        cuts = sorted(chance.choice(range(1, count), min(count - 1, 6), replace=False).tolist())
        names = [f"f{at:02d}" for at in range(count)]
        self.blocks = [names[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True)]

    def row(self, name: str) -> NDArray[np.float64]:
        return self.rows[int(name[1:])]


class Ours:
    """Our partition, whose themes are as old as they were made, as those of the other one."""

    def __init__(self, stream: Stream) -> None:
        self.made: dict[str, int] = {}
        self.changes: list[Change] = []
        self.themes: dict[str, Sequence[str]] = {}
        self._stream = stream

    def _name(self, fact: str) -> str:
        names = (f"T{fact}" if count == 1 else f"T{fact}-{count}" for count in range(1, 1000))
        found = next(name for name in names if name not in self.made)
        self.made[found] = len(self.made)
        return found

    def _older(self, name: str) -> tuple[object, ...]:
        return self.made.get(name, -1), name

    def close(self, block: Iterable[str]) -> None:
        stream = self._stream
        partition = ThemePartition(self.themes, stream.row, self._name, self._older, stream.own)
        for fact in block:
            partition.attach(fact)
        partition.split()
        partition.merge()
        self.themes, self.changes = partition.themes, [*self.changes, *partition.changes]

    @property
    def named(self) -> dict[str, Sequence[str]]:
        """The themes by the names that the other one gives them."""
        return {name[1:]: facts for name, facts in self.themes.items()}

    @property
    def log(self) -> list[tuple[Any, ...]]:
        """The changes in the other one's words."""
        return [
            (one.op, one.before[0][1:], len(one.after), one.f_before, one.f_after)
            if one.op == "split"
            else (one.op, *(name[1:] for name in one.before), one.f_after - one.f_before)
            for one in self.changes
        ]


def same(seed: int) -> int:
    """Compare a stream after each of its blocks; how many splits and merges there were."""
    stream = Stream(seed)
    ours, own = Ours(stream), stream.own
    naive = Naive(
        own.attach,
        own.attach_room,
        own.theme_max,
        own.purity,
        own.merge_min,
        own.tiny_min,
        graph_edge=own.edge,
    )
    for block in stream.blocks:
        ours.close(block)
        naive.close([(name, [float(one) for one in stream.row(name)]) for name in block])
        assert ours.named == naive.themes, seed
        rows = [[stream.row(name) for name in facts] for facts in naive.themes.values()]
        f = objective(Theme.of(np.stack(one)) for one in rows)
        assert f == pytest.approx(naive_objective(rows), abs=CLOSE), seed
    expected: list[tuple[Any, ...]] = [
        (op, one, len(parts), *rest) if op == "split" else (op, one, parts, *rest)
        for op, one, parts, *rest in naive.log
    ]
    assert len(ours.log) == len(expected)
    for mine, theirs in zip(ours.log, expected, strict=True):
        assert mine[:3] == theirs[:3] and mine[3:] == pytest.approx(theirs[3:], abs=CLOSE), seed
    return len(expected)


def covered(rows: NDArray[np.float64], knn: int) -> dict[str, dict[str, float]]:
    """What each candidate covers, as reading has it from the index."""
    cosines = np.round(rows @ rows.T, 6)
    found = {}
    for at, row in enumerate(cosines):
        others = sorted((one for one in range(len(rows)) if one != at), key=lambda one: (-row[one], one))
        near = {str(one): float(row[one]) for one in others[:knn] if row[one] > 0}
        found[str(at)] = {str(at): 1.0} | near
    return found


def selected(seed: int) -> Sequence[int]:
    """Compare a choice."""
    chance = np.random.default_rng(seed)
    rows = Stream(seed).rows
    relevance = chance.choice([0.1, 0.2, 0.5, float(chance.random())], len(rows)).tolist()
    budget, knn = int(chance.integers(1, 12)), int(chance.integers(0, 12))
    alpha = float(chance.random())
    kind = "max" if seed % 2 else "total"
    named = {str(at): score for at, score in enumerate(relevance)}
    found = [int(name) for name in pick(named, covered(rows, knn), budget, alpha, kind)]
    vectors = [[float(one) for one in row] for row in rows]
    assert found == naive_pick(relevance, vectors, budget, alpha, knn, kind), seed
    return found


def test_the_same_themes_splits_and_merges() -> None:
    assert sum(map(same, range(12))) > 12


def test_the_same_choices() -> None:
    assert sum(len(selected(seed)) for seed in range(40)) > 40


@pytest.mark.soak
def test_the_same_over_many_streams() -> None:
    assert sum(map(same, range(500))) > 500
    assert all(map(selected, range(500)))
