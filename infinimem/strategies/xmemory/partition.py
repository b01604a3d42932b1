"""The partition of facts into themes: facts are attached, themes split and merged where f grows.

Knows names and vectors alone; these have length 1, or 0 where a text says nothing.
Source: xMemory, section 3.2, Eq. 1 to 3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infinimem.strategies.xmemory.spec import XmemorySettings

Rows = NDArray[np.float64]
"""Vectors of facts, a row each."""

EPSILON = 1e-3
"""Of sigma, which is 0 where themes lie at even distances."""
DIGITS = 6
"""Of f, and of cosines that are compared; beyond them sums in another order differ."""


@dataclass(frozen=True, eq=False)
class Theme:
    """What f takes of a theme: its size n_k, its centre mu_k (zeros where vectors cancel out), and cosines.

    `cohesion` is the mean of its facts and mu_k (Eq. 3), `purity` that of all pairs, which f does not
    take.
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


# ── how a theme may be split ─────────────────────────────────────────────────────────────────────


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
    """As few runs of about one length as there can be, two at least, along the first principal axis."""
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
    """The ways to split a theme in two or more parts, none over the cap, by its facts' vectors."""
    ways = (components(rows, edge, cap), runs(rows, cap), means(rows, 2), means(rows, 3))
    return [sorted(way) for way in ways if len(way) > 1 and max(map(len, way)) <= cap]


# ── the partition ────────────────────────────────────────────────────────────────────────────────


PASSES = 2
"""Merges of near themes after a block at most; tiny ones apart."""
NEAREST = 10
"""Themes that one which changed may merge with: the paper has "a small set" of the nearest."""


Memo = dict[str, tuple[Sequence[str], Theme]]


class Change(NamedTuple):
    """A split or a merge: what it was made of, what came of it, and f of these and their context."""

    op: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    f_before: float
    f_after: float


class ThemePartition:
    """Themes with their facts by age.

    Args:
        row: gives the vector of a fact.
        name: gives the name of a theme that a fact founds, each time a new one.
        older: what orders themes and facts by age, the oldest first.
        fixed: those that a person holds: facts come in while there is room, and nothing else happens.
        memo: what f takes of the themes, for the next partition, where their facts are the same objects.
    """

    def __init__(
        self,
        themes: Mapping[str, Sequence[str]],
        row: Callable[[str], NDArray[Any]],
        name: Callable[[str], str],
        older: Callable[[str], tuple[object, ...]],
        own: XmemorySettings,
        fixed: Collection[str] = (),
        memo: Memo | None = None,
    ) -> None:
        self.themes: dict[str, Sequence[str]] = dict(themes)
        self.changes: list[Change] = []
        self._row, self._name, self._older, self._own = row, name, older, own
        memo = {} if memo is None else memo
        for theme, facts in themes.items():
            if theme not in memo or memo[theme][0] is not facts:
                memo[theme] = facts, Theme.of(self._rows(facts))
        self._known = {theme: memo[theme][1] for theme in themes}
        self._names = [*themes]
        self._at = {theme: at for at, theme in enumerate(themes)}
        self._sizes = np.array([len(facts) for facts in themes.values()], np.int64)
        """By place, 0 for those that are gone."""
        self._free = np.array([theme not in fixed for theme in themes], bool)
        self._centres = np.array([theme.centre for theme in self._known.values()], np.float64)
        self._near: dict[str, Rows] = {}
        self._touched = {theme for theme, facts in themes.items() if len(facts) > own.theme_max}
        """What is split and merged: themes that facts came to. What a merge fills is split once others come,
        or splits and merges of two blocks would undo each other for ever."""

    def _set(self, theme: str, facts: Sequence[str]) -> None:
        facts = sorted(facts, key=self._older)
        known = Theme.of(self._rows(facts))
        if theme not in self._at:
            self._at[theme] = len(self._names)
            self._names.append(theme)
            self._sizes, self._free = np.append(self._sizes, 0), np.append(self._free, True)
            self._centres = np.vstack([self._centres.reshape(-1, len(known.centre)), known.centre])
            self._near.clear()
        self.themes[theme], self._known[theme] = facts, known
        at = self._at[theme]
        self._sizes[at], self._centres[at] = len(facts), known.centre
        self._touched.add(theme)
        self._near.pop(theme, None)
        for other, cosines in self._near.items():
            cosines[at] = np.round(known.centre @ self._known[other].centre, DIGITS)

    def _drop(self, theme: str) -> Sequence[str]:
        self._sizes[self._at[theme]] = 0
        self._touched.discard(theme)
        self._near.pop(theme, None)
        return self.themes.pop(theme)

    def _rows(self, facts: Sequence[str]) -> Rows:
        return np.stack([self._row(fact) for fact in facts]).astype(np.float64)

    def _cosines(self, theme: str) -> Rows:
        """Of its centre and those of all."""
        if theme not in self._near:
            self._near[theme] = np.round(self._centres @ self._known[theme].centre, DIGITS)
        return self._near[theme]

    def _nearest(self, cosines: Rows, among: NDArray[np.bool_], count: int) -> list[str]:
        """So many of these themes, the nearest; of equal ones the older."""
        places = np.flatnonzero(among)
        if 0 < count < len(places):
            places = places[cosines[places] >= np.partition(cosines[places], -count)[-count]]
        ranked = sorted((-cosines[at], self._older(self._names[at]), at) for at in places.tolist())
        return [self._names[at] for _, _, at in ranked[:count]]

    # ── attach ──────────────────────────────────────────────────────────────────────────────────

    def attach(self, fact: str) -> str:
        """Put a fact into the theme whose centre is nearest, of equal ones the smaller, or found one."""
        row, own = self._rows([fact])[0], self._own
        cosines = np.round(self._centres @ row, DIGITS) if self.themes else np.zeros(0)
        among = (self._sizes > 0) & (self._free | (self._sizes < own.theme_max))
        best = cosines[among].max(initial=-inf)
        places = np.flatnonzero(among & (cosines == best)).tolist()
        size, theme = min(((self._sizes[at], self._names[at]) for at in places), default=(0, ""))
        if best < own.attach and (best < own.attach_room or size >= own.theme_max):
            theme = self._name(fact)
        self._set(theme, [*self.themes.get(theme, ()), fact])
        return theme

    # ── split ───────────────────────────────────────────────────────────────────────────────────

    def split(self) -> None:
        """Split what is over the cap, or full and not pure, by the candidate of the largest f."""
        while due := [one for one in self._touched if self._crowded(one)]:
            self._split(min(due, key=self._older))

    def _crowded(self, theme: str) -> bool:
        count, full = len(self.themes[theme]), max(self._own.theme_max, 2)
        if count < full or not self._free[self._at[theme]]:
            return False
        return count > self._own.theme_max or round(self._known[theme].purity, DIGITS) < self._own.purity

    def _split(self, theme: str) -> None:
        facts, context = self.themes[theme], self._context([theme])
        rows = self._rows(facts)
        scored = []
        for at, parts in enumerate(candidates(rows, self._own.theme_max, self._own.edge)):
            f = objective([*(Theme.of(rows[part]) for part in parts), *context])
            scored.append((-f, len(parts), at, parts))
        best, _, _, parts = min(scored)
        before = objective([self._known[theme], *context])
        largest = min(parts, key=lambda part: (-len(part), part))
        names: list[str] = []
        for part in (largest, *(part for part in parts if part is not largest)):
            names.append(self._name(facts[part[0]]) if names else theme)
            self._set(names[-1], [facts[place] for place in part])
        self.changes.append(Change("split", (theme,), tuple(names), before, -best))

    def _context(self, affected: Sequence[str]) -> list[Theme]:
        """The themes nearest to those that change, which f is taken over too."""
        others = self._sizes > 0
        others[[self._at[name] for name in affected]] = False
        near = np.max([self._cosines(name) for name in affected], axis=0)
        return [self._known[name] for name in self._nearest(near, others, self._own.context)]

    # ── merge ───────────────────────────────────────────────────────────────────────────────────

    def merge(self) -> None:
        """Merge the near pair that f gains most by, twice; then, while f gains, themes of one fact."""
        for _ in range(PASSES):
            if not self._merge(self._own.merge_min, tiny=False):
                break
        while self._merge(self._own.tiny_min, tiny=True):
            pass

    def _pairs(self, least: float, *, tiny: bool) -> list[list[str]]:
        """Themes that changed with the nearest that they fit with, older first; `tiny`: with one fact."""
        found = set[tuple[str, ...]]()
        for theme in self._touched:
            at, cosines = self._at[theme], self._cosines(theme)
            fits = self._free & (self._sizes > 0) & (self._sizes + self._sizes[at] <= self._own.theme_max)
            fits &= (cosines >= least) & self._free[at]
            if tiny and self._sizes[at] > 1:
                fits &= self._sizes == 1
            fits[at] = False
            found.update(tuple(sorted((theme, other))) for other in self._nearest(cosines, fits, NEAREST))
        return sorted(
            (sorted(pair, key=self._older) for pair in found), key=lambda pair: [*map(self._older, pair)]
        )

    def _merge(self, least: float, *, tiny: bool) -> bool:
        """Merge the pair that f gains most by, if it gains; the larger survives, of equal ones the older."""
        best, most = None, 0.0
        for pair in self._pairs(least, tiny=tiny):
            context = self._context(pair)
            before = objective([*(self._known[name] for name in pair), *context])
            joint = self._rows([fact for name in pair for fact in self.themes[name]])
            after = objective([Theme.of(joint), *context])
            if round(after - before, DIGITS) > most:
                best, most = (pair, before, after), round(after - before, DIGITS)
        if best is None:
            return False
        pair, before, after = best
        kept, gone = sorted(pair, key=lambda name: (-len(self.themes[name]), self._older(name)))
        self._set(kept, [*self.themes[kept], *self._drop(gone)])
        self.changes.append(Change("merge", (kept, gone), (kept,), before, after))
        return True
