"""What stands around a node: the nodes by hop, and the links between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.strategies.records.record import Link
from infinimem.strategies.records.strategy import around

NODES = "abcdefgh"
KINDS = ("version", "like")
Triple = tuple[str, str, str]
"""Source, kind, target."""
POSSIBLE = [(at, kind, to) for at, kind, to in product(NODES, KINDS, NODES) if at != to]
# By dice: of links drawn one by one, most graphs have too few.
_dice = st.randoms(use_true_random=True)
_shares = st.sampled_from([0.1, 0.2, 0.35, 0.5])
triples = st.builds(lambda dice, share: {link for link in POSSIBLE if dice.random() < share}, _dice, _shares)
some_nodes = st.builds(lambda dice, share: {node for node in NODES if dice.random() < share}, _dice, _shares)


class Linked(dict[str, tuple[Link, ...]]):
    """The links of each node."""

    visible: Collection[str] = ()

    def links(self, node: str, kind: str | None = None) -> tuple[Link, ...]:
        return tuple(link for link in self[node] if kind in (None, link.kind))

    def into(self, node: str, kind: str) -> tuple[str, ...]:
        return tuple(one for one in sorted(self) if any(link.to == node for link in self.links(one, kind)))


def graph_of(links: Iterable[Triple]) -> Linked:
    """All nodes with these links, of weight 1."""
    found = sorted(links)
    return Linked((node, tuple(Link(k, to, 1.0) for at, k, to in found if at == node)) for node in NODES)


def test_the_picture_shows_root_surface_archive_kinds_and_weights() -> None:
    graph = Linked(
        {
            "u-2": (Link("like", "u-3", 0.8123), Link("secret", "u-3"), Link("version", "u-1")),
            "u-1": (),
            "u-3": (Link("like", "u-4"),),
            "u-4": (),
        }
    )
    graph.visible = graph.keys() - {"u-1"}
    topology = around(graph, "u-1", 2, 9, KINDS, "say {}".format)
    assert topology.data == {
        "root": "u-1",
        "nodes": [
            {"id": "u-1", "label": "say u-1", "visible": False, "hop": 0},
            {"id": "u-2", "label": "say u-2", "visible": True, "hop": 1},
            {"id": "u-3", "label": "say u-3", "visible": True, "hop": 2},
        ],
        "links": [
            {"from": "u-2", "to": "u-3", "type": "like", "weight": 0.8123},
            {"from": "u-2", "to": "u-1", "type": "version", "weight": None},
        ],
    }
    assert not topology.cut


@settings(max_examples=75)
@given(triples, st.sampled_from(NODES), some_nodes, st.integers(0, 3), st.integers(1, 9))
def test_around_is_what_is_near_either_way(
    links: set[Triple], root: str, visible: set[str], hops: int, cap: int
) -> None:
    graph = graph_of(links)
    graph.visible = visible
    topology = around(graph, root, hops, cap, KINDS, str.upper)
    far = {root: 0}
    for hop in range(hops):
        ends = [pair for at, _, to in links for pair in ((at, to), (to, at))]
        far |= {to: hop + 1 for at, to in ends if far.get(at) == hop and to not in far}
    nodes, drawn = topology.data["nodes"], topology.data["links"]
    assert [node["hop"] for node in nodes] == sorted(far.values())[:cap]
    assert all(node["hop"] == far[node["id"]] for node in nodes)
    assert all(node["visible"] == (node["id"] in visible) for node in nodes)
    assert all(node["label"] == node["id"].upper() for node in nodes)
    assert topology.cut == (len(far) > cap)
    shown = {node["id"] for node in nodes}
    assert {(link["from"], link["type"], link["to"]) for link in drawn} == {
        link for link in links if {link[0], link[2]} <= shown
    }
    assert len({tuple(link.items()) for link in drawn}) == len(drawn)
