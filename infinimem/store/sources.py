"""A library with nothing in it but what came from some sources or one project, each line where it was.

What people wrote unsigned counts as "human", what a model wrote in memories/ as "AI"; neither is of a
project. Headers, headings and receipts may tell of any line, so they go where a line does. A record stays if
it is known to come from what stays alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from contextlib import suppress
from pathlib import PurePath

from infinimem.markdown.document import Document
from infinimem.model import Entry, Source
from infinimem.spec import folders
from infinimem.store.records import stem, turns_behind
from infinimem.store.spec import JOURNAL, MEMORIES
from infinimem.store.view import View

Keeps = Callable[[Entry], bool]
"""Whether a signed line stays."""


def unsigned_source(view: View, doc_id: str) -> Source:
    """Return whose words a document's unsigned lines are."""
    return "AI" if view.initialised and doc_id.startswith(MEMORIES) else "human"


def only(view: View, sources: Collection[str]) -> View:
    """Return the same library with nothing in it but what came from these sources."""
    return _showing(view, lambda entry: entry.source in sources, sources)


def only_project(view: View, project: str) -> View:
    """Return the same library with nothing in it but what was said in a project (`is_in`)."""
    return _showing(view, lambda entry: any(is_in(folder, project) for folder in folders_of(view, entry)))


def folders_of(view: View, entry: Entry) -> Set[str]:
    if "cwd" in entry.fields:
        return {entry.fields["cwd"]}
    places = (view.entry(seq) for seq in entry.origin)
    return {place.entry.fields["cwd"] for place in places if place and "cwd" in place.entry.fields}


def is_in(folder: str, project: str) -> bool:
    """Return whether a folder is a project's, or below it: a project is a path, or a folder's name."""
    path = PurePath(folder)
    if PurePath(project).is_absolute():
        return path.is_relative_to(project)
    return project.casefold() in (part.casefold() for part in path.parts)


def _showing(view: View, keeps: Keeps, unsigned: Collection[str] = ()) -> View:
    """Return the library with the lines that stay, and unsigned ones of these sources."""
    telling = (JOURNAL, *folders().ledgers)  # may tell of any line: receipts, what is kept beside records
    left: dict[str, Document] = {}
    records: dict[str, Document] = {}
    for doc_id in view.ids("all"):
        stays = unsigned_source(view, doc_id) in unsigned
        if view.is_note(doc_id):
            left |= {doc_id: view.document(doc_id)} if stays else {}
        elif doc_id.startswith(folders().records):
            records[doc_id] = view.document(doc_id)
        elif not doc_id.startswith(telling):
            document = _only(view.document(doc_id), keeps, stays)
            left |= {doc_id: document} if document.body.strip() else {}
    by_stem = {stem(doc_id): record for doc_id, record in records.items()}
    for doc_id, record in records.items():
        with suppress(KeyError):  # it names a record that is not there
            places = [view.entry(seq) for seq in turns_behind(record, by_stem.__getitem__)]
            if places and all(place is not None and keeps(place.entry) for place in places):
                left[doc_id] = record
    return view.showing(left)


def _only(document: Document, keeps: Keeps, unsigned: bool) -> Document:
    signed = {
        number: keeps(place.entry)
        for place in document.entries
        for number in range(place.start_line, place.end_line + 1)
    }
    titles = {heading.line for heading in document.headings}
    body = range(document.header.end + 1, len(document.lines) + 1)
    gone = {number for number in body if number not in titles and not signed.get(number, unsigned)}
    if any(document.text_line(number).strip() for number in gone):
        gone.update(range(1, document.header.end + 1), titles)
        left = document.blanked(gone)
        return left.blanked({1}) if left.header.end else left  # a rule above that would open a header now
    return document
