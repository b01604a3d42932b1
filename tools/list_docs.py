"""list_docs: the catalog, a page at a time."""

from __future__ import annotations

from functools import partial

from infinimem.store.view import View

from .compact import rows
from .tool import SCOPE, Result, Tool, scope_of, shown

DESCRIPTION = (
    "List the documents with their titles, summaries and sizes in tokens, 20 a page, sorted by id. "
    "`archived` counts lines that left a topic for the archive: look there for the past."
)
PAGE = 20
PARAMETERS = {
    "type": "object",
    "properties": {
        "offset": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "how many documents to pass over",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": PAGE,
            "default": PAGE,
            "description": "at most so many documents",
        },
        "scope": SCOPE,
    },
    "required": [],
    "additionalProperties": False,
}


def list_docs(view: View, offset: int = 0, limit: int = PAGE, scope: str = "default") -> Result:
    """One page of the catalog."""
    ids = view.ids(scope_of(scope))
    page = [view.row(doc_id) for doc_id in ids[offset : offset + limit]]
    docs = [
        {
            "id": row.id,
            "title": shown(row.title),
            "summary": shown(row.summary),
            "tokens": row.tokens,
            "archived": row.archived,
        }
        for row in page
    ]
    return {"docs": docs, "total": len(ids), "has_more": offset + len(docs) < len(ids)}


tool = partial(Tool, "list_docs", DESCRIPTION, PARAMETERS, list_docs, rows)
"""The tool, once it is given a library's view."""
