"""A plan held against the library as it is under the lock. Pure."""

from __future__ import annotations

from dataclasses import replace

from infinimem import law
from infinimem.markdown.signature import format_seqs
from infinimem.model import Located, Plan, Reason
from infinimem.store.render import Rendered
from infinimem.store.view import View


def current(plan: Plan, base: View | None, now: View) -> Plan:
    """The plan without what it says of lines that left their place since it was made: theirs stands."""
    if base is None:
        return plan

    def stays(seq: int) -> bool:
        was, place = base.entry(seq), now.entry(seq)
        return was is None or (place is not None and place.doc_id == was.doc_id)

    left = sorted({move.seq for move in plan.moves if not stays(move.seq)})
    if not left:
        return plan
    note = f"left out, moved or deleted meanwhile: {format_seqs(left)}"
    moves = tuple(move for move in plan.moves if move.seq not in left)
    return replace(plan, moves=moves, notes=(*plan.notes, note))


def broken(view: View, done: Rendered) -> list[Reason]:
    """The law over the documents that change."""
    before = [_line(place) for doc in done.documents if doc in view for place in view.document(doc).entries]
    after = [_line(place) for doc in done.documents.values() if doc for place in doc.entries]
    return law.conserved(before, after, done.added, done.removed)


def _line(place: Located) -> law.Line:
    return place.entry.seq, place.entry.line
