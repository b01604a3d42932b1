"""The partition of facts into themes: facts are attached, themes are split and merged where f grows.

Knows names and vectors alone. Source: xMemory, section 3.2 (guided attach, split, and merge).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infinimem.strategies.xmemory.objective import DIGITS, Rows, Theme, objective, purity
from infinimem.strategies.xmemory.split import candidates

AT_ONCE = 256
"""Themes that one product compares with all."""
SLACK = 1e-4
"""How far it may be off."""
PASSES = 2
"""Merges of near themes after a block at most; tiny ones apart."""


@dataclass(frozen=True)
class Limits:
    """The thresholds, cosines unless they count facts; the paper's values are those of its embedder."""

    attach: float = 0.62
    room: float = 0.52
    purity: float = 0.72
    edge: float = 0.66
    merge: float = 0.78
    tiny: float = 0.50
    cap: int = 12
    context: int = 10


class Change(NamedTuple):
    """A split or a merge: what it was made of, what came of it, and f of these and their context."""

    op: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    f_before: float
    f_after: float


class Partition:
    """Themes with their facts by age.

    Args:
        themes: facts by theme, each in one.
        row: gives the vector of a fact.
        name: gives the name of a theme that a fact founds.
        older: what orders themes and facts by age, the oldest first.
        limits: the thresholds.
        fixed: themes that a person holds: facts come in while there is room, and nothing else happens.
    """

    def __init__(
        self,
        themes: Mapping[str, Sequence[str]],
        row: Callable[[str], NDArray[Any]],
        name: Callable[[str], str],
        older: Callable[[str], tuple[object, ...]],
        limits: Limits,
        fixed: Sequence[str] = (),
    ) -> None:
        self.themes: dict[str, list[str]] = {}
        self.changes: list[Change] = []
        self._row, self._name, self._older, self._limits = row, name, older, limits
        self._fixed = frozenset(fixed)
        self._known: dict[str, Theme] = {}
        for theme, facts in themes.items():
            self._set(theme, facts)

    def _set(self, theme: str, facts: Sequence[str]) -> None:
        self.themes[theme] = sorted(facts, key=self._older)
        self._known[theme] = Theme.of(self._rows(self.themes[theme]))

    def _drop(self, theme: str) -> list[str]:
        del self._known[theme]
        return self.themes.pop(theme)

    def _rows(self, facts: Sequence[str]) -> Rows:
        return np.stack([self._row(fact) for fact in facts]).astype(np.float64)

    def _cosines(self, centre: Rows, themes: Sequence[str]) -> list[float]:
        """Of a centre and those of themes."""
        found = np.stack([self._known[theme].centre for theme in themes]) @ centre
        return [round(float(one), DIGITS) for one in found]

    # ── attach ──────────────────────────────────────────────────────────────────────────────────

    def attach(self, fact: str) -> str:
        """Put a fact into the theme whose centre is nearest, of equal ones the smaller, or found one."""
        row, limits = self._rows([fact])[0], self._limits
        names = [name for name in self.themes if name not in self._fixed or self._has_room(name)]
        near = zip(names, self._cosines(row, names), strict=True) if names else ()
        best = min(near, key=lambda one: (-one[1], len(self.themes[one[0]]), one[0]), default=("", -inf))
        theme, cosine = best
        if cosine >= limits.attach or (cosine >= limits.room and self._has_room(theme)):
            self._set(theme, [*self.themes[theme], fact])
            return theme
        theme = self._name(fact)
        self._set(theme, [fact])
        return theme

    def _has_room(self, theme: str) -> bool:
        return len(self.themes[theme]) < self._limits.cap

    # ── split ───────────────────────────────────────────────────────────────────────────────────

    def split(self) -> None:
        """Split what is over the cap, or full and not pure, by the candidate of the largest f; of equal ones
        by that with fewer parts. The largest part keeps the name, of equal ones that with the oldest fact."""
        while due := [name for name in self.themes if name not in self._fixed and self._crowded(name)]:
            self._split(min(due, key=self._older))

    def _crowded(self, theme: str) -> bool:
        count, cap = len(self.themes[theme]), self._limits.cap
        if count != cap or count < 2:
            return count > cap
        return round(purity(self._rows(self.themes[theme])), DIGITS) < self._limits.purity

    def _split(self, theme: str) -> None:
        facts, context = self.themes[theme], self._context([theme])
        rows = self._rows(facts)
        scored = []
        for at, parts in enumerate(candidates(rows, self._limits.cap, self._limits.edge)):
            f = objective([*(Theme.of(rows[part]) for part in parts), *context])
            scored.append((-f, len(parts), at, parts))
        best, _, _, parts = min(scored)
        before = objective([self._known[theme], *context])
        largest = min(parts, key=lambda part: (-len(part), part))
        self._drop(theme)
        names: list[str] = []
        for part in (largest, *(part for part in parts if part is not largest)):
            names.append(self._name(facts[part[0]]) if names else theme)
            self._set(names[-1], [facts[place] for place in part])
        self.changes.append(Change("split", (theme,), tuple(names), before, -best))

    def _context(self, affected: Sequence[str]) -> list[Theme]:
        """The themes nearest to those that change, which f is taken over too."""
        others = [name for name in self.themes if name not in affected]
        if not others:
            return []
        near = np.max([self._cosines(self._known[one].centre, others) for one in affected], axis=0)
        ranked = sorted(
            zip(others, near.tolist(), strict=True), key=lambda one: (-one[1], self._older(one[0]))
        )
        return [self._known[name] for name, _ in ranked[: self._limits.context]]

    # ── merge ───────────────────────────────────────────────────────────────────────────────────

    def merge(self) -> None:
        """Merge the pair of near themes that f gains most by, twice at most; then, while f gains, a theme of
        one fact into another."""
        for least, tiny in ((self._limits.merge, False), (self._limits.tiny, True)):
            left = inf if tiny else PASSES
            pairs = self._pairs(least, tiny=tiny)
            while left and (merged := self._merged(pairs)):
                left -= 1
                kept, gone = merged
                pairs = [pair for pair in pairs if kept not in pair and gone not in pair]
                pairs += self._pairs(least, tiny=tiny, of=kept)

    def _pairs(self, least: float, *, tiny: bool, of: str | None = None) -> list[tuple[str, str]]:
        """Themes that are near enough to be one and fit into one, the older first; those with one theme, or
        all."""
        names = [name for name in sorted(self.themes, key=self._older) if name not in self._fixed]
        sizes = [len(self.themes[name]) for name in names]
        rows = [at for at in range(len(names)) if (names[at] == of if of else sizes[at] == 1 or not tiny)]
        if not rows or len(names) < 2:
            return []
        exact = np.stack([self._known[name].centre for name in names])
        centres = exact.astype(np.float32)
        found: set[tuple[int, int]] = set()
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            for at, other in np.argwhere(centres[part] @ centres.T >= least - SLACK).tolist():
                one, two = sorted((part[at], other))
                if (
                    one != two
                    and sizes[one] + sizes[two] <= self._limits.cap
                    and (not tiny or 1 in (sizes[one], sizes[two]))
                    and round(float(exact[one] @ exact[two]), DIGITS) >= least
                ):
                    found.add((one, two))
        return [(names[one], names[two]) for one, two in sorted(found)]

    def _merged(self, pairs: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
        """Merge the pair that f gains most by, of equal ones the older, and say which survives and which is
        gone: the larger survives, then the older. None where f gains by none."""
        found: tuple[float, tuple[str, str], float, float] | None = None
        for pair in sorted(pairs, key=lambda pair: [*map(self._older, pair)]):
            context = self._context(pair)
            before = objective([*(self._known[name] for name in pair), *context])
            joint = self._rows([fact for name in pair for fact in self.themes[name]])
            after = objective([Theme.of(joint), *context])
            gained = round(after - before, DIGITS)
            if gained > 0 and (found is None or gained > found[0]):
                found = gained, pair, before, after
        if found is None:
            return None
        _, pair, before, after = found
        kept, gone = sorted(pair, key=lambda name: (-len(self.themes[name]), self._older(name)))
        self._set(kept, [*self.themes[kept], *self._drop(gone)])
        self.changes.append(Change("merge", (kept, gone), (kept,), before, after))
        return kept, gone
