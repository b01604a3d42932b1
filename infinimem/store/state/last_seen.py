"""Every live and archived line as the program last saw it, so that what a person changed can be told.

    .infinimem/seen     checksum, seq, document, line; one a row, the last of a seq holds, "-" is deleted

Machine state, not synced: rows that a loss of power took are only lines that count as new. A row that was
torn does not match its checksum and is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from sys import intern
from zlib import crc32

from immutables import Map

from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Located
from infinimem.store.files import Files
from infinimem.store.spec import ARCHIVE, EVIDENCE, TOPICS
from infinimem.store.state import lists
from infinimem.store.view import View, whole

PATH = ".infinimem/seen"
GONE = "-"
SLACK = 4
"""The list is written anew when it is so many times longer than what it says."""


@dataclass(frozen=True, slots=True)
class SeenLine:
    """Where a line stood, and how it read."""

    doc_id: str
    line: str


Changes = dict[int, SeenLine | None]
"""Lines as they are now; None for one that is gone."""


@dataclass(frozen=True)
class Seen:
    """What was last seen, in how many rows; `began` is the same object as long as the list only grows."""

    lines: Map[int, SeenLine] = field(default_factory=Map)
    rows: int = 0
    began: object = field(default_factory=object)


def read(files: Files) -> Seen:
    return lists.read(files, PATH, Seen, _add)


def _add(before: Seen, rows: list[bytes]) -> Seen:
    lines = before.lines.mutate()
    for row in rows:
        checksum, _, rest = row.partition(b"\t")
        if checksum != b"%08x" % crc32(rest):
            continue
        name, doc_id, line = rest.decode("utf-8", "surrogateescape").split("\t", 2)
        if doc_id == GONE:
            lines.pop(whole(name) or 0, None)
        else:
            lines[whole(name) or 0] = SeenLine(intern(doc_id), intern(line))  # as the entry holds it
    return Seen(lines.finish(), before.rows + len(rows), before.began)


def note(files: Files, changes: Changes) -> None:
    """Add what is seen now. The caller holds the lock."""
    if not changes:
        return
    known = read(files)
    if known.rows > SLACK * (len(known.lines) + 256):
        left = {**known.lines, **changes}
        files.replace(PATH, _rows({seq: line for seq, line in left.items() if line}))
    else:
        files.append(PATH, _rows(changes), durable=False)


def compact(files: Files) -> None:
    """Write the list anew, without rows that no longer hold. The caller holds the lock."""
    if files.exists(PATH):
        files.replace(PATH, _rows(read(files).lines))


def _rows(changes: Mapping[int, SeenLine | None]) -> bytes:
    rows = BytesIO()
    for seq, line in changes.items():
        row = f"{seq}\t{line.doc_id if line else GONE}\t{line.line if line else ''}"
        data = row.encode("utf-8", "surrogateescape")
        rows.write(b"%08x\t%s\n" % (crc32(data), data))
    return rows.getvalue()


def followed(known: Mapping[int, SeenLine], places: Iterable[Located]) -> Changes:
    """Return where lines stand that the program wrote or moved; a person's edit stays to be told."""
    changes: Changes = {}
    for place in places:
        before = known.get(place.seq)
        if not place.doc_id.startswith(EVIDENCE) and not (before and before.doc_id == place.doc_id):
            changes[place.seq] = SeenLine(place.doc_id, before.line if before else place.entry.line)
    return changes


def differences(
    view: View, known: Mapping[int, SeenLine], changed: Mapping[str, Document | None] | None = None
) -> Changes:
    """Return what to note so that the list says what stands in `view`, once these documents changed."""
    documents: dict[str, Document | None] = {doc_id: view.document(doc_id) for doc_id in tracked(view)}
    documents |= {doc_id: new for doc_id, new in (changed or {}).items() if not doc_id.startswith(EVIDENCE)}
    now = {
        place.seq: SeenLine(place.doc_id, place.entry.line)
        for document in documents.values()
        for place in (document.entries if document else ())
    }
    changes: Changes = {seq: line for seq, line in now.items() if known.get(seq) != line}
    changes.update((seq, None) for seq in known if seq not in now)
    return changes


def tracked(view: View) -> list[str]:
    """Return the documents whose lines are remembered: CURRENT, topics, then the archive."""
    return [*live(view), *_own(view, ARCHIVE)]


def live(view: View) -> list[str]:
    """Return the documents of entries that stand: CURRENT and topics."""
    return [*((CURRENT,) if CURRENT in view and not view.is_note(CURRENT) else ()), *_own(view, TOPICS)]


def _own(view: View, folder: str) -> list[str]:
    return [doc_id for doc_id in view.below(folder) if not view.is_note(doc_id)]
