"""What a library holds, in numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from infinimem.model import CURRENT
from infinimem.operations.git.commits import uncommitted
from infinimem.operations.provenance import recorded
from infinimem.operations.stale_dependents import stale_dependents
from infinimem.store.library import Library
from infinimem.store.view import View


def counts(library: Library) -> dict[str, Any]:
    """Counts for people and scripts, of everything that is not one strategy's own."""
    view = library.view()
    git = uncommitted(library.files, view) if library.settings.git and library.initialised else None
    return {
        "library": str(library.root),
        **view.derived(_of_lines),
        "unanswered": dict(Counter(one.kind for one in view.unanswered().values())),
        "lines_awaiting_review": len(library.proposals()),
        "git": {"waiting": len(git.receipts), "why": git.why} if git else None,
    }


def _of_lines(view: View, _: object, __: object) -> dict[str, Any]:
    """What a snapshot's documents come to."""
    receipts = recorded(view).receipts
    last = receipts[-1] if receipts else None
    return {
        "initialised": view.initialised,
        "documents": sum(doc_id != CURRENT for doc_id in view.ids()),
        "entries": sum(1 for _ in view.entries()),
        "archived": sum(1 for _ in view.entries("archive")),
        "evidence": sum(1 for _ in view.entries("evidence")),
        "pending": len(view.uncited()),
        "last_receipt": {"id": last.id, "time": last.time, "op": last.op} if last else None,
        "receipts": len(receipts),
        "based_on_superseded": len(stale_dependents(view)),
    }
