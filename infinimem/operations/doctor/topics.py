"""Topics without bounds, lines that say the same, times of which only some have a zone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import inf

from infinimem import tokens
from infinimem.grounding.claims import find_duplicates
from infinimem.model import CURRENT, Finding, Located
from infinimem.operations.doctor.inspection import Inspection
from infinimem.operations.provenance import at
from infinimem.store.spec import EVIDENCE, TOPICS

FAR_OVER = 2
"""A document this many times longer than `markdown_length` was not split, though it should have been."""
HEADING_LINES = 100
"""Entries under one heading; a section of more says nothing by its title."""

_ZONE = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})\Z")


def unbounded(inspection: Inspection) -> Iterator[Finding]:
    """Documents far over their length, headings with hundreds of entries."""
    view = inspection.view
    limit = getattr(view.settings.of(view.spec.settings or object), "markdown_length", inf)
    for document in inspection.own(TOPICS):
        size = tokens.estimate(document.body)
        if size > FAR_OVER * limit:
            what = f"about {size} tokens; a topic should have {limit} at most (markdown_length)"
            advice = "infinimem consolidate splits it; split a topic that has prose of yours by hand"
            yield Finding("note", what, document.id, advice)
        sections: dict[str, list[Located]] = defaultdict(list)
        for place in document.entries:
            sections[place.headings[-1] if place.headings else ""].append(place)
        for _, places in sorted(sections.items()):
            if len(places) > HEADING_LINES:
                what = f"{len(places)} entries under one heading"
                advice = "add headings and move lines under them; moving lines by hand is safe"
                yield Finding("note", what, at(places[0]), advice)


def repeated(inspection: Inspection) -> Iterator[Finding]:
    """Lines of topics that say what another one says, by the rule that consolidation goes by."""
    if not inspection.view.spec.has_entries:
        return
    lines = {place.seq: place for place in inspection.live if place.doc_id != CURRENT}
    for seq, by in find_duplicates(place.entry for place in lines.values()):
        place, kept = lines[seq], lines[by]
        what = f"line {place.seq} says what {kept.seq} ({at(kept)}) says"
        yield Finding("note", what, at(place), "move one of them to archive/, or delete it")


def mixed_zones(inspection: Inspection) -> Iterator[Finding]:
    """One note a document of entries, and one a session, however many files it has. Dates have no zone."""
    together: dict[str, list[Located]] = defaultdict(list)
    for document in inspection.own(CURRENT, TOPICS, EVIDENCE):
        session = document.header.values.get("session")
        name = f"session {session}" if session else document.id
        together[name] += (place for place in document.entries if "T" in (place.entry.time or ""))
    for _, places in sorted(together.items()):
        has_zone = Counter(bool(_ZONE.search(place.entry.time or "")) for place in places)
        if has_zone[True] and has_zone[False]:
            first = next(place for place in places if not _ZONE.search(place.entry.time or ""))
            what = f"{has_zone[False]} times without a zone beside {has_zone[True]} with one"
            advice = "record turns with zoned times; which of these lines is older is a guess"
            yield Finding("note", what, at(first), advice)
