"""Themes: f, the ways to split one, the partition in which f decides on splits and merges, and its records.

f and the partition know names and vectors alone; these have length 1, or 0 where a text says nothing.
Source: xMemory, section 3.2, Eq. 1 to 3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infinimem.grounding.sentences import unsupported
from infinimem.index.vectors import DIGITS
from infinimem.llm.base import in_order
from infinimem.llm.tasks import TEXT, task
from infinimem.spec import Kind
from infinimem.store.view import View
from infinimem.strategies.records.asking import Asker, one_liner, shown_facts
from infinimem.strategies.records.record import UNVERIFIED, Link, Record, number_of
from infinimem.strategies.records.record_store import RecordStore, VectorIndex
from infinimem.strategies.xmemory.spec import FACT, SPEC, THEMES, VERSION, XmemorySettings

Rows = NDArray[np.float64]
"""Vectors of facts, a row each."""

EPSILON = 1e-3
"""Of sigma, which is 0 where themes lie at even distances."""

# ── f (Eq. 1 to 3) ───────────────────────────────────────────────────────────────────────────────


class Theme(NamedTuple):
    """What f takes of a theme: its size n_k, its centre mu_k (zeros where vectors cancel out), and the mean
    cosine of its facts and mu_k."""

    size: int
    centre: Rows
    cohesion: float

    @classmethod
    def of(cls, rows: Rows) -> Theme:
        """The theme of facts with these vectors; at least one."""
        return cls.all(rows, [len(rows)])[0]

    @classmethod
    def all(cls, rows: Rows, sizes: Sequence[int]) -> list[Theme]:
        """Themes of these sizes, whose facts' vectors stand one after the other."""
        counts = np.array(sizes, np.int64)
        starts = np.cumsum(counts) - counts
        means = np.add.reduceat(rows, starts) / counts[:, None]
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        centres = np.divide(means, lengths, out=np.zeros_like(means), where=np.round(lengths, DIGITS) > 0)
        cosines = np.einsum("ij,ij->i", rows, np.repeat(centres, counts, axis=0))
        cohesion = np.add.reduceat(cosines, starts) / counts
        return [*map(cls, sizes, centres, cohesion.tolist())]


def objective(themes: Iterable[Theme]) -> float:
    """f, to 6 decimals; 0 for no themes.

    f = N^2 / (K * sum n_k^2) + mean of cohesion_k * g(s_k) (Eq. 1): how evenly facts are spread, 1 for themes
    of one size (Eq. 2), and how coherent themes are, less for those that are redundant or islands (Eq. 3).
    s_k is the cosine of a theme's centre and the nearest other one, 0 for one alone. g is
    exp(-(s_k - m)^2 / 2 sigma^2), m the median of s, sigma the median of |s_k - m|, and `EPSILON`.
    """
    themes = tuple(themes)
    if not themes:
        return 0.0
    sizes = [theme.size for theme in themes]
    sparsity = sum(sizes) ** 2 / (len(sizes) * sum(size * size for size in sizes))
    centres = np.stack([theme.centre for theme in themes])
    cosines = centres @ centres.T
    np.fill_diagonal(cosines, -inf)
    near = cosines.max(axis=1) if len(themes) > 1 else np.zeros(1)
    middle = np.median(near)
    sigma = np.median(np.abs(near - middle)) + EPSILON
    bell = np.exp(-((near - middle) ** 2) / (2 * sigma**2))
    semantics = float(np.mean(bell * np.array([theme.cohesion for theme in themes])))
    return round(sparsity + semantics, DIGITS)


def purity(rows: Rows) -> float:
    """The mean cosine of all pairs of facts; 1 for one alone."""
    count, total = len(rows), rows.sum(axis=0)
    pairs = total @ total - (rows * rows).sum()
    return round(float(pairs / (count * (count - 1))), DIGITS) if count > 1 else 1.0


# ── how a theme may be split ─────────────────────────────────────────────────────────────────────


Parts = list[list[int]]

ROUNDS = 100
"""Of k-means at most; a dozen facts settle in a few."""


def candidates(rows: Rows, cap: int, edge: float) -> list[Parts]:
    """The ways to split a theme in two or more parts, none over the cap, by its facts' vectors."""
    ways = (components(rows, edge, cap), runs(rows, cap), means(rows, 2), means(rows, 3))
    return [sorted(way) for way in ways if len(way) > 1 and max(map(len, way)) <= cap]


def cosines(rows: Rows, others: Rows) -> Rows:
    """Cosines as they are compared; `others` may have any length."""
    lengths = np.linalg.norm(others, axis=1)
    near: Rows = np.round(rows @ (others / np.where(lengths, lengths, 1.0)[:, None]).T, DIGITS)
    return near


def components(rows: Rows, edge: float, cap: int) -> Parts:
    """The components of the graph that joins facts of at least this cosine, in pieces of the cap by age."""
    joined = cosines(rows, rows) >= edge
    left, parts = set(range(len(rows))), Parts()
    while left:
        part = {min(left)}
        while fresh := {other for one in part for other in np.flatnonzero(joined[one]).tolist()} - part:
            part |= fresh
        left -= part
        members = sorted(part)
        parts += [members[at : at + cap] for at in range(0, len(members), cap)]
    return parts


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
    np.fill_diagonal(near, inf)
    seeds = [int(one) for one in np.unravel_index(np.argmin(near), near.shape)]
    np.fill_diagonal(near, 1.0)
    while len(seeds) < count:
        seeds.append(int(np.argmin(near[seeds].max(axis=0))))
    centres, labels = rows[seeds], np.full(len(rows), -1)
    for _ in range(ROUNDS):
        before, labels = labels, np.argmax(cosines(rows, centres), axis=1)
        if np.array_equal(before, labels):
            break
        for label in range(count):
            if (labels == label).any():
                centres[label] = rows[labels == label].mean(axis=0)
    return [part for label in range(count) if (part := np.flatnonzero(labels == label).tolist())]


PASSES = 2
"""Merges of near themes after a block at most; tiny ones apart."""
NEAREST = 10
"""Themes that one which changed may merge with: the paper has "a small set" of the nearest."""
CONTEXT = 10
"""Themes nearest to those that change, over which f is taken too."""


class Change(NamedTuple):
    """A split or a merge: what it was made of, what came of it, and f of these and their context."""

    op: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    f_before: float
    f_after: float


class Table(NamedTuple):
    """All themes, an entry each; `free` are those that may be split and merged."""

    names: list[str]
    sizes: NDArray[np.int64]
    free: NDArray[np.bool_]
    centres: Rows


class ThemePartition:
    """Themes with their facts by age.

    Args:
        row: gives the vector of a fact.
        name: gives the name of a theme that a fact founds, each time a new one.
        older: what orders themes and facts by age, the oldest first.
        fixed: those that a person holds: facts come in while there is room, and nothing else happens.
    """

    def __init__(
        self,
        themes: Mapping[str, Sequence[str]],
        row: Callable[[str], NDArray[Any]],
        name: Callable[[str], str],
        older: Callable[[str], tuple[object, ...]],
        own: XmemorySettings,
        fixed: Collection[str] = (),
    ) -> None:
        self.themes: dict[str, Sequence[str]] = dict(themes)
        self.changes: list[Change] = []
        self._row, self._name, self._older, self._own = row, name, older, own
        self._fixed = fixed
        known = Theme.all(self._rows(themes.values()), [*map(len, themes.values())]) if themes else []
        self._known = dict(zip(themes, known, strict=True))
        self._touched = {theme for theme, facts in themes.items() if len(facts) > own.theme_max}
        """What is split and merged: themes that facts came to. What a merge fills is split once others come,
        or splits and merges of two blocks would undo each other for ever."""

    def _rows(self, lists: Iterable[Sequence[str]]) -> Rows:
        return np.stack([self._row(fact) for facts in lists for fact in facts]).astype(np.float64)

    def _set(self, theme: str, facts: Sequence[str]) -> None:
        self.themes[theme] = sorted(facts, key=self._older)
        self._known[theme] = Theme.of(self._rows([self.themes[theme]]))
        self._touched.add(theme)
        vars(self).pop("_all", None)

    @cached_property
    def _all(self) -> Table:
        sizes = np.array([*map(len, self.themes.values())], np.int64)
        free = np.array([name not in self._fixed for name in self.themes], bool)
        centres = np.array([self._known[name].centre for name in self.themes])
        return Table([*self.themes], sizes, free, centres)

    def _nearest(self, cosines: Rows, among: NDArray[np.bool_], count: int) -> list[str]:
        """So many of these themes, the nearest; of equal ones the older."""
        places, names = np.flatnonzero(among), self._all.names
        if 0 < count < len(places):
            places = places[cosines[places] >= np.partition(cosines[places], -count)[-count]]
        ranked = sorted((-cosines[at], self._older(names[at]), at) for at in places.tolist())
        return [names[at] for _, _, at in ranked[:count]]

    def attach(self, fact: str) -> str:
        """Put a fact into the theme whose centre is nearest, of equal ones the smaller, or found one."""
        own, (names, sizes, free, centres) = self._own, self._all
        cosines = np.round(centres @ self._rows([[fact]])[0], DIGITS) if names else np.zeros(0)
        among = free | (sizes < own.theme_max)
        best = cosines[among].max(initial=-inf)
        places = np.flatnonzero(among & (cosines == best)).tolist()
        size, theme = min(((sizes[at], names[at]) for at in places), default=(0, ""))
        if best < own.attach and (best < own.attach_room or size >= own.theme_max):
            theme = self._name(fact)
        self._set(theme, [*self.themes.get(theme, ()), fact])
        return theme

    def split(self) -> None:
        """Split what is over the cap, or full and not pure, by the candidate of the largest f."""
        own = self._own

        def is_crowded(facts: Sequence[str]) -> bool:
            is_full = len(facts) >= max(own.theme_max, 2)
            return is_full and (len(facts) > own.theme_max or purity(self._rows([facts])) < own.purity)

        while due := [one for one in self._touched - {*self._fixed} if is_crowded(self.themes[one])]:
            theme = min(due, key=self._older)
            facts, context = self.themes[theme], self._context([theme])
            rows, scored = self._rows([facts]), []
            for at, parts in enumerate(candidates(rows, own.theme_max, own.edge)):
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
        centres = np.stack([self._known[name].centre for name in affected])
        near = np.round(self._all.centres @ centres.T, DIGITS).max(axis=1)
        others = np.array([name not in affected for name in self._all.names])
        return [self._known[name] for name in self._nearest(near, others, CONTEXT)]

    def merge(self) -> None:
        """Merge the near pair that f gains most by, twice; then, while f gains, themes of one fact."""
        for _ in range(PASSES):
            if not self._merge(self._own.merge_min, tiny=False):
                break
        while self._merge(self._own.tiny_min, tiny=True):
            pass

    def _pairs(self, least: float, *, tiny: bool) -> list[list[str]]:
        """Themes that changed with the nearest that they fit with, older first; `tiny`: with one fact."""
        pairs, (names, sizes, free, centres) = set[tuple[str, ...]](), self._all
        for theme in self._touched - {*self._fixed}:
            size, cosines = len(self.themes[theme]), np.round(centres @ self._known[theme].centre, DIGITS)
            fits = free & (sizes + size <= self._own.theme_max) & (cosines >= least)
            if tiny and size > 1:
                fits &= sizes == 1
            fits[names.index(theme)] = False
            near = self._nearest(cosines, fits, NEAREST)
            pairs.update(tuple(sorted((theme, other), key=self._older)) for other in near)
        return sorted(map(list, pairs), key=lambda pair: [*map(self._older, pair)])

    def _merge(self, least: float, *, tiny: bool) -> bool:
        """Merge the pair that f gains most by, if it gains; the larger survives, of equal ones the older."""
        best, most = None, 0.0
        for pair in self._pairs(least, tiny=tiny):
            context = self._context(pair)
            before = objective([*(self._known[name] for name in pair), *context])
            joint = Theme.of(self._rows(self.themes[name] for name in pair))
            after = objective([joint, *context])
            if round(after - before, DIGITS) > most:
                best, most = (pair, before, after), round(after - before, DIGITS)
        if best is None:
            return False
        pair, before, after = best
        kept, gone = sorted(pair, key=lambda name: (-len(self.themes[name]), self._older(name)))
        self._touched.discard(gone)
        self._set(kept, [*self.themes[kept], *self.themes.pop(gone)])
        self.changes.append(Change("merge", (kept, gone), (kept,), before, after))
        return True


# ── themes as records ────────────────────────────────────────────────────────────────────────────


THEME = task("theme", "facts", 256, "tell:theme", summary=TEXT)
"""A name for what facts have in common. `facts`: [fact, …]."""


def age(name: str) -> tuple[object, ...]:
    """Orders facts and themes; a theme is as old as its oldest fact was when it was made."""
    return number_of(name), name


Members = Mapping[str, Sequence[str]]
"""Themes that are not archived, each with those of its facts that are not; of two that hold one the older."""


def members(view: View, known: Members | None, changed: Collection[str] | None) -> Members:
    """The themes as a view shows them (`View.derived`)."""
    if known and changed is not None and not any(one.startswith(SPEC.record_folders) for one in changed):
        return known
    store, themes = view.derived(RecordStore.load), dict[str, Sequence[str]]()
    left = surface(store, FACT)
    for theme in sorted(surface(store, THEMES), key=age):
        if own := tuple(fact for fact in store.records[theme].sources if fact in left):
            themes[theme] = own
            left.difference_update(own)
    return themes


def surface(store: RecordStore, kind: Kind) -> set[str]:
    """The records of a kind that are not archived."""
    return {name for name in store.visible if name.startswith(f"{kind.prefix}-")}


def homes(themes: Members) -> dict[str, str]:
    """The theme of each fact."""
    return {fact: theme for theme, own in themes.items() for fact in own}


def bounded(cap: int, store: RecordStore, record: Record) -> Iterator[str]:
    """A theme that nobody pinned holds no more than it may."""
    if record.kind is THEMES and record.visible and len(record.sources) > cap and not record.pinned:
        yield f"it holds more than {cap} facts; infinimem consolidate splits it"


def group(
    store: RecordStore, themes: Members, index: VectorIndex, asker: Asker, own: XmemorySettings
) -> None:
    """Attach what is in no theme, split and merge, and put the themes that changed."""
    fixed, before = {name for name in themes if store.records[name].pinned}, homes(themes)
    trial = store.copy()

    def founded(fact: str) -> str:
        new = trial.own_id(THEMES.prefix, number_of(fact)[0])
        trial.put(Record(new, SPEC, ""))  # the next theme of this number has another name
        return new

    partition = ThemePartition(themes, index.row, founded, age, own, fixed)
    where = {fact: partition.attach(fact) for fact in sorted(surface(store, FACT) - before.keys(), key=age)}
    if own.split:
        partition.split()
    if own.merge:
        partition.merge()
    changed = {name: facts for name, facts in partition.themes.items() if tuple(facts) != themes.get(name)}
    renamed = {name: facts for name, facts in changed.items() if name not in fixed}
    summaries = in_order(partial(_named, asker, store), [*renamed.values()], own.workers)
    names = dict(zip(renamed, summaries, strict=True))
    made = {name: change for change in partition.changes for name in change.after}
    for name, facts in changed.items():
        old = store.records.get(name) or Record(name, SPEC, "")
        aux, moved = dict(old.aux), dict(old.moved)
        if change := made.get(name):
            aux |= {"made": change.op, "f": f"{change.f_after:.3f}", "from": f"{change.f_before:.3f}"}
        if summary := names.get(name):
            aux.pop("unverified", None)
            aux |= UNVERIFIED if unsupported(summary, [store.records[one].summary for one in facts]) else ()
        was = {fact: where.get(fact) or before[fact] for fact in facts}
        moved |= {fact: theme for fact, theme in was.items() if theme != name}
        kept = tuple((fact, moved[fact]) for fact in facts if fact in moved)
        new = replace(old, summary=summary or old.summary, sources=tuple(facts), moved=kept)
        store.put(replace(new, aux=tuple(aux.items())))
    replaced = {change.before[1]: change.before[0] for change in partition.changes if change.op == "merge"}
    for gone in sorted(themes.keys() - partition.themes.keys(), key=age):
        by = gone
        while by in replaced:
            by = replaced[by]
        store.archive(gone)
        store.link(by, Link(VERSION, gone))


def _named(asker: Asker, store: RecordStore, facts: Sequence[str]) -> str:
    """What a model calls facts; one alone names itself, and the newest does where no reply is of use."""
    records = [store.records[name] for name in facts]
    data = asker.ask(THEME, facts=shown_facts(records)) if len(records) > 1 else None
    newest = max(records, key=lambda one: (one.age, number_of(one.id)))
    return (one_liner(data["summary"]) if data else "") or newest.summary
