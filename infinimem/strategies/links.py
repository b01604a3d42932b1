"""What typed directed links between named nodes lead to.

Source: All-Mem, D.3 (expansion), Eq. 3 and section 4.4 (recoverability).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from infinimem.strategies.records.record import Link
from infinimem.strategies.records.record_store import RecordStore


@dataclass(frozen=True, slots=True)
class Reached:
    """A node that an expansion admitted, by which link and from where; an anchor has hop 0 and neither."""

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
    time: Callable[[str], Any],
    *,
    priority: bool = True,
) -> tuple[Reached, ...]:
    """Search breadth-first along links, and return what is reached in the order of admission.

    Args:
        anchors: where it starts, best first; they count towards the cap.
        neighbours: the links to follow from a node, such as `RecordStore.links`.
        kinds: the kinds of link that it follows, first the one whose neighbours come first, if `priority`.
        time: what orders the neighbours of a node by one kind, ascending; equal ones by id.
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


def either_way(graph: RecordStore, node: str, kinds: Iterable[str]) -> Iterator[Link]:
    """The links of these kinds that lead from a node or to it, each as one to the other end."""
    for kind in kinds:
        yield from graph.links(node, kind)
        for source in graph.into(node, kind):
            yield from (replace(link, to=source) for link in graph.links(source, kind) if link.to == node)


def replacements(graph: RecordStore, node: str, kind: str, visible: Collection[str]) -> set[str]:
    """The visible nodes from which links of a kind lead to a node, by way of others that are not visible."""
    seen, waiting = {node}, [node]
    while waiting:
        fresh = set(graph.into(waiting.pop(), kind)) - seen
        seen |= fresh
        waiting += (name for name in fresh if name not in visible)
    return {name for name in seen if name in visible}


# ── what stands around a node ────────────────────────────────────────────────────────────────────


class Topology(NamedTuple):
    """What stands around a node; `cut` where there is more of it.

    `data` is as JSON has it: "root", "nodes" (the root first, then by hop) and every link between two of
    them as "links".
    """

    data: Mapping[str, Any]
    cut: bool


def around(
    graph: RecordStore,
    root: str,
    hops: int,
    cap: int,
    kinds: Sequence[str],
    label: Callable[[str], str],
    visible: Callable[[str], bool],
) -> Topology:
    """Return what is within some hops of a node, links being followed either way, at most `cap` nodes.

    Links of these kinds are followed and shown; where the cap cuts, those named first are kept.
    """
    both_ways = partial(either_way, graph, kinds=kinds)
    reached = expand([root], both_ways, hops, cap + 1, kinds, lambda node: 0)
    hop_of = {found.node: found.hop for found in reached[:cap]}
    nodes = [
        {"id": node, "label": label(node), "visible": visible(node), "hop": hop}
        for node, hop in hop_of.items()
    ]
    links = [
        {"from": node, "to": link.to, "type": link.kind, "weight": link.weight}
        for node in hop_of
        for link in graph.links(node)
        if link.to in hop_of and link.kind in kinds
    ]
    return Topology({"root": root, "nodes": nodes, "links": links}, len(reached) > cap)
