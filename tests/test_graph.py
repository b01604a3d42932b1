"""A typed graph against a plain set of links, and its rewiring under caps on random graphs."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import (
    KINDS,
    NODES,
    Key,
    Triple,
    graph_of,
    keys,
    nodes,
    some_nodes,
    triples,
    triples_of,
)

from infinimem.strategies.graph.links import Graph, Link
from infinimem.strategies.graph.rewire import Rewired, redirect, settle, trim

caps = st.integers(0, 4)


def weight(source: str, to: str) -> float:
    return ord(to) / 100


def shuffled(links: Iterable[Triple]) -> list[Triple]:
    order = sorted(links)
    random.Random(7).shuffle(order)
    return order


def consistent(graph: Graph) -> None:
    """Every reading of the graph says the same."""
    there = triples_of(graph)
    assert sum(len(graph.links(node)) for node in graph.nodes) == len(there)
    for node in graph.nodes:
        links = [(link.kind, link.to) for link in graph.links(node)]
        assert links == sorted(links)
        for kind in KINDS:
            assert graph.out(node, kind) == tuple(sorted(to for *link, to in there if link == [node, kind]))
            assert graph.out(node, kind) == tuple(link.to for link in graph.links(node, kind))
            assert graph.into(node, kind) == tuple(sorted(at for at, *link in there if link == [kind, node]))


kinds = st.sampled_from(KINDS)
edits = st.lists(
    st.one_of(
        st.tuples(st.just("add"), nodes, kinds, nodes),
        st.tuples(st.just("put"), nodes, kinds, some_nodes),
    ),
    max_size=15,
)


@settings(max_examples=75)
@given(triples, edits)
def test_a_graph_is_a_set_of_links(links: set[Triple], changes: list[Any]) -> None:
    graph, model = graph_of(links), set(links)
    before, twin = set(links), graph.copy()
    for name, node, kind, other in changes:
        targets = set(other) - {node}
        if name == "put":
            graph.put(node, kind, [Link(kind, to) for to in targets])
            model = {link for link in model if link[:2] != (node, kind)}
            model |= {(node, kind, to) for to in targets}
        elif targets:
            graph.add(node, Link(kind, other))
            model.add((node, kind, other))
    assert triples_of(graph) == model
    assert set(graph.nodes) == set(NODES)
    consistent(graph)
    assert triples_of(twin) == before
    consistent(twin)


def test_equal_links_are_an_equal_graph_in_whatever_order_they_came() -> None:
    links = {"a": [Link("version", "b"), Link("like", "c", 0.5)], "b": [Link("like", "c")], "c": []}
    other = {"c": [], "b": [Link("like", "c")], "a": [Link("like", "c", 0.5), Link("version", "b")]}
    assert Graph(links) == Graph(other)
    assert Graph(links).into("c", "like") == Graph(other).into("c", "like") == ("a", "b")
    assert Graph(links).links("a") == (Link("like", "c", 0.5), Link("version", "b"))
    assert Graph({**links, "b": [Link("version", "a")]}) != Graph(links)
    assert Graph(links) != Graph({**links, "a": [Link("version", "b"), Link("like", "c", 0.6)]})


def test_adding_a_link_again_gives_it_the_new_weight() -> None:
    graph = Graph({"a": [Link("like", "b", 0.5)], "b": []})
    graph.add("a", Link("like", "b", 0.7))
    assert graph.links("a") == (Link("like", "b", 0.7),)
    assert graph.into("b", "like") == ("a",)


@pytest.mark.parametrize(
    "links",
    [[Link("like", "a")], [Link("like", "z")], [Link("like", "b", 0.1), Link("like", "b", 0.2)]],
    ids=["to itself", "to no node", "twice"],
)
def test_a_link_that_cannot_be_is_refused_and_changes_nothing(links: list[Link]) -> None:
    with pytest.raises(ValueError, match="a has "):
        Graph({"a": links, "b": []})
    graph = Graph({"a": [Link("like", "b", 0.5)], "b": []})
    with pytest.raises(ValueError, match="a has "):
        graph.put("a", "like", links)
    assert graph == Graph({"a": [Link("like", "b", 0.5)], "b": []})
    consistent(graph)


def test_links_of_another_kind_are_not_put() -> None:
    with pytest.raises(ValueError, match="not of kind like"):
        Graph({"a": [], "b": []}).put("a", "like", [Link("version", "b")])


@settings(max_examples=75)
@given(st.lists(nodes), caps, keys)
def test_trimming_keeps_the_best_and_of_equals_the_smaller_ids(
    candidates: list[str], cap: int, key: Key
) -> None:
    kept = trim(candidates, cap, lambda to: key("a", to))
    assert kept == trim(reversed(candidates), cap, lambda to: key("a", to))
    ranked = sorted(set(candidates), key=lambda to: (-key("a", to)[0], to))
    assert list(kept) == ranked[:cap]


def test_a_node_is_given_the_best_candidates_in_place_of_what_it_had() -> None:
    graph = graph_of({("a", "like", "h"), ("a", "version", "h")})
    settle(graph, "like", "a", ["d", "a", "c", "b", "c"], 2, lambda at, to: to == "d", weight)
    assert graph.links("a", "like") == (Link("like", "b", 0.98), Link("like", "d", 1.0))
    assert triples_of(graph) == {("a", "like", "b"), ("a", "like", "d"), ("a", "version", "h")}


@settings(max_examples=100)
@given(triples, nodes, some_nodes, some_nodes, caps, keys)
def test_redirecting_leads_visible_nodes_to_the_best_representative(
    links: set[Triple], gone: str, reps: set[str], visible: set[str], cap: int, key: Key
) -> None:
    reps.discard(gone)
    graph = graph_of(links)
    if not reps:
        with pytest.raises(ValueError, match="represent"):
            redirect(graph, "like", gone, reps, visible, cap, key, weight)
        assert graph == graph_of(links)
        return
    changed = redirect(graph, "like", gone, sorted(reps), visible, cap, key, weight)
    again = graph_of(shuffled(links))
    assert redirect(again, "like", gone, sorted(reps, reverse=True), visible, cap, key, weight) == changed
    assert again == graph
    consistent(graph)

    sources = {at for at, kind, to in links if (kind, to) == ("like", gone)} & visible
    for node in NODES:
        held = {to for at, kind, to in links if (at, kind) == (node, "like")}
        if node not in sources:
            assert set(graph.out(node, "like")) == held
            continue
        best = sorted(reps - {node}, key=lambda rep: (-key(node, rep)[0], rep))[:1]
        wanted = sorted((held - {gone}) | set(best), key=lambda to: (-key(node, to)[0], to))[:cap]
        assert set(graph.out(node, "like")) == set(wanted)
        for link in graph.links(node, "like"):
            assert link.weight == (1.0 if link.to in held else weight(node, link.to))
    lost = {(change.source, "like", change.old) for change in changed}
    new = {(change.source, "like", change.new) for change in changed if change.new is not None}
    assert len(lost) == len(changed)
    assert triples_of(graph) == (links - lost) | new
    assert lost <= links
    assert not new & links


def test_redirecting_says_first_what_took_the_place_then_what_the_cap_cut() -> None:
    graph = graph_of({("a", "like", "d"), ("a", "like", "b"), ("c", "like", "d"), ("c", "like", "e")})
    changed = redirect(graph, "like", "d", ["c", "e"], set("abce"), 1, lambda at, to: to, weight)
    assert changed == (Rewired("a", "d", "e"), Rewired("a", "b", None), Rewired("c", "d", None))
    assert triples_of(graph) == {("a", "like", "e"), ("c", "like", "e")}


@pytest.mark.parametrize("reps", [[], ["d"], ["a", "d"], ["nobody"]])
def test_redirecting_to_nothing_changes_nothing(reps: list[str]) -> None:
    graph = graph_of({("a", "like", "d")})
    with pytest.raises(ValueError, match="d needs other nodes"):
        redirect(graph, "like", "d", reps, set("a"), 1, lambda at, to: 0, weight)
    assert triples_of(graph) == {("a", "like", "d")}
