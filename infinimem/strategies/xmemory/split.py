"""How a theme may be split: candidates, of which f chooses one. Source: xMemory, section 3.2.

Every candidate is a list of parts, a part a list of row numbers, ascending; parts go by their first.
"""

from __future__ import annotations

import numpy as np

from infinimem.strategies.xmemory.objective import DIGITS, Rows

Parts = list[list[int]]

ROUNDS = 100
"""Of k-means at most; a dozen facts settle in a few."""


def cosines(rows: Rows, others: Rows) -> Rows:
    """Cosines as they are compared; `others` may have any length."""
    lengths = np.linalg.norm(others, axis=1)
    found: Rows = np.round(rows @ (others / np.where(lengths, lengths, 1.0)[:, None]).T, DIGITS)
    return found


def components(rows: Rows, edge: float, cap: int) -> Parts:
    """The components of the graph that joins facts of at least this cosine, in pieces of the cap by age."""
    near = cosines(rows, rows) >= edge
    left, found = dict.fromkeys(range(len(rows))), Parts()
    while left:
        part, waiting = set[int](), [next(iter(left))]
        while waiting:
            one = waiting.pop()
            part.add(one)
            left.pop(one, None)
            waiting += [other for other in np.flatnonzero(near[one]).tolist() if other in left]
        members = sorted(part)
        found += [members[at : at + cap] for at in range(0, len(members), cap)]
    return found


def runs(rows: Rows, cap: int) -> Parts:
    """As few runs of at most `cap` facts as there can be, at least two, of about one length, along the first
    principal axis, which points to where its largest component is positive."""
    centred = rows - rows.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.argmax(np.round(np.abs(axis), DIGITS))])
    order = np.argsort(np.round(centred @ axis, DIGITS), kind="stable")
    return [sorted(run.tolist()) for run in np.array_split(order, max(2, -(-len(rows) // cap)))]


def means(rows: Rows, count: int) -> Parts:
    """k-means by cosine, from the farthest pair, and then from what is least near to either."""
    near = cosines(rows, rows)
    np.fill_diagonal(near, np.inf)
    seeds = [int(one) for one in np.unravel_index(np.argmin(near), near.shape)]
    np.fill_diagonal(near, 1.0)
    while len(seeds) < count:
        seeds.append(int(np.argmin(near[seeds].max(axis=0))))
    centres, labels = rows[seeds], None
    for _ in range(ROUNDS):
        now = np.argmax(cosines(rows, centres), axis=1)
        if labels is not None and np.array_equal(now, labels):
            break
        labels = now
        centres = np.stack(
            [
                rows[labels == part].mean(axis=0) if (labels == part).any() else centres[part]
                for part in range(count)
            ]
        )
    return [part for label in range(count) if (part := np.flatnonzero(labels == label).tolist())]


def candidates(rows: Rows, cap: int, edge: float) -> list[Parts]:
    """The ways to split a theme in two or more, none over the cap.

    Args:
        rows: of its facts by age, at least two.
        cap: facts of a theme at most.
        edge: least cosine of two facts that hang together.
    """
    ways = (components(rows, edge, cap), runs(rows, cap), means(rows, 2), means(rows, 3))
    return [sorted(way) for way in ways if len(way) > 1 and max(map(len, way)) <= cap]
