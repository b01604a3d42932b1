"""The surroundings of a node as text: mermaid, dot or JSON.

Labels are words of a memory, so anyone's: in mermaid and dot they are quoted, cut to one short line, and what
means something to a renderer is written so that it means itself. JSON has them whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from infinimem.markdown import characters
from infinimem.strategies.graph.links import Graph, Link
from infinimem.strategies.graph.walk import Reached, either_way, expand

LABEL = 80
"""Characters of a label that a picture shows."""

_ARROWS = ("==>", "-->", "-.->", "--o")
_STYLES = ("bold", "solid", "dashed", "dotted")

_PLAIN = re.compile(r"[^\W_]| |,|(?<=[^\W_])[-.:]")
_HEEDED = re.compile(r"^\d+\.|\be(?=nd\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a picture.

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

    def as_mermaid(self) -> str:
        """A flowchart of mermaid; archived nodes have a dashed border, the root a thick one."""
        lines = ["flowchart LR"]
        for name, node in self._named_nodes():
            archived = "" if node.visible else ":::archived"
            lines.append(f'  {name}["{_mermaid(_shown(node))}"]{archived}')
        for source, link, target in self._named_links():
            arrow = _ARROWS[self.kinds.index(link.kind) % len(_ARROWS)]
            lines.append(f'  {source} {arrow}|"{_mermaid(_said(link))}"| {target}')
        return "\n".join(
            [*lines, "  classDef archived stroke-dasharray:4 3", "  style n0 stroke-width:3px", ""]
        )

    def as_dot(self) -> str:
        """A digraph of Graphviz; archived nodes have a dashed border, the root a thick one."""
        lines = ["digraph {", "  rankdir=LR", "  node [shape=box]"]
        for name, node in self._named_nodes():
            style = "" if node.visible else ", style=dashed"
            width = ", penwidth=3" if node.id == self.root else ""
            lines.append(f"  {name} [label={_dot(_shown(node))}{style}{width}]")
        for source, link, target in self._named_links():
            style = _STYLES[self.kinds.index(link.kind) % len(_STYLES)]
            lines.append(f"  {source} -> {target} [label={_dot(_said(link))}, style={style}]")
        return "\n".join([*lines, "}"]) + "\n"

    def as_json(self) -> str:
        """An object with "root", "nodes" and "links", one node or link a line."""
        nodes = (
            {"id": node.id, "label": node.label, "visible": node.visible, "hop": node.hop}
            for node in self.nodes
        )
        links = (
            {"from": source, "to": link.to, "type": link.kind, "weight": link.weight}
            for source, link in self.links
        )
        return (
            f'{{"root": {json.dumps(self.root)},\n "nodes": [{_rows(nodes)}],\n "links": [{_rows(links)}]}}\n'
        )

    def _named_nodes(self) -> Iterator[tuple[str, Node]]:
        """The nodes under names that mean nothing to a renderer, "n0" for the root."""
        for number, node in enumerate(self.nodes):
            yield f"n{number}", node

    def _named_links(self) -> Iterator[tuple[str, Link, str]]:
        names = {node.id: name for name, node in self._named_nodes()}
        for source, link in self.links:
            yield names[source], link, names[link.to]


FORMATS: Mapping[str, Callable[[Topology], str]] = {
    "mermaid": Topology.as_mermaid,
    "dot": Topology.as_dot,
    "json": Topology.as_json,
}
"""What a topology can be drawn as."""


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


def _shown(node: Node) -> str:
    label = _plain(node.label)
    return f"{_plain(node.id)}: {label if len(label) <= LABEL else label[: LABEL - 1].rstrip() + '…'}"


def _said(link: Link) -> str:
    return _plain(link.kind) if link.weight is None else f"{_plain(link.kind)} {link.weight:.3f}"


def _plain(text: str) -> str:
    return characters.visible(" ".join(characters.clean_text(text).split()))


def _mermaid(text: str) -> str:
    """`text` for a quoted label: all but letters, digits and the mildest punctuation as character codes, and
    so no number of a list and no word "end", which renderers heed even in quotes."""
    text = "".join(char if _PLAIN.match(text, at) else _code(char) for at, char in enumerate(text))
    return _HEEDED.sub(lambda found: found[0][:-1] + _code(found[0][-1]), text)


def _code(char: str) -> str:
    return f"#{ord(char)};"


def _dot(text: str) -> str:
    """`text` as a quoted string; dot reads entities and backslashes in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{escaped}"'


def _rows(items: Iterable[Mapping[str, object]]) -> str:
    return ",".join(f"\n  {json.dumps(item)}" for item in items)
