"""What a library holds, in numbers; and what of it was made from lines that others have superseded since."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from infinimem.model import CURRENT
from infinimem.operations.git import uncommitted
from infinimem.operations.provenance import at, recorded
from infinimem.spec import folders
from infinimem.store.library import Library
from infinimem.store.spec import ARCHIVE, JOURNAL
from infinimem.store.view import Scope, View


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
    last = next(iter(recorded(view).latest(1)), None)
    return {
        "initialised": view.initialised,
        "documents": sum(doc_id != CURRENT for doc_id in view.ids()),
        "entries": _count(view, "default"),
        "archived": _count(view, "archive"),
        "evidence": _count(view, "evidence"),
        "pending": len(view.uncited()),
        "last_receipt": {"id": last.id, "time": last.time, "op": last.op} if last else None,
        "receipts": len(view.below(JOURNAL)) if view.initialised else 0,
        "based_on_superseded": len(stale_dependents(view)),
    }


def _count(view: View, scope: Scope) -> int:
    """Count the signed lines of a scope; only people's notes are read for it."""
    known = dict(view.lines.all("select name, entries from document where rank is not null"))
    ids = (one for one in view.ids(scope) if view.is_note(one) or not one.startswith(folders().ledgers))
    return sum(known[one] if one in known else len(view.document(one).entries) for one in ids)


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
    superseded = records.stale()
    stale = [
        StaleDependent(doc_id, None, seq, superseded[seq])
        for seq in superseded
        for doc_id in records.describing(seq)
    ]
    stale += (
        StaleDependent(at(place), place.seq, seq, superseded[seq])
        for place in records.dependents(superseded)
        if not place.doc_id.startswith(ARCHIVE)
        for seq in records.ancestors(place.entry)
        if superseded.get(seq, place.seq) != place.seq
    )
    return tuple(sorted(stale, key=lambda one: (one.where.rpartition(":")[0], one.seq or 0, one.on)))
