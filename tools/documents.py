"""list_docs: the catalog, a page at a time. read_lines: lines of a document, numbered as in an editor."""

from __future__ import annotations

from infinimem.store.view import View

from .tool import LINE_LENGTH, RESULT_LENGTH, Result, header_end, scope_of, shown, span

MOST = 100


def list_docs(view: View, offset: int, limit: int, scope: str) -> Result:
    """One page of the catalog."""
    ids = view.ids(scope_of(scope))
    docs = []
    for row in map(view.row, ids[offset : offset + limit]):
        told = {"id": row.id, "title": shown(row.title), "summary": shown(row.summary)}
        docs.append({**told, "tokens": row.tokens, "archived": row.archived})
    return {"docs": docs, "total": len(ids), "has_more": offset + len(docs) < len(ids)}


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
    if wanted >= start + MOST:
        notes.append(f"at most {MOST} lines at a time")
    wanted = min(max(wanted, start), start + MOST - 1)
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
    result: Result = {"doc_id": document.id, "lines": lines, "total_lines": total}
    return result | {"header_lines": header_end(view, document)} | ({"notes": notes} if notes else {})
