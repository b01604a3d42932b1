"""The records of a library without what is forgotten: units, the buffer of pointers, audits. Pure.

What came from a forgotten turn, was described with the help of such a record, or tells of one goes whole, and
with it all other records of its turns: they are derived, and those of turns that stay are made anew. What is
left loses its links to them; an archived record that no other leads to any more is back on the surface.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.store.records import evidence_of, held_by, link_to, links_of, sources_of, stem
from infinimem.store.spec import ARCHIVES, LEDGERS, RECORDS, STRATEGIES
from infinimem.store.view import View

VERSION = "version"
"""The kind of link that leads to what a record stands for or was described with."""

_NAME = re.compile(r"\bu-[0-9]+(?:-[0-9]+)?\b")
_DESCRIBES = re.compile(r"summary:|keywords:")
_BUFFERS = tuple(f"{folder}buffer" for folder in LEDGERS)


@dataclass(frozen=True)
class Records:
    """What becomes of the records.

    Args:
        changed: documents as they are to be, None for those that go.
        gone: names of the records that go ("u-000212").
        audits: ids of the books that go.
        raised: names of the records that are back on the surface.
    """

    changed: Mapping[str, Document | None]
    gone: frozenset[str]
    audits: tuple[str, ...]
    raised: tuple[str, ...]

    @property
    def deleted(self) -> tuple[str, ...]:
        """Ids of all documents that are no more, but for those that moved."""
        return tuple(
            doc_id for doc_id, new in self.changed.items() if new is None and stem(doc_id) not in self.raised
        )

    def concerns(self, doc_id: str) -> bool:
        """Whether a document is, or was, one of those that go."""
        return doc_id in self.audits or (doc_id.startswith(RECORDS) and stem(doc_id) in self.gone)


def without_records(
    view: View, seqs: Collection[int], tells: Callable[[str], bool], holds: Callable[[Document], bool]
) -> Records:
    """The records without those of forgotten turns.

    Args:
        view: the library.
        seqs: the turns.
        tells: whether derived text speaks of them.
        holds: whether a document has words of theirs that no other turn has.
    """
    books = [doc_id for doc_id in view.ids("all") if doc_id.startswith(LEDGERS) and not view.is_note(doc_id)]
    records = {doc_id: view.document(doc_id) for doc_id in books if doc_id.startswith(RECORDS)}
    doomed = _doomed(records, seqs, lambda document: _describes(document, tells) or holds(document))
    names = frozenset(map(stem, doomed))
    changed: dict[str, Document | None] = dict.fromkeys(sorted(doomed))
    left = {doc_id: document for doc_id, document in records.items() if stem(doc_id) not in names}
    raised = _orphans(records, left)
    for doc_id, document in left.items():
        new = _unlinked(document, names)
        if doc_id in raised:
            new = _raised(new)
            changed |= {doc_id: None, new.id: new}
        elif new.lines != document.lines:
            changed[doc_id] = new
    audits = []
    for doc_id in (doc_id for doc_id in books if doc_id not in records):
        document = view.document(doc_id)
        if doc_id in _BUFFERS:
            if (new := _without_pointers(document, names, tells)).lines != document.lines:
                changed[doc_id] = new
        elif any(names.intersection(_NAME.findall(line)) or tells(line) for line in document.lines):
            changed[doc_id] = None
            audits.append(doc_id)
    return Records(changed, names, tuple(audits), tuple(stem(doc_id) for doc_id in raised))


def _doomed(
    records: Mapping[str, Document], seqs: Collection[int], tells: Callable[[Document], bool]
) -> set[str]:
    """Ids of the records that go."""
    turns = set(seqs)
    found: set[str] = set()
    names: set[str] = set()
    held = {doc_id: set(held_by(document)) for doc_id, document in records.items()}
    made_with = {
        doc_id: {*sources_of(document), *links_of(document, VERSION)} for doc_id, document in records.items()
    }
    fresh = [doc_id for doc_id, document in records.items() if held[doc_id] & turns or tells(document)]
    while fresh:
        found.update(fresh)
        names.update(map(stem, fresh))
        # Of a turn that stays, no record stays: else it would count as held, and never be drawn from again.
        turns.update(*(evidence_of(records[doc_id]) for doc_id in fresh))
        fresh = [
            doc_id
            for doc_id in records
            if doc_id not in found
            and (stem(doc_id) in names or held[doc_id] & turns or made_with[doc_id] & names)
        ]
    return found


def _describes(document: Document, tells: Callable[[str], bool]) -> bool:
    """Whether its descriptor tells of it."""
    lines = document.lines[: document.header.end]
    return any(tells(line.partition(":")[2]) for line in lines if _DESCRIBES.match(line))


def _orphans(before: Mapping[str, Document], after: Mapping[str, Document]) -> list[str]:
    """Ids of archived records to which a record led that goes, and none does any more."""
    gone = {to for doc_id in before.keys() - after.keys() for to in links_of(before[doc_id], VERSION)}
    gone.difference_update(*(links_of(document, VERSION) for document in after.values()))
    return [doc_id for doc_id in after if doc_id.startswith(ARCHIVES) and stem(doc_id) in gone]


def _raised(document: Document) -> Document:
    """An archived record, back on the surface."""
    spec = next(one for one in STRATEGIES.values() if document.id.startswith(one.archived))
    moved = replace(document, id=spec.live + stem(document.id))
    with suppress(ValueError):  # a header that cannot be read: `doctor` names it
        moved = moved.with_header({"id": quote(moved.id)})
    return moved


def _unlinked(document: Document, names: Collection[str]) -> Document:
    """Without the links to these records."""
    head = list(document.lines[: document.header.end])
    kept = [line for line in head if link_to(line) not in names]
    at = next((n for n, line in enumerate(kept) if line.rstrip() == "links:"), -1)
    if kept != head and at >= 0 and link_to(kept[at + 1]) is None:  # an empty list reads as no value
        del kept[at]
    return replace(document, lines=(*kept, *document.lines[document.header.end :]))


def _without_pointers(document: Document, names: Collection[str], tells: Callable[[str], bool]) -> Document:
    """The buffer without these records, and without what tells."""
    lines = (_pointing(line, names, tells) for line in document.lines)
    return replace(document, lines=tuple(line for line in lines if line is not None))


def _pointing(line: str, names: Collection[str], tells: Callable[[str], bool]) -> str | None:
    """A line of the buffer, near to other records than these; None where it is one of them, or tells."""
    if not any(name in names for name in _NAME.findall(line)):
        return None if tells(line) else line
    try:
        row = json.loads(line)
        row["near"] = [name for name in row["near"] if name not in names]
        return None if row["unit"] in names else json.dumps(row, ensure_ascii=False)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
