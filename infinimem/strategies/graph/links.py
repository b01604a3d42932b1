"""Typed directed links between named nodes, and how they are rewired under caps.

Keys of links come from the caller: the larger is kept first, equal ones by the smaller id, which a key must
therefore not hold itself. What is visible comes as a container that answers `in`.

Source: All-Mem, Appendix B: trimming (Eq. 17 and 18), redirecting (Eq. 20), out-links of a new node (Eq. 21).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
)
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")


class SharedDict(MutableMapping[K, V], Generic[K, V]):
    """As a dict, but in no order; changing one copy changes no other."""

    __slots__ = ("_held",)

    def __init__(self, held: Map[K, V] | None = None) -> None:
        self._held: Map[K, V] = Map() if held is None else held

    def copy(self) -> SharedDict[K, V]:
        return SharedDict(self._held)

    def __getitem__(self, key: K) -> V:
        return self._held[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._held = self._held.set(key, value)

    def __delitem__(self, key: K) -> None:
        self._held = self._held.delete(key)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


@dataclass(frozen=True, slots=True)
class Link:
    """A link as its source holds it.

    Args:
        kind: its type, such as "version".
        to: the node that it leads to.
        weight: how near the two are, in the caller's measure; None for a kind that has no measure.
    """

    kind: str
    to: str
    weight: float | None = None


class Graph:
    """Nodes named by strings, at most one link of a kind from one to another, none to itself.

    Links stand in canonical order (kind, target); nodes are in no order. ValueError: for a link to itself,
    to no node, or twice. KeyError: for a node that is not there.
    """

    def __init__(self, links: Mapping[str, Iterable[Link]] | None = None) -> None:
        # The values are never changed in place, only replaced: that is what makes a copy cheap.
        self._out: SharedDict[str, tuple[Link, ...]] = SharedDict()
        self._into: SharedDict[str, Mapping[str, tuple[str, ...]]] = SharedDict()
        self.changed: set[str] = set()
        """Nodes whose out-links were set; a copy carries them on, its owner may clear them."""
        for node in links or {}:
            self.add_node(node)
        for node, those in (links or {}).items():
            self._set(node, those)

    def __contains__(self, node: str) -> bool:
        return node in self._out

    def __eq__(self, other: object) -> bool:
        """Whether the nodes and their links are equal, weights included, whatever the order of the nodes."""
        return isinstance(other, Graph) and self._out == other._out

    @property
    def nodes(self) -> KeysView[str]:
        return self._out.keys()

    def links(self, node: str, kind: str | None = None) -> tuple[Link, ...]:
        """The out-links of a node, all or of one kind, by (kind, target)."""
        links = self._out[node]
        return links if kind is None else tuple(link for link in links if link.kind == kind)

    def out(self, node: str, kind: str) -> tuple[str, ...]:
        """Where the out-links of a kind lead, ascending."""
        return tuple(link.to for link in self._out[node] if link.kind == kind)

    def into(self, node: str, kind: str) -> tuple[str, ...]:
        """The nodes that link to this one by a kind, ascending."""
        return self._into[node].get(kind, ())

    def copy(self) -> Graph:
        """A graph of its own with the same links; costs the same however large it is."""
        twin = Graph()
        twin._out = self._out.copy()
        twin._into = self._into.copy()
        twin.changed = self.changed.copy()
        return twin

    def add_node(self, node: str) -> None:
        """Let a node be there, without links if it is new."""
        self._out.setdefault(node, ())
        self._into.setdefault(node, {})

    def put(self, node: str, kind: str, links: Iterable[Link]) -> None:
        """Replace all out-links of a kind."""
        links = tuple(links)
        if any(link.kind != kind for link in links):
            raise ValueError(f"a link of {node} is not of kind {kind}")
        self._set(node, (*(link for link in self._out[node] if link.kind != kind), *links))

    def add(self, node: str, link: Link) -> None:
        """Add a link; the one of this kind to this target, if there is one, takes the new weight."""
        others = (old for old in self._out[node] if (old.kind, old.to) != (link.kind, link.to))
        self._set(node, (*others, link))

    def _set(self, node: str, links: Iterable[Link]) -> None:
        new = self._checked(node, links)
        old = {(link.kind, link.to): link for link in self._out[node]}
        self._out[node] = new
        self.changed.add(node)
        for link in new:
            if old.pop((link.kind, link.to), None) is None:
                self._arrive(node, link)
        for link in old.values():
            self._leave(node, link)

    def _checked(self, node: str, links: Iterable[Link]) -> tuple[Link, ...]:
        found = tuple(sorted(links, key=lambda link: (link.kind, link.to)))
        for position, link in enumerate(found):
            if link.to == node:
                raise ValueError(f"{node} has a {link.kind} link to itself")
            if link.to not in self._out:
                raise ValueError(f"{node} has a {link.kind} link to {link.to}, which is no node")
            if position and (link.kind, link.to) == (found[position - 1].kind, found[position - 1].to):
                raise ValueError(f"{node} has two {link.kind} links to {link.to}")
        return found

    def _arrive(self, node: str, link: Link) -> None:
        kinds = self._into[link.to]
        sources = kinds.get(link.kind, ())
        at = bisect_left(sources, node)
        self._into[link.to] = {**kinds, link.kind: (*sources[:at], node, *sources[at:])}

    def _leave(self, node: str, link: Link) -> None:
        kinds = self._into[link.to]
        rest = tuple(source for source in kinds[link.kind] if source != node)
        self._into[link.to] = {**kinds, link.kind: rest}


# ── rewiring under caps, the same way every time ─────────────────────────────────────────────────


class Orderable(Protocol):
    """What can be a key: anything that is less or not less than another, such as a tuple."""

    def __lt__(self, other: Any, /) -> bool: ...


def trim(candidates: Iterable[str], cap: int, key: Callable[[str], Orderable]) -> tuple[str, ...]:
    """The first `cap` candidates in descending order of key, each once."""
    ranked = sorted(sorted(set(candidates)), key=key, reverse=True)  # stable: equal keys stay by id
    return tuple(ranked[:cap])


def settle(
    graph: Graph,
    kind: str,
    node: str,
    candidates: Iterable[str],
    cap: int,
    key: Callable[[str, str], Orderable],
    weight: Callable[[str, str], float | None],
) -> None:
    """Give a node the best candidates as its out-links of a kind, in place of those it had."""
    kept = trim((to for to in candidates if to != node), cap, partial(key, node))
    graph.put(node, kind, (Link(kind, to, weight(node, to)) for to in kept))


def redirect(
    graph: Graph,
    kind: str,
    gone: str,
    reps: Collection[str],
    visible: Container[str],
    cap: int,
    key: Callable[[str, str], Orderable],
    weight: Callable[[str, str], float | None],
) -> set[str]:
    """Let every visible node that links to `gone` link to the best of its representatives instead, then trim.

    One that itself links to `gone` takes the best of the others; links of `gone`, and of nodes that are
    not visible, stay. Returns the nodes of which a link changed; ValueError, with nothing changed, where
    nothing can represent `gone`.
    """
    if not reps or gone in reps or any(rep not in graph for rep in reps):
        raise ValueError(f"{gone} needs other nodes of the graph to represent it")
    changed: set[str] = set()
    for source in graph.into(gone, kind):
        if source not in visible:
            continue
        held = {link.to: link for link in graph.links(source, kind) if link.to != gone}
        best = trim((rep for rep in reps if rep != source), 1, partial(key, source))
        fresh = {to: Link(kind, to, weight(source, to)) for to in best if to not in held}
        kept = trim({**held, **fresh}, cap, partial(key, source))
        graph.put(source, kind, (held.get(to) or fresh[to] for to in kept))
        changed.add(source)
    return changed
