"""A library with nothing in it but what came from some sources, each line where it was.

What people wrote unsigned counts as "human", what a model wrote in memories/ as "AI". Headers and headings of
the program's documents may tell of any line, so they go where a line does; so do receipts, and documents of
which nothing is left. A record stays where it is known to come from what stays alone.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from infinimem.markdown.document import Document
from infinimem.model import Source
from infinimem.spec import ledger_folders, record_folders
from infinimem.store.records import stem, turns_behind
from infinimem.store.spec import MEMORIES
from infinimem.store.view import View


def unsigned_source(view: View, doc_id: str) -> Source:
    """Whose words a document's unsigned lines are."""
    return "AI" if view.initialised and doc_id.startswith(MEMORIES) else "human"


def only(view: View, sources: Collection[str]) -> View:
    """The same library with nothing in it but what came from these sources."""
    return view.showing(_left(view, frozenset(sources)))


def _left(view: View, kept: frozenset[str]) -> dict[str, Document]:
    """The documents that are left, by id."""
    telling = ("journal/", *ledger_folders())  # may tell of any line: receipts, what is kept beside records
    left: dict[str, Document] = {}
    records: dict[str, Document] = {}
    for doc_id in view.ids("all"):
        is_note = view.is_note(doc_id)
        if not is_note and doc_id.startswith(record_folders()):
            records[doc_id] = view.document(doc_id)
        elif is_note or not doc_id.startswith(telling):
            document = _only(view.document(doc_id), kept, is_note, unsigned_source(view, doc_id))
            if document.body.strip():
                left[doc_id] = document
    by_stem = {stem(doc_id): record for doc_id, record in records.items()}
    for doc_id, record in records.items():
        with suppress(KeyError):  # it names a record that is not there
            places = [view.entry(seq) for seq in turns_behind(record, by_stem.__getitem__)]
            if places and all(place is not None and place.entry.source in kept for place in places):
                left[doc_id] = record
    return left


def _only(document: Document, sources: frozenset[str], is_note: bool, unsigned: Source) -> Document:
    signed = {
        number: place.entry.source
        for place in document.entries
        for number in range(place.start_line, place.end_line + 1)
    }
    titles = {heading.line for heading in document.headings}
    body = range(document.header.end + 1, len(document.lines) + 1)
    gone = {
        number
        for number in body
        if (is_note or number not in titles) and signed.get(number, unsigned) not in sources
    }
    if any(document.text_line(number).strip() for number in gone):
        gone.update(range(1, document.header.end + 1))
        gone.update(() if is_note else titles)
        left = document.blanked(gone)
        return left.blanked({1}) if left.header.end else left  # a rule above that would open a header now
    return document
