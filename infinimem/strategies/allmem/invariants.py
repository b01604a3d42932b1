"""What must hold of a bank at all times, in one place; and how much of its archive can be reached.

Source: All-Mem, Eq. 3 and B.7 (no orphan), Eq. 12 (caps), B.1 (temporal links lead back in time), section 4.4
(recoverability, visible ratio).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infinimem.model import Finding
from infinimem.strategies.allmem.record_store import RecordStore
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.unit import (
    ANEW,
    KINDS,
    SEMANTIC,
    SIBLING,
    TEMPORAL,
    UNITS,
    VERSION,
    Unit,
    fits,
)
from infinimem.strategies.graph.walk import Recoverability, distances, recoverability


@dataclass(frozen=True)
class Caps:
    """Most out-links of each kind; None for any number (Eq. 12)."""

    semantic: int | None
    sibling: int | None
    temporal: int | None
    version: int | None
    raise_version: bool

    @classmethod
    def of(cls, settings: AllmemSettings) -> Caps:
        return cls(
            settings.degree_semantic,
            settings.degree_sibling,
            settings.degree_temporal,
            settings.degree_version or None,
            settings.raise_version_cap,
        )

    def of_kind(self, kind: str) -> int | None:
        """The cap of a kind that is always held; version links give way to no orphan."""
        return {SEMANTIC: self.semantic, SIBLING: self.sibling, TEMPORAL: self.temporal}.get(kind)


def faults(bank: RecordStore, caps: Caps, only: Collection[str] | None = None) -> list[Finding]:
    """What does not hold.

    Args:
        bank: all units.
        caps: most links of a kind.
        only: units to look at, of which those that are not here are passed over; None for all, and for files
            that hold no unit. Orphans are looked for wherever one of these may have made some.
    """
    found = list(bank.findings) if only is None else []
    names = sorted(bank.units if only is None else (name for name in only if name in bank))
    for name in names:
        unit = bank.units[name]
        found += [Finding("error", what, unit.doc_id) for what in _unit_faults(bank, unit, caps)]
    if any(name not in bank.visible or bank.graph.out(name, VERSION) for name in names):
        near = distances(sorted(bank.visible), bank.graph, (VERSION,))
        lost = f"no unit of the surface leads here by version links; move it to {UNITS}"
        found += [
            Finding("error", lost, bank.units[name].doc_id)
            for name in sorted(bank.units.keys() - near.keys())
        ]
    return found


def new_faults(
    before: RecordStore, after: RecordStore, caps: Caps, changed: Collection[str]
) -> list[Finding]:
    """What held before an edit of these units and does not after it."""
    found = faults(after, caps, changed)
    old = {(one.what, one.where.rsplit("/", 1)[-1]) for one in (faults(before, caps) if found else ())}
    return [one for one in found if (one.what, one.where.rsplit("/", 1)[-1]) not in old]


def _unit_faults(bank: RecordStore, unit: Unit, caps: Caps) -> Iterator[str]:
    for ref in unit.refs:
        place = bank.turn(ref.seq)
        if place is None:
            yield f"turn {ref.seq} is not in the evidence; bring it back, or {ANEW}"
        elif ref.span and ref.span[1] > len(place.entry.text):
            yield f"turn {ref.seq} is shorter than the span {ref.span[0]}-{ref.span[1]}; {ANEW}"
    for source in unit.sources:
        if source not in bank:
            yield f"its source {source} is not here; bring it back, or {ANEW}"
    for link in bank.lost.get(unit.id, ()):
        yield f"a {link.kind} link leads to {link.to}, which is not here; bring it back, or take the line out"
    for older in bank.graph.out(unit.id, TEMPORAL):
        if not bank.units[older].age < unit.age:
            yield f"a temporal link leads to {older}, which is not older"
    for kind in KINDS:
        cap, count = caps.of_kind(kind), len(bank.graph.out(unit.id, kind))
        if cap is not None and count > cap:
            yield f"{count} {kind} links are more than {cap}"
    if not fits(unit, bank.links(unit.id)):
        yield "its header is longer than what is read"


# ── what can be reached ─────────────────────────────────────────────────────────────────────────


def recovery(bank: RecordStore, kinds: Collection[str]) -> Recoverability:
    """How the archive is reached along outgoing links of these kinds."""
    return recoverability(bank.graph, bank.visible, bank.units.keys() - bank.visible, kinds)


def counts(bank: RecordStore) -> dict[str, Any]:
    """A bank in figures, for people and scripts.

    Returns:
        units, visible, archived; visible_ratio (of all units); links by kind; and "recovery" along version
        links and along all: how many archived units are unreachable, the share that is within 0, 1, … links
        of the surface (coverage), and the least number of links within which 95 % are (h95; None: none is).
    """
    kinds = Counter(link.kind for name in bank.units for link in bank.graph.links(name))
    by_version, by_all = recovery(bank, (VERSION,)), recovery(bank, KINDS)
    return {
        "units": len(bank),
        "visible": len(bank.visible),
        "archived": by_all.archived,
        "visible_ratio": round(by_all.visible_ratio, 4),
        "links": {kind: kinds[kind] for kind in KINDS},
        "recovery": {"version": _figures(by_version), "all": _figures(by_all)},
    }


def _figures(found: Recoverability) -> Mapping[str, Any]:
    return {
        "unreachable": found.unreachable,
        "coverage": [round(share, 4) for share in found.coverage],
        "h95": found.h95,
    }
