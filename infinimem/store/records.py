"""Records of strategies that keep no signed lines: what their headers say of where they come from.

All say it alike: docs/FORMAT.md, Records.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from infinimem.markdown.document import Document
from infinimem.spec import folders

LONGEST_RUN = 100_000
"""Turns that one row may name; a longer run names none."""

_ROW = re.compile(r"  - \{(ref|record|unit): ([0-9a-z-]{1,40})(?:, [^{}]*)?\}\Z")
_RUN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")
_LINK = re.compile(r"  - \{type: ([a-z]+), to: ([0-9a-z-]{1,40})(?:, [^{}]*)?\}\r?\Z")


def stem(doc_id: str) -> str:
    """Return what records call each other by."""
    return doc_id.rsplit("/", 1)[-1]


def evidence_of(document: Document) -> tuple[int, ...]:
    """Return seqs of the turns that a record names as its evidence."""
    runs = ((int(run[1]), int(run[2] or run[1])) for run in map(_RUN.match, _named(document, "ref")) if run)
    return tuple(seq for first, last in runs if last - first < LONGEST_RUN for seq in range(first, last + 1))


def sources_of(document: Document) -> tuple[str, ...]:
    """Return stems of the records that a record names as its evidence; All-Mem's files say "unit"."""
    return tuple(_named(document, "record", "unit"))


def _named(document: Document, *keys: str) -> list[str]:
    rows = _rows(document)
    if rows is None:  # not as the program writes it
        listed = document.header.values.get("evidence")
        named = listed if isinstance(listed, list) else []
        rows = [(name, value) for row in named if isinstance(row, dict) for name, value in row.items()]
    return [value for name, value in rows if name in keys and isinstance(value, str)]


def _rows(document: Document) -> list[tuple[str, object]] | None:
    """Read the rows of `evidence` as they are written without YAML, which takes a hundred times as long."""
    lines = document.lines
    if "evidence:" not in lines or lines[0] != "---" or "---" not in lines[1:]:
        return None
    rows: list[tuple[str, object]] = []
    for line in lines[lines.index("evidence:") + 1 : lines.index("---", 1)]:
        if not line.startswith(" "):
            break
        match = _ROW.match(line)
        if match is None:
            return None
        rows.append((match[1], match[2]))
    return rows


def versions_of(document: Document) -> tuple[str, ...]:
    """Return stems of what a record stands for or was described with: its links of the type "version"."""
    links = map(_LINK.match, document.lines[: document.header.end])
    return tuple(match[2] for match in links if match and match[1] == "version")


def link_to(line: str) -> str | None:
    """Return the stem that a line of a header links to; None if it is no link."""
    match = _LINK.match(line)
    return match[2] if match else None


def held_by(document: Document) -> tuple[int, ...]:
    """Return as `evidence_of`; of a record whose evidence a person broke, the turn that its name tells."""
    seqs = evidence_of(document)
    if seqs or sources_of(document):
        return seqs
    named = re.fullmatch(folders().names, stem(document.id))
    return (int(named[1]),) if named else ()


def turns_behind(document: Document, find: Callable[[str], Document | None]) -> tuple[int, ...]:
    """Return seqs of the turns that a record comes from, also through records that `find` gives by stem."""
    turns: dict[int, None] = {}
    seen, waiting = {stem(document.id)}, [document]
    while waiting:
        record = waiting.pop(0)
        turns.update(dict.fromkeys(evidence_of(record)))
        fresh = [name for name in dict.fromkeys(sources_of(record)) if name not in seen]
        seen.update(fresh)
        waiting += [source for name in fresh if (source := find(name))]
    return tuple(turns)
