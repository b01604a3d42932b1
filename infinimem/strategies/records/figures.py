"""A store in figures: what is on the surface, and the links."""

from __future__ import annotations

from collections import Counter
from typing import Any

from infinimem.strategies.records.record_store import RecordStore


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


def counts(store: RecordStore) -> dict[str, Any]:
    """Count units, visible and archived ones, and links by kind."""
    visible = len(store.visible)
    return {
        "units": len(store),
        "visible": visible,
        "archived": len(store) - visible,
        "visible_ratio": round(visible / len(store), 4) if len(store) else 1.0,
        "links": links(store),
    }
