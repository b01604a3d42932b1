"""Documents as resources: infinimem://doc/topics/home. An address is looked up like any id, never joined."""

from __future__ import annotations

from urllib.parse import quote, unquote

from mcp import MCPError
from mcp.types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text, visible
from infinimem.store.view import View
from infinimem.tools.tool import shown

PREFIX = "infinimem://doc/"
MARKDOWN = "text/markdown"
PAGE = 100
MAX_URI = 4000
MAX_TEXT = 400_000
"""Characters of one document; what is longer is read with read_lines."""

TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            name="document",
            title="Document",
            uri_template=f"{PREFIX}{{+id}}",
            description="A document of the memory by its id, as list_docs gives it",
            mime_type=MARKDOWN,
        )
    ]
)


def listed(view: View, cursor: str | None) -> ListResourcesResult:
    """A page of the documents of the default scope.

    Args:
        view: the library.
        cursor: what the page before named as the next one.

    Raises:
        MCPError: the cursor is none of ours.
    """
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise MCPError(INVALID_PARAMS, "this cursor is none; list again from the start")
    ids, start = view.ids(), int(cursor or 0)
    rows = [(doc_id, view.document(doc_id)) for doc_id in ids[start : start + PAGE]]
    resources = [
        Resource(
            name=doc_id,
            uri=PREFIX + quote(doc_id, errors="surrogateescape"),
            description=shown(document.summary) or None,
            mime_type=MARKDOWN,
        )
        for doc_id, document in rows
    ]
    more = str(start + PAGE) if start + PAGE < len(ids) else None
    return ListResourcesResult(resources=resources, next_cursor=more)


def read(view: View, uri: str) -> ReadResourceResult:
    """A document's text, control characters made visible.

    Raises:
        MCPError: no document has this address, or it cannot be read.
    """
    if not uri.startswith(PREFIX) or len(uri) > MAX_URI:
        raise MCPError(INVALID_PARAMS, f"this is no document of the memory; addresses begin with {PREFIX}")
    try:
        document = view.document(view.resolve(unquote(uri.removeprefix(PREFIX), errors="surrogateescape")))
        text = document.text(1, len(document.lines))
    except LibraryError as error:
        raise MCPError(INVALID_PARAMS, shown(str(error))) from error
    if len(text) > MAX_TEXT:
        raise MCPError(INVALID_PARAMS, f"{document.id} is too long for one reading; use read_lines")
    safe = "\n".join(visible(clean_text(line)) for line in text.split("\n"))
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=safe)])
