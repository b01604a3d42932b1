"""Ledgers: Markdown that people read and code reads back, with a fenced block of one JSON record a line.

The buffer is one: the units that wait for consolidation, and what they were near to when they came.
Source: All-Mem, section 3.2 (pointers rather than copies).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.store.view import View
from infinimem.strategies.allmem.record_store import RecordStore
from infinimem.strategies.allmem.unit import HOME, is_unit_id

BUFFER = f"{HOME}buffer"

_FENCE = "```"
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]")
"""What may not stand in a file as it is, or that nobody would see; `json` escapes the rest."""


def ledger_text(
    doc_id: str, header: Mapping[str, str], prose: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> str:
    """The text of a ledger.

    Args:
        doc_id: its id.
        header: further keys.
        prose: Markdown lines for people.
        rows: of the block.
    """
    head = [f"{key}: {quote(value)}" for key, value in {"id": doc_id, **header}.items()]
    block = [_FENCE + "json", *map(_row, rows), _FENCE]
    return "\n".join(["---", *head, "---", *prose, "", *block, ""])


def rows_of(document: Document) -> list[dict[str, Any]]:
    """The rows of the block; lines that are none are passed over."""
    rows = []
    inside = False
    for line in document.body.split("\n"):
        if line.startswith(_FENCE):
            inside = line == _FENCE + "json"
        elif inside:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                rows.append(row)
    return rows


def _row(row: Mapping[str, Any]) -> str:
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(row, ensure_ascii=False))


# ── the buffer ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Buffered:
    """A unit that waits for consolidation, and the units that it was near to."""

    unit: str
    near: tuple[str, ...]


def buffered(view: View, bank: RecordStore) -> tuple[Buffered, ...]:
    """What waits, of what the bank holds, in the order in which it came."""
    found: dict[str, Buffered] = {}
    for row in rows_of(view.document(BUFFER)) if BUFFER in view else ():
        unit, near = row.get("unit"), row.get("near")
        if isinstance(unit, str) and unit in bank and isinstance(near, list):
            names = (name for name in near if isinstance(name, str) and is_unit_id(name))
            found.setdefault(unit, Buffered(unit, tuple(names)))
    return tuple(found.values())


def buffer_text(waiting: Sequence[Buffered]) -> str:
    """The buffer's file."""
    prose = ("# Units that wait for consolidation", "", f"{len(waiting)} in order of arrival.")
    rows = ({"unit": one.unit, "near": list(one.near)} for one in waiting)
    return ledger_text(BUFFER, {"kind": "buffer"}, prose, rows)
