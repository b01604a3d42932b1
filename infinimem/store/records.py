"""Records of strategies that keep no signed lines: what their headers say of where they come from.

A record holds no words of its own but derived ones: `evidence` in its header names turns, or other records.
Source: docs/FORMAT.md, Records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from infinimem.markdown.document import Document

_STEM = re.compile(r"u-0*([0-9]{1,18})\Z")


def _rows(document: Document, key: str) -> list[str]:
    listed = document.header.values.get("evidence", ())
    rows: Iterable[object] = listed if isinstance(listed, list) else ()
    return [row[key] for row in rows if isinstance(row, dict) and isinstance(row.get(key), str)]


def evidence_of(document: Document) -> tuple[int, ...]:
    """Seqs of the turns that a record names as its evidence."""
    return tuple(int(ref) for ref in _rows(document, "ref") if ref.isdecimal() and len(ref) < 19)


def held_by(document: Document) -> tuple[int, ...]:
    """The same; of a record whose header a person broke, the turn that its name tells."""
    if not document.header.problem:
        return evidence_of(document)
    named = _STEM.match(document.id.rsplit("/", 1)[-1])
    return (int(named[1]),) if named else ()


def evidence_behind(records: Mapping[str, Document]) -> dict[str, frozenset[int]]:
    """For each record the turns that it comes from, followed through the records that it names.

    Args:
        records: by document id.

    Returns:
        By document id; a record that names one that is not there is left out.
    """
    by_stem = {doc_id.rsplit("/", 1)[-1]: doc_id for doc_id in records}
    found: dict[str, frozenset[int]] = {}
    waiting = dict.fromkeys(records)
    while waiting:
        ready = {}
        for doc_id in waiting:
            named = [by_stem.get(stem, "") for stem in _rows(records[doc_id], "unit")]
            if all(name in found for name in named):
                ready[doc_id] = frozenset(evidence_of(records[doc_id])).union(*(found[n] for n in named))
        if not ready:  # what is left names nothing that is there, or itself
            break
        found |= ready
        for doc_id in ready:
            del waiting[doc_id]
    return found
