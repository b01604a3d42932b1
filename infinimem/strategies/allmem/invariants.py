"""What must hold of a bank at all times, in one place.

Source: All-Mem, Eq. 3 and B.7 (no orphan), Eq. 12 (caps), B.1 (temporal links lead back in time).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from infinimem.model import Finding
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.unit import SEMANTIC, SIBLING, TEMPORAL, VERSION
from infinimem.strategies.records import rules
from infinimem.strategies.records.record import Record
from infinimem.strategies.records.record_store import RecordStore


def faults(
    bank: RecordStore, only: Collection[str] | None = None, *, settings: AllmemSettings
) -> list[Finding]:
    """What does not hold (records/rules.py); of orphans, all where one of these may have made some."""

    caps = {
        SEMANTIC: settings.degree_semantic,
        SIBLING: settings.degree_sibling,
        TEMPORAL: settings.degree_temporal,
    }

    def held(bank: RecordStore, unit: Record) -> Iterator[str]:
        for older in bank.graph.out(unit.id, TEMPORAL):
            if not bank.records[older].age < unit.age:
                yield f"a temporal link leads to {older}, which is not older"
        for kind, cap in caps.items():
            if (count := len(bank.graph.out(unit.id, kind))) > cap:
                yield f"{count} {kind} links are more than {cap}"

    all_rules = (rules.evidence_stands, rules.links_stand, held, rules.header_fits)
    return [*rules.faults(bank, all_rules, only), *rules.orphans(bank, VERSION, only)]
