"""What a library holds, in numbers; and what of it was made from lines that others have superseded since."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from infinimem.model import CURRENT
from infinimem.operations.git import uncommitted
from infinimem.operations.provenance import at, recorded, successor
from infinimem.store.external_edits import live, tracked
from infinimem.store.library import Library
from infinimem.store.render import described
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.view import View


def counts(library: Library) -> dict[str, Any]:
    """Count everything that is not one strategy's own, for people and scripts."""
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


@dataclass(frozen=True)
class StaleDependent:
    """A live entry (`seq`), or a summary (None), that depends on line `on`, which line `by` superseded."""

    where: str
    seq: int | None
    on: int
    by: int


def stale_dependents(view: View) -> tuple[StaleDependent, ...]:
    """Return everything live that depends on a superseded line, by place, for a person to look at.

    An entry depends on the lines that it was drawn from, a summary on those that `aux.from` names. What no
    receipt tells of a line, the archive's headings do.
    """
    records = recorded(view)
    superseded: dict[int, int] = {}
    archived = (doc_id for doc_id in tracked(view) if doc_id.startswith(ARCHIVE))
    for place in (place for doc_id in archived for place in view.document(doc_id).entries):
        steps = records.steps(place.seq)
        heir = records.replaced(place) or (successor(steps[-1].row.why) if steps else None)
        if heir and heir[0] == "superseded by" and view.entry(heir[1]):
            superseded[place.seq] = heir[1]
    stale: list[StaleDependent] = []
    for doc_id in live(view) if superseded else ():
        document = view.document(doc_id)
        if doc_id.startswith(TOPICS):
            seqs = sorted(superseded.keys() & set(described(document)))
            stale += (StaleDependent(doc_id, None, seq, superseded[seq]) for seq in seqs)
        for place in document.entries:
            for seq in records.ancestors(place.entry):
                if superseded.get(seq, place.seq) != place.seq:
                    stale.append(StaleDependent(at(place), place.seq, seq, superseded[seq]))
    return tuple(sorted(stale, key=lambda one: (one.where.rpartition(":")[0], one.seq or 0, one.on)))
