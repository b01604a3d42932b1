"""The lines that a library holds to be so now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infinimem.grounding.sentences import Said
from infinimem.model import CURRENT, Located
from infinimem.operations.doctor.inspection import Shelf
from infinimem.store.records import evidence_of
from infinimem.store.spec import TOPICS


@dataclass(frozen=True)
class Line:
    """A live line, and who says it (the speaker, else the kind of source)."""

    place: Located

    @property
    def seq(self) -> int:
        return self.place.seq

    @property
    def said(self) -> Said:
        """As the offline rules read it."""
        entry = self.place.entry
        return Said(entry.fields.get("speaker", entry.source), entry.text)

    @property
    def where(self) -> str:
        return f"{self.place.doc_id}:{self.place.start_line}"


def live(shelf: Shelf) -> Iterator[Line]:
    """Entries of topics and CURRENT, or the turns behind the units on the surface; each once."""
    view = shelf.view
    if view.spec.has_entries:
        seen = set()
        for document in shelf.own(CURRENT, TOPICS):
            for place in document.entries:
                if place.seq not in seen:
                    seen.add(place.seq)
                    yield Line(place)
        return
    seqs = {seq for document in shelf.own(view.spec.live) for seq in evidence_of(document)}
    for seq in sorted(seqs):
        if (found := view.entry(seq)) is not None:
            yield Line(found)
