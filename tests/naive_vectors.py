"""The sums behind naive_xmemory: f, PICK and the ways to cut a theme, as plainly as possible.

Written from sections 0.1, 3.1 and 5a of the design and sections 3.2 and 3.3 of the paper. Readings chosen:

* Cosines that decide anything are compared to six digits; within f they count in full.
* (a) A component over the cap is cut, by age, in pieces of the cap.
* (b) There are as few runs as the cap allows, two at least, as equal as can be, the longer ones first.
* (c) A third mean starts from the vector least near to both ends of the farthest pair; cosine assigns, until
  nothing changes or a hundred times; a mean left without a vector is dropped at the end.
* PICK's neighbours come from the vectors given, and only those with a cosine above 0 count. A normaliser
  other than "max" is the sum of all weights, each node's own among them. Scores are compared to six digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, exp, hypot
from statistics import median

import numpy as np

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


def objective(themes: Sequence[Sequence[Vector]]) -> float:
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


def pick(
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
