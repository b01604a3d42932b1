"""Records of strategies that keep no signed lines: what their headers say of where they come from.

A record holds no words of its own but derived ones: `evidence` in its header names turns, or other records.
Source: docs/FORMAT.md, Records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from infinimem.markdown.document import Document

_STEM = re.compile(r"u-0*([0-9]{1,18})(?:-[0-9]+)?\Z")
_ROW = re.compile(r"  - \{(ref|unit): ([0-9a-z-]{1,40})(?:, [^{}]*)?\}\Z")
_LINK = re.compile(r"  - \{type: ([a-z]+), to: ([0-9a-z-]{1,40})(?:, [^{}]*)?\}\r?\Z")


def stem(doc_id: str) -> str:
    """What records call each other by."""
    return doc_id.rsplit("/", 1)[-1]


def evidence_of(document: Document) -> tuple[int, ...]:
    """Seqs of the turns that a record names as its evidence."""
    return tuple(int(ref) for ref in _named(document, "ref") if ref.isdecimal() and len(ref) < 19)


def sources_of(document: Document) -> tuple[str, ...]:
    """Stems of the records that a record names as its evidence."""
    return tuple(_named(document, "unit"))


def _named(document: Document, key: str) -> list[str]:
    rows = _rows(document)
    if rows is None:  # not as the program writes it
        listed = document.header.values.get("evidence", ())
        found: Iterable[object] = listed if isinstance(listed, list) else ()
        rows = [(name, value) for row in found if isinstance(row, dict) for name, value in row.items()]
    return [value for name, value in rows if name == key and isinstance(value, str)]


def _rows(document: Document) -> list[tuple[str, object]] | None:
    """The rows of `evidence` as they are written, read without YAML, which takes a hundred times as long."""
    lines = document.lines
    if "evidence:" not in lines or lines[0] != "---" or "---" not in lines[1:]:
        return None
    end = lines.index("---", 1)
    rows: list[tuple[str, object]] = []
    for line in lines[lines.index("evidence:") + 1 : end]:
        if not line.startswith(" "):
            break
        match = _ROW.match(line)
        if match is None:
            return None
        rows.append((match[1], match[2]))
    return rows


def links_of(document: Document, kind: str) -> tuple[str, ...]:
    """Stems that its links of a kind lead to."""
    found = map(_LINK.match, document.lines[: document.header.end])
    return tuple(match[2] for match in found if match and match[1] == kind)


def link_to(line: str) -> str | None:
    """The stem that a line of a header links to; None where it is no link."""
    match = _LINK.match(line)
    return match[2] if match else None


def held_by(document: Document) -> tuple[int, ...]:
    """As `evidence_of`; of a record whose evidence a person broke, the turn that its name tells."""
    found = evidence_of(document)
    if found or sources_of(document):
        return found
    named = _STEM.match(stem(document.id))
    return (int(named[1]),) if named else ()


def turns_behind(document: Document, find: Callable[[str], Document | None]) -> tuple[int, ...]:
    """Seqs of the turns that a record comes from, followed through the records that it names.

    Args:
        document: the record.
        find: gives a record by its stem; None for one that is passed over.
    """
    found: dict[int, None] = {}
    seen, waiting = {stem(document.id)}, [document]
    while waiting:
        record = waiting.pop(0)
        found.update(dict.fromkeys(evidence_of(record)))
        fresh = [name for name in dict.fromkeys(sources_of(record)) if name not in seen]
        seen.update(fresh)
        waiting += [source for name in fresh if (source := find(name))]
    return tuple(found)
