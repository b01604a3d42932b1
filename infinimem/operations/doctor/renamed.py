"""Documents that a person renamed: their headers still say the old id. Pure; used by `doctor --fix`."""

from __future__ import annotations

import re
from collections import Counter

from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.model import CURRENT
from infinimem.store.render import Rendered
from infinimem.store.spec import ARCHIVE, RECORDS, TOPICS
from infinimem.store.view import View, aliases_of

_OWN_LINE = re.compile(r"id: \S+\s*\Z|aliases: *(?:\[.*\])?\s*\Z| *- ")
"""The lines that may go from a header: what they say is said again."""


def said_id(document: Document) -> str | None:
    """The id that the header says, where it is another than the file's."""
    named = document.header.values.get("id")
    return named if isinstance(named, str) and named != document.id else None


def mended(document: Document, view: View) -> Document | None:
    """The document under the id of its file; a topic that has moved keeps the old name as an alias.

    None where there is nothing to mend, no room for it, or the header is not the program's to mend: what was
    said and receipts stay as they are.
    """
    named = said_id(document)
    if named is None or not (document.id == CURRENT or document.id.startswith((TOPICS, ARCHIVE, *RECORDS))):
        return None
    changes: dict[str, str | None] = {"id": quote(document.id)}
    if document.id.startswith(TOPICS) and named.startswith(TOPICS) and named not in view:
        names = dict.fromkeys([*aliases_of(document), named.rsplit("/", 1)[-1]])
        changes["aliases"] = flow(list(names))
    try:
        new = document.with_header(changes)
    except ValueError:
        return None
    return None if any(map(_is_told, Counter(document.lines) - Counter(new.lines))) else new


def _is_told(line: str) -> bool:
    """Whether a line of a header says more than an id or an alias: a comment, a value that goes on."""
    return "#" in line or not _OWN_LINE.match(line)


def renamed(view: View) -> Rendered:
    """All of them, mended."""
    done = Rendered()
    for doc_id in view.ids("all"):
        if not view.is_note(doc_id) and (document := mended(view.document(doc_id), view)):
            done.documents[doc_id] = document
    return done
