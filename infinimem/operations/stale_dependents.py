"""What leans on a fact that another has superseded: entries and summaries, for a person to look at. Pure.

An entry leans on a line that it was drawn from, a summary on the lines that `aux.from` says it describes.
Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infinimem.model import Finding, Located, Receipt
from infinimem.operations.provenance import Records
from infinimem.operations.receipt_index import Trail, successor
from infinimem.store.render import described
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.state.last_seen import live, tracked
from infinimem.store.view import View


@dataclass(frozen=True)
class Leaning:
    """A live entry (`seq`), or a summary (None), that leans on line `on`, which line `by` superseded."""

    where: str
    seq: int | None
    on: int
    by: int

    def finding(self) -> Finding:
        what = f"the summary describes line {self.on}" if self.seq is None else f"leans on line {self.on}"
        return Finding("note", f"{what}, which line {self.by} superseded", self.where)


def leaning(view: View, receipts: Sequence[Receipt]) -> tuple[Leaning, ...]:
    """Everything live that leans on a superseded line, by place.

    Args:
        view: the library.
        receipts: its receipts; what they do not tell, the archive's headings do.
    """
    records = Records(view, Trail(receipts))
    superseded = _superseded(records)
    if not superseded:
        return ()
    places = [place for doc_id in live(view) for place in view.document(doc_id).entries]
    found = [*_by_origin(records, superseded, places), *_summaries(view, superseded)]
    return tuple(sorted(found, key=lambda one: (one.where.rpartition(":")[0], one.seq or 0, one.on)))


def _superseded(records: Records) -> dict[int, Located]:
    """Archived lines that a later one superseded, with that one, if it stands somewhere."""
    found: dict[int, Located] = {}
    view = records.view
    archived = (doc_id for doc_id in tracked(view) if doc_id.startswith(ARCHIVE))
    for place in (place for doc_id in archived for place in view.document(doc_id).entries):
        steps = records.trail.of(place.seq)
        told = records.replaced(place) or (successor(steps[-1].row.why) if steps else None)
        if told and told[0] == "superseded by" and (by := view.entry(told[1])):
            found[place.seq] = by
    return found


def _by_origin(
    records: Records, superseded: Mapping[int, Located], places: Sequence[Located]
) -> Iterator[Leaning]:
    for place in places:
        for seq in records.ancestors(place.entry):
            if seq in superseded and superseded[seq].seq != place.seq:
                yield Leaning(_at(place), place.seq, seq, superseded[seq].seq)


def _summaries(view: View, superseded: Mapping[int, Located]) -> Iterator[Leaning]:
    for doc_id in live(view):
        if not doc_id.startswith(TOPICS):
            continue
        for seq in sorted(superseded.keys() & set(described(view.document(doc_id)))):
            yield Leaning(doc_id, None, seq, superseded[seq].seq)


def _at(place: Located) -> str:
    return f"{place.doc_id}:{place.start_line}"
