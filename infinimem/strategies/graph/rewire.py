"""Links rewired under caps, the same way every time.

Keys come from the caller: the larger is kept first, equal ones by the smaller id, which a key must therefore
not hold itself. What is visible comes as a container that answers `in`.

Source: All-Mem, Appendix B: trimming (Eq. 17 and 18), redirecting (Eq. 20), out-links of a new node (Eq. 21).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from functools import partial
from typing import Any, Protocol

from infinimem.strategies.graph.links import Graph, Link


class Orderable(Protocol):
    """What can be a key: anything that is less or not less than another, such as a tuple."""

    def __lt__(self, other: Any, /) -> bool: ...


def trim(candidates: Iterable[str], cap: int, key: Callable[[str], Orderable]) -> tuple[str, ...]:
    """The first `cap` candidates in descending order of key, each once."""
    ranked = sorted(sorted(set(candidates)), key=key, reverse=True)  # stable: equal keys stay by id
    return tuple(ranked[:cap])


def settle(
    graph: Graph,
    kind: str,
    node: str,
    candidates: Iterable[str],
    cap: int,
    key: Callable[[str, str], Orderable],
    weight: Callable[[str, str], float | None],
) -> None:
    """Give a node its out-links of a kind: the best candidates other than itself. What it had is replaced.

    Args:
        key: of a link, by source and target.
        weight: of a link, by source and target.
    """
    kept = trim((to for to in candidates if to != node), cap, partial(key, node))
    graph.put(node, kind, (Link(kind, to, weight(node, to)) for to in kept))


def redirect(
    graph: Graph,
    kind: str,
    gone: str,
    reps: Collection[str],
    visible: Container[str],
    cap: int,
    key: Callable[[str, str], Orderable],
    weight: Callable[[str, str], float | None],
) -> set[str]:
    """Let every visible node that links to `gone` link to the best of its representatives instead, then trim.

    A representative that itself links to `gone` takes the best of the others. Links of nodes that are not
    visible stay as they are, and so do the links of `gone`.

    Args:
        reps: the nodes that stand for `gone` from now on.
        key: of a link, by source and target.
        weight: of a new link, by source and target.

    Returns:
        The nodes of which a link changed.

    Raises:
        ValueError: where nothing represents `gone`, it would represent itself, or a representative is no
            node; then nothing has changed.
    """
    if not reps or gone in reps or any(rep not in graph for rep in reps):
        raise ValueError(f"{gone} needs other nodes of the graph to represent it")
    changed: set[str] = set()
    for source in graph.into(gone, kind):
        if source not in visible:
            continue
        held = {link.to: link for link in graph.links(source, kind) if link.to != gone}
        best = trim((rep for rep in reps if rep != source), 1, partial(key, source))
        fresh = {to: Link(kind, to, weight(source, to)) for to in best if to not in held}
        kept = trim({**held, **fresh}, cap, partial(key, source))
        graph.put(source, kind, (held.get(to) or fresh[to] for to in kept))
        changed.add(source)
    return changed
