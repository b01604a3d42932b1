"""What changed, and what may: the timeline, a receipt as a diff to read, what awaits review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Literal

from infinimem.model import Receipt, ReceiptRow
from infinimem.operations.provenance import Lineage, recorded, successor
from infinimem.operations.review import CODES, awaiting
from infinimem.operations.undo import dependents_of, undone_by
from infinimem.results import log_json, receipt_json, summary
from infinimem.store.receipts import FORGET, RENAME, named
from infinimem.web.site import Asked, Page, called

LISTED = 20
"""Receipts of a page."""
ROWS = 300
"""Lines of a receipt that are shown."""


@dataclass(frozen=True)
class Change:
    """What a receipt did to a line.

    Args:
        kind: by which it is coloured: "moved", "replaced" (archived, another stands for it), "came",
            "edited", "gone".
        text: how it reads, or read last.
        other: the line that stands for it; of one that was edited, how it read before.
    """

    kind: Literal["moved", "replaced", "came", "edited", "gone"]
    row: ReceiptRow
    text: str
    other: str = ""


def timeline(asked: Asked) -> Page:
    """Receipts by day, the newest first; of one document alone where it is named."""
    about, start = asked.query.get("document", ""), asked.start
    view = asked.reader.view
    every = recorded(view).receipts
    found = [one for one in every[::-1] if not about or about in _documents(one)]
    changed = {doc_id for one in every for doc_id in _documents(one)}
    topics = [(doc_id, called(doc_id, view.row(doc_id).title)) for doc_id in view.ids() if doc_id in changed]
    some = found[start - 1 : start - 1 + LISTED]
    days = [
        (day, [(one, summary(one)) for one in of]) for day, of in groupby(some, lambda one: one.time[:10])
    ]
    shown = {"days": days, "about": about, "start": start, "step": LISTED, "total": len(found)}
    return Page("timeline.html", log_json(some), {**shown, "topics": topics})


def _documents(receipt: Receipt) -> set[str]:
    return {name for name, *_ in receipt.files}


def receipt(asked: Asked) -> Page:
    """What one transaction did, line by line, and whether it can be taken back."""
    view = asked.memory.view
    records = recorded(view)
    one = named(records.receipts, asked.path["name"])
    changes = list(_changes(one, records))
    shown = {
        "receipt": one,
        "summary": summary(one),
        "changes": changes[:ROWS],
        "left_out": len(changes) - ROWS,
        "undo": undoing(asked, one),
    }
    return Page("receipt.html", receipt_json(one) or {}, shown)


def undoing(asked: Asked, one: Receipt) -> Mapping[str, Any]:
    """Whether a receipt can be taken back, from a page of now, and which later ones would go with it."""
    every = recorded(asked.memory.view).receipts
    by = undone_by(every).get(one.number, "")
    can = asked.site.forms and not (asked.moment or by or one.op in (FORGET, RENAME))
    later = [other.id for other in dependents_of(one, every)] if can else []
    return {"number": one.number, "by": by, "can": can, "later": later}


def _changes(one: Receipt, records: Lineage) -> Iterator[Change]:
    """By where the lines went, as a reader would ask; within it as the receipt lists them."""
    for row in sorted(one.rows, key=lambda row: (row.now in ("", "-"), row.now)):
        entry = records.entry(row.seq)
        text = entry.text if entry else ""
        old = next((s.old.text for s in records.steps(row.seq) if s.receipt is one and s.old), "")
        if heir := successor(row.why):
            by = records.entry(heir[1])
            yield Change("replaced", row, text, by.text if by else "")
        elif row.now in ("", "-"):
            yield Change("gone", row, old or text)
        elif row.was in ("", "-"):
            yield Change("came", row, text)
        elif old and old != text:
            yield Change("edited", row, text, old)
        else:
            yield Change("moved", row, text)


def review(asked: Asked) -> Page:
    """What awaits a person's word. To look drops nothing; the command tells what is void once."""
    rows = awaiting(asked.memory.library)
    return Page("review.html", {"rows": [asdict(row) for row in rows]}, {"codes": CODES})
