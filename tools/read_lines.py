"""read_lines: some lines of a document, numbered as in an editor."""

from __future__ import annotations

from infinimem.store.view import View

from .tool import LINE_LENGTH, RESULT_LENGTH, Result, header_end, span

MOST = 100


def read_lines(view: View, doc_id: str, start: int, end: int | None, offset: int) -> Result:
    """Lines `start`, from `offset` on, to `end`, as many as fit a result; of a longer line a part.

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
        text, at = document.text_line(number), offset if number == start else 0
        room = RESULT_LENGTH - size
        if len(text) - at > room and lines and (len(text) <= RESULT_LENGTH or room < LINE_LENGTH):
            notes.append(f"the rest would be too much at once; go on at line {number}")
            break
        part, stop = span(text, at, room)
        lines.append({"line": number, "text": part})
        size += len(part)
        if stop < len(text):
            notes.append(f"line {number} is cut; go on at its offset {stop}")
            break
    if offset and offset >= len(document.text_line(start) if start <= total else ""):
        notes.append(f"line {start} has no offset {offset}")
    if start > total:
        notes.append(f"the document has {total} lines")
    result: Result = {
        "doc_id": document.id,
        "lines": lines,
        "total_lines": total,
        "header_lines": header_end(view, document),
    }
    return {**result, "notes": notes} if notes else result
