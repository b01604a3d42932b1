"""The records of a library without what is forgotten, and their ledgers and audits. Pure.

What came from a forgotten turn, was described with the help of such a record, or holds its words goes whole,
and with it all other records of its turns, and archived ones that only it led to: they are derived, and those
of turns that stay are made anew. What is left loses its links to them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from infinimem.markdown.document import Document
from infinimem.spec import archive_folders, ledger_folders, record_folders, record_name, strategies
from infinimem.store.records import evidence_of, held_by, link_to, sources_of, stem, versions_of
from infinimem.store.view import View


@dataclass(frozen=True)
class Records:
    """What becomes of the records.

    Args:
        changed: documents as they are to be, None for those that go.
        gone: names of the records that go ("u-000212").
        audits: ids of the books that go.
    """

    changed: Mapping[str, Document | None]
    gone: frozenset[str]
    audits: tuple[str, ...]

    @property
    def deleted(self) -> tuple[str, ...]:
        """Ids of all documents that are no more."""
        return tuple(doc_id for doc_id, new in self.changed.items() if new is None)

    def concerns(self, doc_id: str) -> bool:
        """Whether a document is, or was, one of those that go."""
        return doc_id in self.audits or (doc_id.startswith(record_folders()) and stem(doc_id) in self.gone)


def without_records(view: View, seqs: Collection[int], doomed: Callable[[Document], bool]) -> Records:
    """The records without those of forgotten turns.

    Args:
        view: the library.
        seqs: the turns.
        doomed: whether a record goes in any case.
    """
    owned = (doc_id for doc_id in view.ids("all") if doc_id.startswith(ledger_folders()))
    books = {doc_id: view.document(doc_id) for doc_id in owned if not view.is_note(doc_id)}
    records = {doc_id: document for doc_id, document in books.items() if doc_id.startswith(record_folders())}
    going = _going(records, seqs, doomed)
    names = frozenset(map(stem, going))
    changed: dict[str, Document | None] = dict.fromkeys(sorted(going))
    audits = []
    ledgers = {doc_id for spec in strategies().values() for doc_id in spec.ledgers}
    for doc_id, document in books.items():
        if doc_id in records or doc_id in ledgers:
            new = _without_pointers(document, names) if doc_id in ledgers else _unlinked(document, names)
            if doc_id not in going and new.lines != document.lines:
                changed[doc_id] = new
        elif doomed(document) or any(names.intersection(_called(line)) for line in document.lines):
            changed[doc_id] = None
            audits.append(doc_id)
    return Records(changed, names, tuple(audits))


def _going(
    records: Mapping[str, Document], seqs: Collection[int], doomed: Callable[[Document], bool]
) -> set[str]:
    """Ids of the records that go."""
    turns, found, names = set(seqs), set[str](), set[str]()
    held = {doc_id: set(held_by(document)) for doc_id, document in records.items()}
    older = {doc_id: set(versions_of(document)) for doc_id, document in records.items()}
    made_with = {doc_id: older[doc_id].union(sources_of(document)) for doc_id, document in records.items()}
    fresh = [doc_id for doc_id, document in records.items() if held[doc_id] & turns or doomed(document)]
    while fresh:
        found.update(fresh)
        names.update(map(stem, fresh))
        # Of a turn that stays, no record stays: else it would count as held, and never be drawn from again.
        turns.update(*(evidence_of(records[doc_id]) for doc_id in fresh))
        left = [doc_id for doc_id in records if doc_id not in found]
        fresh = [one for one in left if stem(one) in names or held[one] & turns or made_with[one] & names]
        if not fresh:
            orphans = (
                set[str]().union(*(older[one] for one in found)).difference(*(older[one] for one in left))
            )
            fresh = [one for one in left if one.startswith(archive_folders()) and stem(one) in orphans]
    return found


def _unlinked(document: Document, names: Collection[str]) -> Document:
    """Without the links to these records."""
    head = list(document.lines[: document.header.end])
    kept = [line for line in head if link_to(line) not in names]
    at = next((n for n, line in enumerate(kept) if line.rstrip() == "links:"), -1)
    if kept != head and at >= 0 and link_to(kept[at + 1]) is None:  # an empty list reads as no value
        del kept[at]
    return replace(document, lines=(*kept, *document.lines[document.header.end :]))


def _without_pointers(document: Document, names: Collection[str]) -> Document:
    """A ledger without these records."""
    lines = (_pointing(line, names) for line in document.lines)
    return replace(document, lines=tuple(line for line in lines if line is not None))


def _pointing(line: str, names: Collection[str]) -> str | None:
    """A line of a ledger, with lists that lack these records; None where it is of one of them."""
    if not any(name in names for name in _called(line)):
        return line
    try:
        row = {
            key: [item for item in value if item not in names] if isinstance(value, list) else value
            for key, value in json.loads(line).items()
        }
        gone = any(isinstance(value, str) and value in names for value in row.values())
        return None if gone else json.dumps(row, ensure_ascii=False)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _called(line: str) -> list[str]:
    """The names of records in it."""
    return [found[0] for found in re.finditer(rf"\b{record_name()}\b", line)]
