"""grep_doc: every line of one document in which a pattern occurs."""

from __future__ import annotations

from infinimem.retrieval.grep import compile_pattern, first_matches
from infinimem.store.view import View

from .grep import matches
from .tool import Result

LIMIT = 100


def grep_doc(view: View, doc_id: str, pattern: str, context_lines: int, ignore_case: bool) -> Result:
    """Lines of a document that match, whatever scope it is in.

    Raises:
        DocumentNotFound: no document, or several, answer to that id.
    """
    document = view.document(view.resolve(doc_id))
    compiled = compile_pattern(pattern, ignore_case)
    return {
        "doc_id": document.id,
        **matches(
            view, lambda most: first_matches([document], compiled, most), compiled, LIMIT, context_lines
        ),
    }
