"""Pictures of a graph: what they show, and that no label breaks out of them."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import KINDS, Triple, graph_of, nodes, some_nodes, triples

from infinimem.strategies.graph.draw import FORMATS, LABEL, Topology, around
from infinimem.strategies.graph.links import Graph, Link

HOSTILE = (
    'x"] --> y["',
    "a]b[c(d)e{f}|g|",
    "end",
    "ends; END end-user\nend",
    "line\r\none\u2028two\u0085three",
    "<script>alert(1)</script><b>b</b><br/>",
    "&quot;&lt;&#34; #quot; #35;",
    "%%{init: {}}%% %% comment",
    "\\",
    '\\"',
    '\\" ]; n9 [label=x',
    "\\N \\l \\",
    "`**bold**` _it_ $$x^2$$",
    "1. one",
    "- one",
    ":::archived",
    "click n0 call alert()",
    "\x00\x1b[31m\u202e\ud800",
    "",
    "漢字 é 👍🏽",
    "}" * 500,
)

MERMAID_NODE = re.compile(r'  n\d+\["([^"]*)"\](:::archived)?')
MERMAID_LINK = re.compile(r'  n\d+ (==>|-->|-\.->|--o)\|"([^"]*)"\| n\d+')
MERMAID_END = ["  classDef archived stroke-dasharray:4 3", "  style n0 stroke-width:3px"]
DOT_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(->|[\[\]{}=,])|([A-Za-z0-9_]+)')

labels = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=20),
    st.lists(st.sampled_from(HOSTILE), max_size=3).map(" ".join),
)


def mermaid_labels(text: str) -> list[str]:
    """The labels of nodes, then of links, as a renderer shows them; the whole text must be nothing else."""
    first, *lines = text.removesuffix("\n").split("\n")
    assert first == "flowchart LR"
    assert lines[-2:] == MERMAID_END
    found = []
    for line in lines[:-2]:
        match = MERMAID_NODE.fullmatch(line) or MERMAID_LINK.fullmatch(line)
        assert match, line
        label = match[1] if line.endswith(('"]', "archived")) else match[2]
        bare = re.sub(r"#\d+;", " ", label)
        assert not re.search(r"[^\w .,:\-]|_", bare), line
        assert not re.search(r"\bend\b", label, re.IGNORECASE), line
        assert not re.match(r"([-+*]|\d+\.) ", label), line
        found.append(re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label))
    return found


def dot_statements(text: str) -> list[list[str]]:
    """The lines as tokens: quoted strings keep a leading quote, and what dot undoes in them is undone."""
    rows = []
    for line in text.removesuffix("\n").split("\n"):
        row, at = [], 0
        while at < len(line):
            if line[at] == " ":
                at += 1
                continue
            match = DOT_TOKEN.match(line, at)
            assert match, line[at:]
            row.append(match[0] if match[1] is None else '"' + dot_text(match[1]))
            at = match.end()
        rows.append(row)
    return rows


def dot_text(quoted: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", quoted))


def pictures(topology: Topology) -> tuple[str, ...]:
    return tuple(draw(topology) for draw in FORMATS.values())


def labelled(first: str, second: str, ids: tuple[str, str] = ("a", "b")) -> Topology:
    graph = Graph({ids[0]: [Link("version", ids[1])], ids[1]: []})
    return around(graph, ids[0], 1, 5, KINDS, {ids[0]: first, ids[1]: second}.__getitem__, ids[0].__eq__)


@settings(max_examples=75)
@given(labels, labels)
def test_no_label_breaks_out(first: str, second: str) -> None:
    topology = labelled(first, second)
    shown = mermaid_labels(topology.as_mermaid())
    assert len(shown) == 3
    assert all(len(text) <= LABEL + 3 for text in shown)
    assert dot_statements(topology.as_dot()) == [
        ["digraph", "{"],
        ["rankdir", "=", "LR"],
        ["node", "[", "shape", "=", "box", "]"],
        ["n0", "[", "label", "=", '"' + shown[0], ",", "penwidth", "=", "3", "]"],
        ["n1", "[", "label", "=", '"' + shown[1], ",", "style", "=", "dashed", "]"],
        ["n0", "->", "n1", "[", "label", "=", '"version', ",", "style", "=", "bold", "]"],
        ["}"],
    ]
    assert [node["label"] for node in json.loads(topology.as_json())["nodes"]] == [first, second]


@pytest.mark.parametrize("bad", HOSTILE)
def test_no_id_breaks_out(bad: str) -> None:
    topology = labelled("one", "two", ("a", bad))
    assert len(mermaid_labels(topology.as_mermaid())) == 3
    assert len(dot_statements(topology.as_dot())) == 7
    assert json.loads(topology.as_json())["links"][0]["to"] == bad


def test_an_ordinary_label_reads_as_it_is() -> None:
    topology = labelled('Anna said "no",\n then left.', "5:30 p.m. <b> & \\n")
    assert mermaid_labels(topology.as_mermaid()) == [
        'a: Anna said "no", then left.',
        "b: 5:30 p.m. <b> & \\n",
        "version",
    ]
    assert '"a: Anna said \\"no\\", then left."' in topology.as_dot()
    assert '"b: 5:30 p.m. <b> &amp; \\\\n"' in topology.as_dot()


def test_what_moves_a_cursor_or_hides_is_shown() -> None:
    for draw in (Topology.as_mermaid, Topology.as_dot):
        text = draw(labelled("\x00\x1b[31m\u202e\ud800", "one\x85two"))
        assert all(char.isprintable() or char == "\n" for char in text)
    assert mermaid_labels(labelled("\x1b[31m", "one\x85two").as_mermaid())[:2] == [
        "a: \\x1b[31m",
        "b: one two",
    ]


def test_the_picture_shows_root_surface_archive_kinds_and_weights() -> None:
    graph = Graph(
        {
            "u-2": [Link("version", "u-1"), Link("like", "u-3", 0.8123), Link("secret", "u-3")],
            "u-1": [],
            "u-3": [Link("like", "u-4")],
            "u-4": [],
        }
    )
    topology = around(graph, "u-1", 2, 9, KINDS, "say {}".format, lambda node: node != "u-1")
    assert topology.as_mermaid() == (
        "flowchart LR\n"
        '  n0["u-1: say u-1"]:::archived\n'
        '  n1["u-2: say u-2"]\n'
        '  n2["u-3: say u-3"]\n'
        '  n1 -->|"like 0.812"| n2\n'
        '  n1 ==>|"version"| n0\n'
        "  classDef archived stroke-dasharray:4 3\n"
        "  style n0 stroke-width:3px\n"
    )
    assert json.loads(topology.as_json()) == {
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


@pytest.mark.parametrize(("cap", "shown"), [(1, "a"), (2, "ac"), (3, "acb"), (4, "acbd"), (9, "acbd")])
def test_where_the_cap_cuts_the_first_kinds_are_kept(cap: int, shown: str) -> None:
    graph = graph_of({("a", "like", "b"), ("c", "version", "a"), ("b", "like", "d")})
    topology = around(graph, "a", 2, cap, KINDS, str, bool)
    assert "".join(node.id for node in topology.nodes) == shown
    assert topology.cut == (cap < 4)
    assert all(source in shown and link.to in shown for source, link in topology.links)


@settings(max_examples=75)
@given(triples, nodes, some_nodes, st.integers(0, 3), st.integers(1, 9))
def test_around_is_what_is_near_either_way(
    links: set[Triple], root: str, visible: set[str], hops: int, cap: int
) -> None:
    def draw(graph: Graph) -> Topology:
        return around(graph, root, hops, cap, KINDS, str.upper, visible.__contains__)

    topology = draw(graph_of(links))
    far = {root: 0}
    for hop in range(hops):
        ends = [pair for at, _, to in links for pair in ((at, to), (to, at))]
        far |= {to: hop + 1 for at, to in ends if far.get(at) == hop and to not in far}
    assert [node.hop for node in topology.nodes] == sorted(far.values())[:cap]
    assert all(node.hop == far[node.id] for node in topology.nodes)
    assert all(node.visible == (node.id in visible) for node in topology.nodes)
    assert all(node.label == node.id.upper() for node in topology.nodes)
    assert topology.cut == (len(far) > cap)
    shown = {node.id for node in topology.nodes}
    assert {(at, link.kind, link.to) for at, link in topology.links} == {
        link for link in links if {link[0], link[2]} <= shown
    }
    assert len(topology.links) == len(set(topology.links))
    assert pictures(draw(graph_of(sorted(links)))) == pictures(topology)


def test_a_root_that_is_no_node_is_an_error() -> None:
    with pytest.raises(KeyError):
        around(Graph(), "a", 1, 1, KINDS, str, bool)
