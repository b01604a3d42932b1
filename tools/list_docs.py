"""list_docs: the catalog, a page at a time."""

from __future__ import annotations

from infinimem.store.view import View

from .tool import Result, scope_of, shown


def list_docs(view: View, offset: int, limit: int, scope: str) -> Result:
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
