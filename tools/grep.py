"""grep: every line of the library in which a pattern occurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infinimem.retrieval.grep import Found, Match, Pattern, compile_pattern
from infinimem.retrieval.packed_grep import search
from infinimem.store.view import View

from .tool import RESULT_LENGTH, Result, header_end, scope_of, shown

MOST_LOOKED_AT = 10_000
"""Matches among which those outside headers are looked for."""


def grep(
    view: View,
    pattern: str,
    limit: int,
    context_lines: int,
    ignore_case: bool,
    scope: str,
) -> Result:
    """Lines that match, by document and line."""
    compiled = compile_pattern(pattern, ignore_case)
    return matches(
        view, lambda most: search(view, scope_of(scope), compiled, most), compiled, limit, context_lines
    )


def matches(
    view: View, find: Callable[[int], Found], pattern: Pattern, limit: int, context_lines: int
) -> Result:
    """A result of matches: the first ones with the lines around, as many as fit; the number of all.

    Args:
        view: of the documents.
        find: gives so many matches, and counts all.
        pattern: what was looked for.
        limit: at most so many.
        context_lines: before and after each.
    """
    found = _below_headers(view, find, limit)
    listed: list[dict[str, Any]] = []
    size = 0
    for match in found.first:
        if size < RESULT_LENGTH:
            row = _row(match, header_end(view, match.document), context_lines)
            size += sum(map(len, [row["text"], *row["before"], *row["after"]]))
            listed.append(row)
    truncated = found.total > len(listed) or pattern.is_partial
    result: Result = {"matches": listed, "total_matches": found.total, "truncated": truncated}
    return {**result, "notes": [shown(note) for note in pattern.notes]} if pattern.notes else result


def _below_headers(view: View, find: Callable[[int], Found], limit: int) -> Found:
    """The first matches outside headers: those say when a program wrote, in every document alike."""
    most = limit
    while True:
        found = find(most)
        first = [match for match in found.first if match.line > header_end(view, match.document)]
        if len(first) >= limit or len(found.first) < most or most >= MOST_LOOKED_AT:
            return Found(found.total - len(found.first) + len(first), first[:limit])
        most *= 8


def _row(match: Match, above: int, context_lines: int) -> dict[str, Any]:
    document, line = match.document, match.line
    last = min(line + context_lines, len(document.lines))
    return {
        "doc_id": document.id,
        "line": line,
        "text": shown(document.text_line(line)),
        "before": [shown(document.text_line(n)) for n in range(max(above + 1, line - context_lines), line)],
        "after": [shown(document.text_line(n)) for n in range(line + 1, last + 1)],
    }
