"""The shape of a bank of units as counts, which add up over libraries, for `infinimem bench`.

Source: All-Mem (arXiv 2603.19595), section 4.5 (recoverability), Appendix C.5 (drops).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from infinimem.store.view import View
from infinimem.strategies.allmem.audit import AUDIT
from infinimem.strategies.allmem.unit import VERSION
from infinimem.strategies.records.figures import additive
from infinimem.strategies.records.ledger import rows_of
from infinimem.strategies.records.record_store import RecordStore


def shape(view: View) -> dict[str, Any]:
    """Counts of a library's units and links (records/figures.py), and of its consolidations.

    Returns:
        Also proposed, accepted, applied: proposals by operator; declined; dropped: by reason code; runs:
        consolidations.
    """
    counts = {name: Counter[str]() for name in ("proposed", "accepted", "applied", "dropped")}
    declined = runs = 0
    for doc_id in view.below(AUDIT.rpartition("/")[0] + "/"):
        metrics = next((row for row in rows_of(view.document(doc_id)) if row["row"] == "metrics"), {})
        runs += 1
        declined += metrics.get("declined", 0)
        for name, counted in counts.items():
            counted.update(metrics.get(name, {}))
    found = {name: dict(sorted(counted.items())) for name, counted in counts.items()}
    return {**additive(RecordStore.load(view), VERSION), **found, "declined": declined, "runs": runs}
