"""Small random graphs for hypothesis, drawn as bits of numbers: that is quick, and shrinks to few links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from hypothesis import strategies as st

from infinimem.strategies.graph.links import Graph, Link

NODES = "abcdefgh"
KINDS = ("version", "like")

Triple = tuple[str, str, str]
"""Source, kind, target."""
Key = Callable[[str, str], tuple[int]]

POSSIBLE = [(at, kind, to) for at, kind, to in product(NODES, KINDS, NODES) if at != to]
PAIRS = {pair: place for place, pair in enumerate(product(NODES, NODES))}

_bits = st.integers(0, 2 ** len(POSSIBLE) - 1)

nodes = st.sampled_from(NODES)
triples = st.builds(
    lambda one, two, three: {link for at, link in enumerate(POSSIBLE) if (one & two & three) >> at & 1},
    _bits,
    _bits,
    _bits,
)
"""About one in eight of the links that there can be."""
some_nodes = st.integers(0, 2 ** len(NODES) - 1).map(
    lambda bits: {node for at, node in enumerate(NODES) if bits >> at & 1}
)
keys = st.integers(0, 4 ** len(PAIRS) - 1).map(
    lambda digits: lambda at, to: (digits >> 2 * PAIRS[at, to] & 3,)
)
"""A number from 0 to 3 for each pair, so that many are equal."""


def graph_of(links: Iterable[Triple]) -> Graph:
    """All nodes with these links, of weight 1, put in in the order in which they come."""
    links = list(links)
    return Graph({node: [Link(kind, to, 1.0) for at, kind, to in links if at == node] for node in NODES})


def triples_of(graph: Graph) -> set[Triple]:
    return {(node, link.kind, link.to) for node in graph.nodes for link in graph.links(node)}
