"""Search along typed links against plain references."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import KINDS, NODES, Triple, graph_of, nodes, some_nodes, triples

from infinimem.strategies.graph.walk import Reached, distances, expand

chosen = st.lists(st.sampled_from(KINDS), unique=True)
times = st.integers(0, 2 ** len(NODES) - 1)


def plain_search(
    links: set[Triple],
    anchors: list[str],
    hops: int,
    cap: int,
    kinds: list[str],
    time: Any,
    priority: bool,
) -> list[tuple[str, int, str | None, str | None]]:
    """Level by level, the budget looked at before each admission."""
    found: list[tuple[str, int, str | None, str | None]] = []
    for anchor in anchors:
        if len(found) < cap and anchor not in [row[0] for row in found]:
            found.append((anchor, 0, None, None))
    level = [row[0] for row in found]
    for hop in range(1, hops + 1):
        following = []
        for node in level:
            rows = [
                (kinds.index(kind) if priority else 0, time(to), to, kind)
                for at, kind, to in links
                if at == node and kind in kinds
            ]
            for _, _, to, kind in sorted(rows):
                if len(found) < cap and to not in [row[0] for row in found]:
                    found.append((to, hop, node, kind))
                    following.append(to)
        level = following
    return found


@settings(max_examples=100)
@given(
    triples,
    st.lists(nodes, max_size=4),
    st.integers(0, 4),
    st.integers(0, 9),
    chosen,
    times,
    st.booleans(),
)
def test_expanding_is_a_plain_search_under_a_budget(
    links: set[Triple],
    anchors: list[str],
    hops: int,
    cap: int,
    kinds: list[str],
    ages: int,
    priority: bool,
) -> None:
    def time(node: str) -> int:
        return ages >> NODES.index(node) & 1

    graph = graph_of(links)
    found = expand(anchors, graph.links, hops, cap, kinds, time, priority=priority)
    assert [(row.node, row.hop, row.source, row.kind) for row in found] == plain_search(
        links, anchors, hops, cap, kinds, time, priority
    )
    turned = expand(
        anchors, lambda node: reversed(graph.links(node)), hops, cap, kinds, time, priority=priority
    )
    assert turned == found


def test_kinds_come_in_their_order_then_the_older_then_the_smaller_id() -> None:
    links = {
        ("a", "next", "b"),
        ("a", "like", "c"),
        ("a", "like", "d"),
        ("a", "version", "e"),
        ("a", "like", "b"),
    }
    age = {"b": 0, "c": 1, "d": 0, "e": 2}
    walk = graph_of(links).links
    found = expand("a", walk, 1, 9, ["version", "next", "like"], age.__getitem__)
    assert [(row.node, row.kind) for row in found[1:]] == [
        ("e", "version"),
        ("b", "next"),
        ("d", "like"),
        ("c", "like"),
    ]
    plain = expand("a", walk, 1, 9, ["version", "next", "like"], age.__getitem__, priority=False)
    assert [(row.node, row.kind) for row in plain[1:]] == [
        ("b", "like"),
        ("d", "like"),
        ("c", "like"),
        ("e", "version"),
    ]
    assert expand("a", walk, 1, 2, ["version"], age.__getitem__) == (
        Reached("a", 0),
        Reached("e", 1, "a", "version"),
    )


def far_by_force(links: set[Triple], sources: Collection[str], kinds: Collection[str]) -> dict[str, int]:
    far = dict.fromkeys(sources, 0)
    for _ in NODES:
        for at, kind, to in links:
            if kind in kinds and at in far:
                far[to] = min(far.get(to, len(NODES)), far[at] + 1)
    return far


@settings(max_examples=75)
@given(triples, some_nodes, st.one_of(st.none(), chosen))
def test_distances_are_the_shortest(links: set[Triple], sources: set[str], kinds: list[str] | None) -> None:
    wanted = far_by_force(links, sources, KINDS if kinds is None else kinds)
    assert distances(sources, graph_of(links), kinds) == wanted
