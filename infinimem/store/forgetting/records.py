"""The records of a library without what is forgotten: units, the buffer of pointers, audits. Pure.

What came from a forgotten turn, was described with the help of such a record, or tells of one goes whole, and
with it all other records of its turns: they are derived, and those of turns that stay are made anew. What is
left loses its links to them; an archived record that no other leads to any more is back on the surface.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.store.keeper import BOOKS, KEEPERS, RECORDS
from infinimem.store.records import evidence_of, held_by, link_to, links_of, sources_of, stem
from infinimem.store.view import View

VERSION = "version"
"""The kind of link that leads to what a record stands for or was described with."""

_NAME = re.compile(r"\bu-[0-9]+(?:-[0-9]+)?\b")
_DESCRIBES = re.compile(r"summary:|keywords:")
_BUFFERS = tuple(f"{folder}buffer" for folder in BOOKS)


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


def without(
    view: View, seqs: Collection[int], tells: Callable[[str], bool], holds: Callable[[Document], bool]
) -> Records:
    """The records without those of forgotten turns.

    Args:
        view: the library.
        seqs: the turns.
        tells: whether derived text speaks of them.
        holds: whether a document has words of theirs that no other turn has.
    """
    books = [doc_id for doc_id in view.ids("all") if doc_id.startswith(BOOKS) and not view.is_note(doc_id)]
    records = {doc_id: view.document(doc_id) for doc_id in books if doc_id.startswith(RECORDS)}
    doomed = _doomed(records, seqs, lambda document: _describes(document, tells) or holds(document))
    names = frozenset(map(stem, doomed))
    changed: dict[str, Document | None] = dict.fromkeys(sorted(doomed))
    left = {doc_id: document for doc_id, document in records.items() if stem(doc_id) not in names}
    raised = _orphans(records, left) if names else []
    for doc_id, document in left.items():
        new = _unlinked(document, names)
        if doc_id in raised:
            changed[doc_id] = None
            changed[_surface(doc_id)] = _renamed(new, _surface(doc_id))
        elif new is not document:
            changed[doc_id] = new
    audits = []
    for doc_id in (doc_id for doc_id in books if doc_id not in records):
        document = view.document(doc_id)
        if doc_id in _BUFFERS:
            if (new := _without_pointers(document, names, tells)) is not document:
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
    """Ids of archived records to which a record on the surface led, and none does any more.

    Of those that lead to each other the first one is enough.
    """
    reached, now = _reached(before), _reached(after)
    ids = {stem(doc_id): doc_id for doc_id in after}
    lost = sorted(name for name in ids.keys() & reached if name not in now)
    found: list[str] = []
    while lost:
        led_to = {to for name in lost for to in links_of(after[ids[name]], VERSION) if to != name}
        first = next((name for name in lost if name not in led_to), lost[0])
        found.append(ids[first])
        now |= _led_to(after, ids, [first])
        lost = [name for name in lost if name not in now]
    return found


def _reached(records: Mapping[str, Document]) -> set[str]:
    """Names of the records on the surface, and of those to which they lead."""
    ids = {stem(doc_id): doc_id for doc_id in records}
    live = tuple(keeper.live for keeper in KEEPERS.values())
    return _led_to(records, ids, [stem(doc_id) for doc_id in records if doc_id.startswith(live)])


def _led_to(records: Mapping[str, Document], ids: Mapping[str, str], starts: Collection[str]) -> set[str]:
    seen, waiting = set(starts), list(starts)
    while waiting:
        fresh = {to for to in links_of(records[ids[waiting.pop()]], VERSION) if to in ids} - seen
        seen |= fresh
        waiting += sorted(fresh)
    return seen


def _surface(doc_id: str) -> str:
    keeper = next(one for one in KEEPERS.values() if doc_id.startswith(one.archived))
    return keeper.live + stem(doc_id)


def _renamed(document: Document, doc_id: str) -> Document:
    moved = replace(document, id=doc_id)
    try:
        return moved.with_header({"id": quote(doc_id)})
    except ValueError:  # it cannot be read: `doctor` names it
        return moved


def _unlinked(document: Document, names: Collection[str]) -> Document:
    """Without the links to these records; the very document where there are none."""
    head = list(document.lines[: document.header.end])
    kept = [line for line in head if link_to(line) not in names]
    if kept == head:
        return document
    at = next((n for n, line in enumerate(kept) if line.rstrip() == "links:"), -1)
    if at >= 0 and link_to(kept[at + 1]) is None:  # an empty list reads as no value
        del kept[at]
    return replace(document, lines=(*kept, *document.lines[document.header.end :]))


def _without_pointers(document: Document, names: Collection[str], tells: Callable[[str], bool]) -> Document:
    """The buffer without these records; the very document where it names none."""
    lines = []
    for line in document.lines:
        named = any(name in names for name in _NAME.findall(line))
        if named or tells(line):
            line = _pointing(line, names) if named else ""
            if not line:
                continue
        lines.append(line)
    return document if tuple(lines) == document.lines else replace(document, lines=tuple(lines))


def _pointing(line: str, names: Collection[str]) -> str:
    """A row of the buffer that is near to other records than these; "" where it is one of them."""
    try:
        row = json.loads(line)
        if row["unit"] in names:
            return ""
        row["near"] = [name for name in row["near"] if name not in names]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return json.dumps(row, ensure_ascii=False)
