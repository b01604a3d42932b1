"""grep_doc: every line of one document in which a pattern occurs."""

from __future__ import annotations

from infinimem.retrieval.grep import Found, Pattern, first_matches
from infinimem.store.view import View

from .grep import matches
from .tool import Result

LIMIT = 100


def grep_doc(view: View, doc_id: str, pattern: str, context_lines: int, ignore_case: bool) -> Result:
    """Lines of a document that match, whatever scope it is in.

    Raises:
        DocumentNotFound: no document, or several, answer to that id.
        UsageError: see `matches`.
    """
    document = view.document(view.resolve(doc_id))

    def find(compiled: Pattern, most: int) -> Found:
        return first_matches([document], compiled, most)

    return {"doc_id": document.id, **matches(view, find, pattern, ignore_case, LIMIT, context_lines)}
