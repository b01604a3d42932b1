"""A store in figures: what is on the surface, the links, and how much of the archive can be reached.

Source: All-Mem, section 4.4 and 4.5 (recoverability, visible ratio).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from infinimem.strategies.graph.walk import Recoverability, recoverability
from infinimem.strategies.records.record_store import RecordStore


def _recovery(store: RecordStore, kinds: Collection[str]) -> Recoverability:
    """How the archive is reached along outgoing links of these kinds."""
    return recoverability(store.graph, store.visible, store.records.keys() - store.visible, kinds)


def links(store: RecordStore) -> dict[str, int]:
    """How many there are of each kind."""
    return {
        kind: sum(len(store.graph.out(name, kind)) for name in store.records) for kind in store.spec.links
    }


def by_kind(store: RecordStore) -> dict[str, int]:
    """How many records there are of each kind that are not archived, under "episodes" for an "episode", and
    how many are: "archived"."""
    kinds = Counter(store.records[name].kind.name for name in store.visible)
    found = {f"{kind.name}s": kinds[kind.name] for kind in store.spec.kinds}
    return {**found, "archived": len(store) - len(store.visible)}


def counts(store: RecordStore, version: str) -> dict[str, Any]:
    """For people and scripts.

    Args:
        store: the records.
        version: the kind of link that leads to what a record stands for.

    Returns:
        units, visible, archived; visible_ratio (of all records); links by kind; and "recovery" along version
        links and along all: how many archived records are unreachable, the share that is within 0, 1, … links
        of the surface (coverage), and the least number of links within which 95 % are (h95; None: none is).
    """
    by_version, by_all = _recovery(store, (version,)), _recovery(store, store.spec.links)
    return {
        "units": len(store),
        "visible": len(store.visible),
        "archived": by_all.archived,
        "visible_ratio": round(by_all.visible_ratio, 4),
        "links": links(store),
        "recovery": {"version": _figures(by_version), "all": _figures(by_all)},
    }


def _figures(found: Recoverability) -> Mapping[str, Any]:
    return {
        "unreachable": found.unreachable,
        "coverage": [round(share, 4) for share in found.coverage],
        "h95": found.h95,
    }


def additive(store: RecordStore, version: str) -> dict[str, Any]:
    """Counts that add up over libraries.

    Args:
        store, version: as in `counts`.

    Returns:
        visible, archived, unreachable: records; within, near: archived ones within 0, 1, … links of the
        surface, along version links alone and along links of every kind; links: by kind.
    """
    along, near = _recovery(store, (version,)), _recovery(store, store.spec.links)
    return {
        "visible": len(store.visible),
        "archived": along.archived,
        "unreachable": along.unreachable,
        "within": [round(share * along.archived) for share in along.coverage],
        "near": [round(share * near.archived) for share in near.coverage],
        "links": links(store),
    }
