"""Topics without bounds, and lines that are there twice: what consolidation should have settled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from infinimem import tokens
from infinimem.grounding.duplicates import find_duplicates
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Finding
from infinimem.operations.doctor.inspection import Shelf
from infinimem.operations.doctor.lines import Line, live
from infinimem.store.spec import TOPICS

FAR_OVER = 2
"""A document this many times longer than `markdown_length` was not split, though it should have been."""
HEADING_LINES = 100
"""Entries under one heading; a block of more says nothing by its title."""
PILE = 30
"""Lines of a document that is a pile, not a topic."""
PILES = frozenset(("inbox", "notes", "misc", "other", "topic", "general"))
"""Names and headings of what has no subject."""


def unbounded(shelf: Shelf) -> Iterator[Finding]:
    """Documents far over their length, headings with hundreds of entries, piles that only grow."""
    limit = shelf.view.settings.infini.markdown_length
    for document in shelf.own(TOPICS):
        size = tokens.estimate(document.body)
        if size > FAR_OVER * limit:
            what = f"about {size} tokens; a topic should have {limit} at most (markdown_length)"
            advice = "infinimem consolidate splits it; where a person's prose stands in it, split it by hand"
            yield Finding("note", what, document.id, advice)
        under = Counter(place.headings[-1] if place.headings else "" for place in document.entries)
        for title, count in sorted(under.items()):
            if count > HEADING_LINES:
                where = next(p for p in document.entries if (p.headings[-1:] or ("",))[0] == title)
                advice = "give parts of it headings of their own, lines may be carried by hand"
                what = f"{count} entries under one heading"
                yield Finding("note", what, f"{document.id}:{where.start_line}", advice)
        if _is_pile(document):
            what = f"a pile of {len(document.entries)} lines without a subject, which only grows"
            advice = "carry its lines to topics, or make topics of them; they keep their seqs"
            yield Finding("note", what, document.id, advice)


def _is_pile(document: Document) -> bool:
    """Whether nothing ever left a document that has no subject."""
    if len(document.entries) <= PILE or document.id.rsplit("/", 1)[-1].casefold() not in PILES:
        return False
    log = document.header.values.get("update_log", [])
    return all(row.get("archived", "0") == "0" for row in log if isinstance(row, dict))


def repeated(shelf: Shelf) -> Iterator[Finding]:
    """Lines of topics that say what another one says; by the rule that consolidation goes by."""
    lines: dict[str, Line] = {}
    if shelf.view.spec.has_entries:
        lines = {str(line.seq): line for line in live(shelf) if line.place.doc_id != CURRENT}
    facts = [
        {
            "id": seq,
            "text": line.place.text,
            "time": line.place.entry.time,
            "source": line.place.entry.source,
            "speaker": line.place.entry.fields.get("speaker"),
        }
        for seq, line in lines.items()
    ]
    for pair in find_duplicates(facts):
        line, kept = lines[pair["discarded"]], lines[pair["kept"]]
        what = f"line {line.seq} says what {kept.seq} ({kept.where}) says"
        yield Finding("note", what, line.where, "move one of them to archive/, or delete it")
