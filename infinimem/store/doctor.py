"""Checks of a library as it lies on disk. Errors break the format or the law; notes are worth a look.

First form: it reports and repairs nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from infinimem.model import Finding
from infinimem.store.library import Library
from infinimem.store.sequence import MARK
from infinimem.store.view import EVIDENCE, JOURNAL, View, fold

_WHY = re.compile(r"^(?:Superseded by|Duplicate of|Rewritten as) (\d+) ")
_CONFLICT = ("<<<<<<< ", ">>>>>>> ")


def examine(library: Library) -> list[Finding]:
    """All findings, errors first, then by place."""
    view = library.view()
    found = [*_names(view), *_headers(view)]
    found += [Finding("note", "larger than tools read; it is skipped", path) for path in library.too_large()]
    if view.initialised:
        found += [*_lines(view), *_seqs(library, view), *_archive(view), *_origins(view)]
        found += [
            Finding(
                "error",
                "a transaction did not finish; the next write completes it",
                f".infinimem/tx/{item.name}",
            )
            for item in sorted((library.root / ".infinimem/tx").glob("*"))
        ]
    return sorted(found, key=lambda finding: (finding.level, finding.where, finding.what))


def _names(view: View) -> Iterator[Finding]:
    names: dict[str, list[str]] = defaultdict(list)
    for doc_id in view.ids("all"):
        names[fold(doc_id)].append(doc_id)
    for same in names.values():
        if len(same) > 1:
            yield Finding("error", f"names that some file systems take for one: {', '.join(same)}", same[0])


def _headers(view: View) -> Iterator[Finding]:
    for doc_id in view.ids("all"):
        document = view.document(doc_id)
        if document.header.problem:
            level = "note" if view.is_note(doc_id) else "error"
            yield Finding(level, f"header: {document.header.problem}", f"{doc_id}:1")  # type: ignore[arg-type]
        named = document.header.values.get("id")
        if not view.is_note(doc_id) and isinstance(named, str) and named != doc_id:
            yield Finding("note", f"header says id {named}; the next consolidation mends it", f"{doc_id}:2")
        if not view.is_note(doc_id) and any("\x00" in line for line in document.lines):
            yield Finding("note", "holds NUL characters", doc_id)


def _lines(view: View) -> Iterator[Finding]:
    for doc_id in view.ids("all"):
        if view.is_note(doc_id) or doc_id.startswith(JOURNAL):
            continue
        document = view.document(doc_id)
        for number in document.malformed:
            yield Finding(
                "error", "looks like an entry, but its signature does not parse", f"{doc_id}:{number}"
            )
        for number, line in enumerate(document.lines, 1):
            if line.startswith(_CONFLICT):
                yield Finding("error", "a git conflict marker; settle the conflict", f"{doc_id}:{number}")


def _seqs(library: Library, view: View) -> Iterator[Finding]:
    places: dict[int, list[str]] = defaultdict(list)
    for doc_id in view.ids("all"):
        if not view.is_note(doc_id):
            for place in view.document(doc_id).entries:
                places[place.entry.seq].append(f"{doc_id}:{place.start_line}")
    for seq, found in sorted(places.items()):
        if len(found) > 1:
            yield Finding("error", f"seq {seq} stands {len(found)} times: {', '.join(found)}", found[1])
    high = library.high_water()
    above = [seq for seq in places if high is not None and seq > high]
    if above:
        yield Finding("error", f"seq {max(above)} is above the high-water mark {high}", MARK)


def _archive(view: View) -> Iterator[Finding]:
    for doc_id in view.ids("archive"):
        for place in view.document(doc_id).entries:
            why = _WHY.match(place.headings[-1]) if place.headings else None
            where = f"{doc_id}:{place.start_line}"
            if why is None:
                yield Finding("error", "an archived line without a reason above it", where)
            elif view.entry(int(why[1])) is None:
                yield Finding("note", f"its successor {why[1]} is not in the library", where)


def _origins(view: View) -> Iterator[Finding]:
    for doc_id in view.ids("all"):
        if view.is_note(doc_id) or doc_id.startswith((EVIDENCE, JOURNAL)):
            continue
        for place in view.document(doc_id).entries:
            missing = [seq for seq in place.entry.origin if view.entry(seq) is None]
            if missing:
                where = f"{doc_id}:{place.start_line}"
                yield Finding("error", f"origin {', '.join(map(str, missing))} is not in the library", where)
