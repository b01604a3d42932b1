"""grep and grep_doc: every line of the library, or of one document, in which a pattern occurs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from infinimem.index.grep import META, Found, Match, Pattern, compile_pattern, first_matches, search
from infinimem.store.view import View

from .tool import LINE_LENGTH, RESULT_LENGTH, Result, header_end, scope_of, shown

MOST_IN_ONE = 100  # matches in one document that are shown
MOST_LOOKED_AT = 10_000  # matches among which those outside headers are looked for


def grep(
    view: View,
    pattern: str,
    ignore_case: bool,
    limit: int,
    context_lines: int,
    scope: str = "all",
    doc_id: str | None = None,
    offset: int = 0,
) -> Result:
    """Return matches from `offset` on with the lines around, as many as fit, and the number of all; in one
    document alone, whatever scope it is in, or in all. A pattern that matches nothing is taken as it stands.
    DocumentNotFound, or UsageError if the pattern is too large or takes too long."""
    document = view.document(view.resolve(doc_id)) if doc_id else None
    find: Callable[[Pattern, int], Found] = partial(search, view, scope_of(scope))
    if document:
        find = partial(first_matches, [document])
    compiled = compile_pattern(pattern, ignore_case)
    found = _below_headers(view, partial(find, compiled), offset + limit)
    if not found.total and not compiled.notes and META.search(compiled.line.pattern):
        compiled = compile_pattern(pattern, ignore_case, literal=True)
        found = _below_headers(view, partial(find, compiled), offset + limit)
    listed: list[dict[str, Any]] = []
    size = 0
    for match in found.first[offset:]:
        if size < RESULT_LENGTH:
            row = _row(match, compiled, header_end(view, match.document), context_lines)
            size += sum(map(len, [row["text"], *row["before"], *row["after"]]))
            listed.append(row)
    result: Result = {"doc_id": document.id} if document else {}
    result |= {
        "matches": listed,
        "total_matches": found.total,
        "truncated": found.total > offset + len(listed),
    }
    return {**result, "notes": [shown(note) for note in compiled.notes]} if compiled.notes else result


def _below_headers(view: View, find: Callable[[int], Found], limit: int) -> Found:
    """The first matches outside headers: those say when a program wrote, in every document alike."""
    most = limit
    while True:
        found = find(most)
        first = [match for match in found.first if match.line > header_end(view, match.document)]
        if len(first) >= limit or len(found.first) < most or most >= MOST_LOOKED_AT:
            return Found(found.total - len(found.first) + len(first), first[:limit])
        most *= 8


def _row(match: Match, pattern: Pattern, above: int, context_lines: int) -> dict[str, Any]:
    document, line = match.document, match.line
    last = min(line + context_lines, len(document.lines))
    text = document.text_line(line)
    at = next(pattern.places(text), (0, 0))[0] if len(text) > LINE_LENGTH else 0
    return {
        "doc_id": document.id,
        "line": line,
        "text": shown(text, at),
        "before": [shown(document.text_line(n)) for n in range(max(above + 1, line - context_lines), line)],
        "after": [shown(document.text_line(n)) for n in range(line + 1, last + 1)],
    }
