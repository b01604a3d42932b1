"""Search along typed links: a budgeted expansion from anchors, and how far everything is.

Source: All-Mem, Appendix D.3 (expansion), Eq. 3 and section 4.4 (recoverability).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
