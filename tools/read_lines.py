"""read_lines: some lines of a document, numbered as in an editor."""

from __future__ import annotations

from functools import partial

from infinimem.store.view import View

from .compact import rows
from .tool import DOC_ID, RESULT_LENGTH, Result, Tool, header_end, shown

DESCRIPTION = (
    "Read lines of a document, at most 100 at a time: number, day, speaker, words; a day or speaker that is "
    'left out, or "-", is that of the line above. Lines count from 1; a header is counted and not shown.'
)
MOST = 100
PARAMETERS = {
    "type": "object",
    "properties": {
        "doc_id": DOC_ID,
        "start": {"type": "integer", "minimum": 1, "default": 1, "description": "first line"},
        "end": {"type": "integer", "minimum": 1, "description": "last line; left out: 100 lines"},
    },
    "required": ["doc_id"],
    "additionalProperties": False,
}


def read_lines(view: View, doc_id: str, start: int = 1, end: int | None = None) -> Result:
    """Lines `start` to `end`, as many as fit a result.

    Raises:
        DocumentNotFound: no document, or several, answer to that id.
    """
    document = view.document(view.resolve(doc_id))
    total = len(document.lines)
    wanted = start + MOST - 1 if end is None else end
    notes = []
    if wanted < start:
        notes.append(f"end {wanted} is before start {start}; one line is shown")
        wanted = start
    if wanted >= start + MOST:
        notes.append(f"at most {MOST} lines at a time")
        wanted = start + MOST - 1
    lines: list[dict[str, object]] = []
    size = 0
    for number in range(start, min(wanted, total) + 1):
        text = shown(document.text_line(number))
        size += len(text)
        if size > RESULT_LENGTH:
            notes.append(f"the rest would be too much at once; go on at line {number}")
            break
        lines.append({"line": number, "text": text})
    if start > total:
        notes.append(f"the document has {total} lines")
    result: Result = {
        "doc_id": document.id,
        "lines": lines,
        "total_lines": total,
        "header_lines": header_end(view, document),
    }
    return {**result, "notes": notes} if notes else result


tool = partial(Tool, "read_lines", DESCRIPTION, PARAMETERS, read_lines, rows)
"""The tool, once it is given a library's view."""
