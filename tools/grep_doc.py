"""grep_doc: every line of one document in which a pattern occurs."""

from __future__ import annotations

from functools import partial

from infinimem.retrieval.grep import compile_pattern, first_matches
from infinimem.store.view import View

from .compact import rows
from .grep import CONTEXT, IGNORE_CASE, PATTERN, matches
from .tool import DOC_ID, Result, Tool

DESCRIPTION = (
    "Find a regular expression (RE2 syntax, case-insensitive) in one document. "
    "Gives line numbers, day, speaker, words and lines around."
)
LIMIT = 100
PARAMETERS = {
    "type": "object",
    "properties": {
        "doc_id": DOC_ID,
        "pattern": PATTERN,
        "context_lines": CONTEXT,
        "ignore_case": IGNORE_CASE,
    },
    "required": ["doc_id", "pattern"],
    "additionalProperties": False,
}


def grep_doc(
    view: View, doc_id: str, pattern: str, context_lines: int = 3, ignore_case: bool = True
) -> Result:
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


tool = partial(Tool, "grep_doc", DESCRIPTION, PARAMETERS, grep_doc, rows)
"""The tool, once it is given a library's view."""
