"""The shape of a bank of units as counts, which add up over libraries, for `infinimem bench`.

Source: All-Mem (arXiv 2603.19595), section 4.5 (recoverability), Appendix C.5 (drops).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from infinimem.store.view import View
from infinimem.strategies.allmem.audit import AUDIT
from infinimem.strategies.allmem.invariants import recovery
from infinimem.strategies.allmem.unit import KINDS, VERSION
from infinimem.strategies.records.ledger import rows_of
from infinimem.strategies.records.record_store import RecordStore


def shape(view: View) -> dict[str, Any]:
    """Counts of a library's units, links and consolidations.

    Returns:
        visible, archived, unreachable: units; within, near: archived units within 0, 1, … links of the
        surface, along version links alone and along links of every kind; links: by kind; proposed,
        accepted, applied: proposals by operator; declined; dropped: by reason code; runs: consolidations.
    """
    bank = RecordStore.load(view)
    along, near = recovery(bank, (VERSION,)), recovery(bank, KINDS)
    counts = {name: Counter[str]() for name in ("proposed", "accepted", "applied", "dropped")}
    declined = runs = 0
    for doc_id in view.ids("all"):
        if doc_id.startswith(AUDIT):
            metrics = next((row for row in rows_of(view.document(doc_id)) if row["row"] == "metrics"), {})
            runs += 1
            declined += metrics.get("declined", 0)
            for name, counted in counts.items():
                counted.update(metrics.get(name, {}))
    return {
        "visible": len(bank.visible),
        "archived": along.archived,
        "unreachable": along.unreachable,
        "within": [round(share * along.archived) for share in along.coverage],
        "near": [round(share * near.archived) for share in near.coverage],
        "links": {kind: sum(len(bank.graph.out(name, kind)) for name in bank.records) for kind in KINDS},
        **{name: dict(sorted(counted.items())) for name, counted in counts.items()},
        "declined": declined,
        "runs": runs,
    }
