"""Small random graphs for hypothesis. Drawn by dice: of links drawn one by one, most graphs have too few."""

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
_dice = st.randoms(use_true_random=True)
_shares = st.sampled_from([0.1, 0.2, 0.35, 0.5])

nodes = st.sampled_from(NODES)
triples = st.builds(lambda dice, share: {link for link in POSSIBLE if dice.random() < share}, _dice, _shares)
some_nodes = st.builds(lambda dice, share: {node for node in NODES if dice.random() < share}, _dice, _shares)
keys = st.builds(lambda dice: key_of(dice.choices(range(4), k=len(NODES) ** 2)), _dice)
"""A number from 0 to 3 for each pair, so that many are equal."""


def key_of(numbers: list[int]) -> Key:
    return lambda at, to: (numbers[NODES.index(at) * len(NODES) + NODES.index(to)],)


def graph_of(links: Iterable[Triple]) -> Graph:
    """All nodes with these links, of weight 1, put in in the order in which they come."""
    links = list(links)
    return Graph({node: [Link(kind, to, 1.0) for at, kind, to in links if at == node] for node in NODES})
