"""Ledgers: Markdown that people read and code reads back, with a fenced block of one JSON record a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from infinimem.markdown.document import Document
from infinimem.markdown.header import quote

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
    rows: list[dict[str, Any]] = []
    inside = False
    for line in document.body.split("\n"):
        if line.startswith(_FENCE):
            inside = line == _FENCE + "json"
        elif inside:
            rows += _loaded(line)
    return rows


@lru_cache(maxsize=512)
def _loaded(line: str) -> Sequence[dict[str, Any]]:
    """The row that a line holds; of a ledger that grew by one the others are known. Nobody edits it."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    return (row,) if isinstance(row, dict) else ()


def _row(row: Mapping[str, Any]) -> str:
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(row, ensure_ascii=False))
