"""Live text made from a line that another has superseded since: for a person to look at. Pure.

An entry depends on the lines that it was drawn from, a summary on those that `aux.from` names.
"""

from __future__ import annotations

from dataclasses import dataclass

from infinimem.model import Finding
from infinimem.operations.provenance import Records, at, recorded, successor
from infinimem.store.render import described
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.state.last_seen import live, tracked
from infinimem.store.view import View


@dataclass(frozen=True)
class StaleDependent:
    """A live entry (`seq`), or a summary (None), that depends on line `on`, which line `by` superseded."""

    where: str
    seq: int | None
    on: int
    by: int

    def finding(self) -> Finding:
        what = "the summary describes" if self.seq is None else "was drawn from"
        return Finding("note", f"{what} line {self.on}, which line {self.by} superseded", self.where)


def stale_dependents(view: View) -> tuple[StaleDependent, ...]:
    """Everything live that depends on a superseded line, by place.

    What no receipt tells of a line, the archive's headings do.
    """
    records = recorded(view)
    superseded = _superseded(records)
    found: list[StaleDependent] = []
    for doc_id in live(view) if superseded else ():
        document = view.document(doc_id)
        if doc_id.startswith(TOPICS):
            stale = sorted(superseded.keys() & set(described(document)))
            found += (StaleDependent(doc_id, None, seq, superseded[seq]) for seq in stale)
        for place in document.entries:
            for seq in records.ancestors(place.entry):
                if superseded.get(seq, place.seq) != place.seq:
                    found.append(StaleDependent(at(place), place.seq, seq, superseded[seq]))
    return tuple(sorted(found, key=lambda one: (one.where.rpartition(":")[0], one.seq or 0, one.on)))


def _superseded(records: Records) -> dict[int, int]:
    """Archived lines that a later one superseded, with that one, if it stands somewhere."""
    found: dict[int, int] = {}
    view = records.view
    archived = (doc_id for doc_id in tracked(view) if doc_id.startswith(ARCHIVE))
    for place in (place for doc_id in archived for place in view.document(doc_id).entries):
        steps = records.steps(place.seq)
        heir = records.replaced(place) or (successor(steps[-1].row.why) if steps else None)
        if heir and heir[0] == "superseded by" and view.entry(heir[1]):
            found[place.seq] = heir[1]
    return found
