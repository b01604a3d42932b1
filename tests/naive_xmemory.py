"""xMemory's ATTACH, SPLIT and MERGE, written a second time and as plainly as possible.

Written from sections 0.1, 3.1, 3.2 and 5a of the design and section 3.2 of the paper; its sums, `objective`
and `pick` among them, are in naive_vectors, with what was read there. Readings chosen here:

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

from itertools import combinations

from naive_vectors import Vector, components, mean, means, near, objective, pick, runs

__all__ = ["Naive", "Vector", "objective", "pick"]


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
        return round(objective([self._rows(facts) for facts in parts + around]), 6)

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
