"""What stands around a node: its neighbours by hop, and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from infinimem.strategies.graph.links import Graph, Link
from infinimem.strategies.graph.walk import Reached, either_way, expand


@dataclass(frozen=True, slots=True)
class Node:
    """A node and how far it is.

    Args:
        label: as the caller gave it.
        visible: whether it is on the surface; otherwise it is archived.
        hop: links from the root, followed either way.
    """

    id: str
    label: str
    visible: bool
    hop: int


@dataclass(frozen=True, slots=True)
class Topology:
    """What stands around a node.

    Args:
        nodes: the root first, then by hop.
        links: every link between two of them, by source in the order of the nodes.
        kinds: of link, in the order that the caller gave.
        cut: whether the cap left nodes out.
    """

    root: str
    nodes: tuple[Node, ...]
    links: tuple[tuple[str, Link], ...]
    kinds: tuple[str, ...]
    cut: bool

    def data(self) -> dict[str, Any]:
        """ "root", "nodes" and "links" as JSON has them."""
        return {
            "root": self.root,
            "nodes": [
                {"id": node.id, "label": node.label, "visible": node.visible, "hop": node.hop}
                for node in self.nodes
            ],
            "links": [
                {"from": source, "to": link.to, "type": link.kind, "weight": link.weight}
                for source, link in self.links
            ],
        }


def around(
    graph: Graph,
    root: str,
    hops: int,
    cap: int,
    kinds: Sequence[str],
    label: Callable[[str], str],
    visible: Callable[[str], bool],
) -> Topology:
    """What is within some hops of a node, links being followed either way.

    Args:
        cap: nodes at most, the root among them.
        kinds: the kinds of link that are followed and shown; where the cap cuts, those named first are kept.
        label: what a node says.
        visible: whether a node is on the surface.

    Raises:
        KeyError: the root is no node.
    """
    both_ways = partial(either_way, graph, kinds=kinds)
    reached: tuple[Reached, ...] = expand([root], both_ways, hops, cap + 1, kinds, lambda node: 0)
    shown = {found.node: found.hop for found in reached[:cap]}
    return Topology(
        root=root,
        nodes=tuple(Node(node, label(node), visible(node), hop) for node, hop in shown.items()),
        links=tuple(
            (node, link)
            for node in shown
            for link in graph.links(node)
            if link.to in shown and link.kind in kinds
        ),
        kinds=tuple(kinds),
        cut=len(reached) > cap,
    )
