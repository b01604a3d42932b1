"""What must hold of a bank at all times, in one place.

Source: All-Mem, Eq. 3 and B.7 (no orphan), Eq. 12 (caps), B.1 (temporal links lead back in time).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from infinimem.model import Finding
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.unit import KINDS, SEMANTIC, SIBLING, TEMPORAL, VERSION
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
    return [*rules.faults(bank, all_rules, only), *rules.orphans(bank, VERSION, only)]
