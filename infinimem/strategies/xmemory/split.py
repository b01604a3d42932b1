"""How a theme may be split: candidates, of which f chooses one. Source: xMemory, section 3.2.

Every candidate is a list of parts, a part a list of row numbers, ascending; parts go by their first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from infinimem.strategies.xmemory.objective import Rows

Parts = list[list[int]]

ROUNDS = 50
"""Of k-means at most; a dozen facts settle in a few."""


def components(rows: Rows, edge: float) -> Parts:
    """The components of the graph that joins facts of at least this cosine."""
    near = rows @ rows.T >= edge
    left, found = dict.fromkeys(range(len(rows))), Parts()
    while left:
        part, waiting = set[int](), [next(iter(left))]
        while waiting:
            one = waiting.pop()
            part.add(one)
            left.pop(one, None)
            waiting += [other for other in np.flatnonzero(near[one]).tolist() if other in left]
        found.append(sorted(part))
    return found


def runs(rows: Rows, cap: int, least: int = 1) -> Parts:
    """As few runs of at most `cap` facts as there can be, and at least so many, of about one length, along
    the first principal axis, which points to where its largest component is positive."""
    count = max(-(-len(rows) // cap), min(least, len(rows)))
    axis = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))] or 1.0)
    order = np.argsort(np.round(rows @ axis, 9), kind="stable")
    return [sorted(part.tolist()) for part in np.array_split(order, count)]


def means(rows: Rows, count: int) -> Parts:
    """k-means by cosine, from the farthest pair, and then from what is farthest from both."""
    cosines = rows @ rows.T
    first, second = np.unravel_index(np.argmin(cosines), cosines.shape)
    seeds = [int(first), int(second)]
    while len(seeds) < count:
        seeds.append(int(np.argmin(cosines[seeds].max(axis=0))))
    labels = np.argmax(rows @ rows[seeds].T, axis=1)
    for _ in range(ROUNDS):
        centres = np.stack([rows[labels == part].sum(axis=0) for part in range(count)])
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        now = np.argmax(rows @ (centres / np.where(lengths, lengths, 1.0)).T, axis=1)
        if np.array_equal(now, labels):
            break
        labels = now
    return [part for label in range(count) if (part := np.flatnonzero(labels == label).tolist())]


def candidates(rows: Rows, cap: int, edge: float) -> list[Parts]:
    """The ways to split a theme in two or more, none over the cap, each once.

    Args:
        rows: of its facts; at least two.
        cap: facts of a theme at most.
        edge: least cosine of two facts that hang together.
    """
    ways = [components(rows, edge), runs(rows, cap, 2), means(rows, 2)]
    if len(rows) > 2:
        ways.append(means(rows, 3))
    found: list[Parts] = []
    for way in ways:
        parts = sorted(_cut(rows, way, cap))
        if len(parts) > 1 and parts not in found:
            found.append(parts)
    return found


def _cut(rows: Rows, parts: Iterable[Sequence[int]], cap: int) -> Parts:
    """Parts over the cap in runs."""
    return [
        sorted(part[place] for place in run) for part in parts for run in runs(rows[part], cap) if len(part)
    ]
