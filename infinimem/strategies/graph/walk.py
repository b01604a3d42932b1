"""Search along typed links: a budgeted expansion from anchors, and how far everything is.

Source: All-Mem, Appendix D.3 (expansion), Eq. 3 and section 4.4 (recoverability).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from infinimem.strategies.graph.links import Graph, Link
from infinimem.strategies.graph.rewire import Orderable


@dataclass(frozen=True, slots=True)
class Reached:
    """A node that an expansion admitted.

    Args:
        hop: links from the nearest anchor on the way that was taken; 0 for an anchor.
        source: the node that it was reached from; None for an anchor.
        kind: of the link by which it was reached; None for an anchor.
    """

    node: str
    hop: int
    source: str | None = None
    kind: str | None = None


def expand(
    anchors: Iterable[str],
    neighbours: Callable[[str], Iterable[Link]],
    hops: int,
    cap: int,
    kinds: Sequence[str],
    time: Callable[[str], Orderable],
    *,
    priority: bool = True,
) -> tuple[Reached, ...]:
    """What a breadth-first search along links reaches, in the order of admission.

    Args:
        anchors: where it starts, best first; they count towards the cap.
        neighbours: the links to follow from a node, such as `Graph.links`.
        hops: links that it goes from an anchor at most.
        cap: nodes that it admits at most.
        kinds: the kinds of link that it follows, first the one whose neighbours come first.
        time: what orders the neighbours of a node by one kind, ascending; equal ones by id.
        priority: whether the order of the kinds counts; without it, time and id alone do.
    """
    rank = {kind: position if priority else 0 for position, kind in enumerate(kinds)}
    admitted = [Reached(node, 0) for node in dict.fromkeys(anchors)][:cap]
    seen = {found.node for found in admitted}
    frontier = deque(admitted)
    while frontier and len(admitted) < cap:
        here = frontier.popleft()
        if here.hop == hops:
            break  # first in, first out: the rest is as far away
        links = [link for link in neighbours(here.node) if link.kind in rank and link.to not in seen]
        for link in sorted(links, key=lambda link: (rank[link.kind], time(link.to), link.to, link.kind)):
            if link.to in seen:  # two kinds of link lead to it
                continue
            if len(admitted) == cap:
                break
            found = Reached(link.to, here.hop + 1, here.node, link.kind)
            seen.add(link.to)
            admitted.append(found)
            frontier.append(found)
    return tuple(admitted)


def either_way(graph: Graph, node: str, kinds: Iterable[str]) -> Iterator[Link]:
    """The links of these kinds that lead from a node or to it, each as one to the other end."""
    for kind in kinds:
        yield from graph.links(node, kind)
        for source in graph.into(node, kind):
            yield from (replace(link, to=source) for link in graph.links(source, kind) if link.to == node)


def distances(sources: Iterable[str], graph: Graph, kinds: Collection[str] | None = None) -> dict[str, int]:
    """Links from the nearest source to each node that can be reached, in the links' direction.

    Args:
        kinds: the kinds of link that count; None for all.
    """
    far = dict.fromkeys(sources, 0)
    frontier = deque(far)
    while frontier:
        node = frontier.popleft()
        for link in graph.links(node):
            if link.to not in far and (kinds is None or link.kind in kinds):
                far[link.to] = far[node] + 1
                frontier.append(link.to)
    return far


def heirs(graph: Graph, node: str, kind: str, visible: Collection[str]) -> set[str]:
    """The visible nodes from which links of a kind lead to a node, by way of others that are not visible."""
    seen, waiting = {node}, [node]
    while waiting:
        fresh = set(graph.into(waiting.pop(), kind)) - seen
        seen |= fresh
        waiting += (name for name in fresh if name not in visible)
    return {name for name in seen if name in visible}


@dataclass(frozen=True, slots=True)
class Recoverability:
    """How much of what left the surface can be reached from it.

    Args:
        archived: nodes that are not visible.
        unreachable: how many of them no visible node leads to.
        coverage: share of the archived within H links of the surface, for H = 0, 1, … up to the farthest;
            empty where nothing is archived.
        h95: least H whose coverage is 0.95 or more; None where there is none.
        visible_ratio: visible nodes as a share of all; 1 where there are none.
    """

    archived: int
    unreachable: int
    coverage: tuple[float, ...]
    h95: int | None
    visible_ratio: float


def recoverability(
    graph: Graph, visible: Collection[str], archived: Collection[str], kinds: Collection[str] | None = None
) -> Recoverability:
    """Measure how the archived nodes are reached from the visible ones along links of these kinds."""
    far = distances(visible, graph, kinds)
    hops = [far[node] for node in archived if node in far]
    total = len(archived)
    at = Counter(hops)
    within = list(accumulate(at[hop] for hop in range(max(at, default=0) + 1))) if total else []
    return Recoverability(
        archived=total,
        unreachable=total - len(hops),
        coverage=tuple(count / total for count in within),
        h95=next((limit for limit, count in enumerate(within) if count * 20 >= total * 19), None),
        visible_ratio=len(visible) / (len(visible) + total) if visible or total else 1.0,
    )
