"""grep: every line of the library in which a pattern occurs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from infinimem.retrieval.grep import Found, Match, Pattern, compile_pattern
from infinimem.retrieval.packed_grep import search
from infinimem.store.view import Scope, View

from .tool import RESULT_LENGTH, SCOPE, Result, Tool, shown

DESCRIPTION = (
    "Find a regular expression (RE2 syntax, case-insensitive) in every document. Good for names, numbers, "
    "dates and exact words. Gives document id, line number, text and lines around, by document and line."
)
PATTERN = {"type": "string", "description": "a regular expression in RE2 syntax, or plain text"}
CONTEXT = {
    "type": "integer",
    "minimum": 0,
    "maximum": 5,
    "default": 3,
    "description": "lines to show before and after each match",
}
IGNORE_CASE = {"type": "boolean", "default": True, "description": "whether upper and lower case are the same"}
PARAMETERS = {
    "type": "object",
    "properties": {
        "pattern": PATTERN,
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 30,
            "default": 30,
            "description": "at most so many matches are shown; all are counted",
        },
        "context_lines": CONTEXT,
        "ignore_case": IGNORE_CASE,
        "scope": SCOPE,
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def grep(
    view: View,
    pattern: str,
    limit: int = 30,
    context_lines: int = 3,
    ignore_case: bool = True,
    scope: Scope = "default",
) -> Result:
    """Lines that match, by document and line."""
    compiled = compile_pattern(pattern, ignore_case)
    return matches(search(view, scope, compiled, limit), compiled, context_lines)


def matches(found: Found, pattern: Pattern, context_lines: int) -> Result:
    """A result of matches: the first ones with the lines around, as many as fit; the number of all."""
    listed: list[dict[str, Any]] = []
    size = 0
    for match in found.first:
        if size < RESULT_LENGTH:
            row = _row(match, context_lines)
            size += sum(map(len, [row["text"], *row["before"], *row["after"]]))
            listed.append(row)
    truncated = found.total > len(listed) or pattern.is_partial
    result: Result = {"matches": listed, "total_matches": found.total, "truncated": truncated}
    return {**result, "notes": [shown(note) for note in pattern.notes]} if pattern.notes else result


def _row(match: Match, context_lines: int) -> dict[str, Any]:
    document, line = match.document, match.line
    last = min(line + context_lines, len(document.lines))
    return {
        "doc_id": document.id,
        "line": line,
        "text": shown(document.text_line(line)),
        "before": [shown(document.text_line(n)) for n in range(max(1, line - context_lines), line)],
        "after": [shown(document.text_line(n)) for n in range(line + 1, last + 1)],
    }


def rows(result: Result) -> Iterator[str]:
    """A result as numbered lines; a match stands behind ":", a line around it behind "-"."""
    printed: set[tuple[str, int]] = set()
    matched = {(match["doc_id"], match["line"]) for match in result["matches"]}
    for match in result["matches"]:
        first = match["line"] - len(match["before"])
        for line, text in enumerate([*match["before"], match["text"], *match["after"]], start=first):
            place = (match["doc_id"], line)
            if place not in printed:
                printed.add(place)
                yield f"{match['doc_id']}{':' if place in matched else '-'}{line} {text}"
    yield f"{len(result['matches'])} of {result['total_matches']} matches"


tool = partial(Tool, "grep", DESCRIPTION, PARAMETERS, grep, rows)
"""The tool, once it is given a library's view."""
