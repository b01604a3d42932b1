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
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.unit import KINDS, SEMANTIC, SIBLING, TEMPORAL, UNIT, VERSION
from infinimem.strategies.graph.walk import Recoverability, distances, recoverability
from infinimem.strategies.records import rules
from infinimem.strategies.records.record import Record
from infinimem.strategies.records.record_store import RecordStore


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


def faults(bank: RecordStore, only: Collection[str] | None = None, *, caps: Caps) -> list[Finding]:
    """What does not hold (records/rules.py); of orphans, all where one of these may have made some."""

    def held(bank: RecordStore, unit: Record) -> Iterator[str]:
        for older in bank.graph.out(unit.id, TEMPORAL):
            if not bank.records[older].age < unit.age:
                yield f"a temporal link leads to {older}, which is not older"
        for kind in KINDS:
            cap, count = caps.of_kind(kind), len(bank.graph.out(unit.id, kind))
            if cap is not None and count > cap:
                yield f"{count} {kind} links are more than {cap}"

    all_rules = (rules.evidence_stands, rules.links_stand, held, rules.header_fits)
    return [*rules.faults(bank, all_rules, only), *_orphans(bank, only)]


def _orphans(bank: RecordStore, only: Collection[str] | None) -> Iterator[Finding]:
    names = bank.records if only is None else (name for name in only if name in bank)
    if any(name not in bank.visible or bank.graph.out(name, VERSION) for name in names):
        near = distances(sorted(bank.visible), bank.graph, (VERSION,))
        lost = f"no unit of the surface leads here by version links; move it to {UNIT.folder}"
        for name in sorted(bank.records.keys() - near.keys()):
            yield Finding("error", lost, bank.records[name].doc_id)


# ── what can be reached ─────────────────────────────────────────────────────────────────────────


def recovery(bank: RecordStore, kinds: Collection[str]) -> Recoverability:
    """How the archive is reached along outgoing links of these kinds."""
    return recoverability(bank.graph, bank.visible, bank.records.keys() - bank.visible, kinds)


def counts(bank: RecordStore) -> dict[str, Any]:
    """A bank in figures, for people and scripts.

    Returns:
        units, visible, archived; visible_ratio (of all units); links by kind; and "recovery" along version
        links and along all: how many archived units are unreachable, the share that is within 0, 1, … links
        of the surface (coverage), and the least number of links within which 95 % are (h95; None: none is).
    """
    kinds = Counter(link.kind for name in bank.records for link in bank.graph.links(name))
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
