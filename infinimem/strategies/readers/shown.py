"""What readers show of a whole document: its lines, or the text that a model wrote of them.

A text lies in the strategy's `texts` folder (infinimem/spec.py), under the document's name. Its header tells
the digest of the lines that it was written of: it is current while the document has these lines, neither more
nor fewer, wherever in it they stand. A sentence is a list item that ends in its lines' seqs: `{41, 43}`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from hashlib import sha256
from itertools import chain

from infinimem.markdown.document import Document
from infinimem.model import Retrieved
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View

_SEQS = re.compile(r" \{([0-9]{1,18}(?:, [0-9]{1,18})*)\}(?=\n|\Z)")


def text_id(view: View, doc_id: str) -> str:
    """Return the id that the text of a document has."""
    return view.spec.texts + doc_id.split("/", 1)[-1]


def digest(document: Document, of: Collection[int] | None = None) -> str:
    """Return what a text of these lines, or `of` some of them, says that it was written of."""
    some = (place for place in document.entries if of is None or place.seq in of)
    lines = sorted((place.seq, place.entry.line.rstrip()) for place in some)
    return sha256("\n".join(line for _, line in lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def current_text(view: View, doc_id: str) -> Document | None:
    """Return the text of a document if one was written of the very lines that stand in it."""
    if not view.spec.texts or not doc_id.startswith(view.spec.writes):
        return None
    name = text_id(view, doc_id)
    text = view.document(name) if name in view else None
    is_current = text and text.header.values.get("digest") == digest(view.document(doc_id))
    return text if is_current else None


def as_shown(view: View, doc_id: str) -> Document:
    """Return what readers show for a document: itself, unless the strategy's setting `shows` is "free" and a
    text of its lines is current."""
    own = view.settings.of(view.spec.settings) if view.spec.settings else None
    text = current_text(view, doc_id) if getattr(own, "shows", "") == "free" else None
    return text or view.document(doc_id)


def shown(view: View, doc_id: str, start: int = 1, end: int | None = None) -> Retrieved:
    """Return a document's body as readers show it, or some lines of that. A text cites the turns behind the
    lines that it names; if it names none, behind all lines of the document."""
    search, document = searcher(view), as_shown(view, doc_id)
    told = search.lines_at(document.id, start, end or len(document.lines))
    if document.id == doc_id:
        return told
    lines = search.entries_at(doc_id, 1, len(view.document(doc_id).lines))
    here = set(chain.from_iterable(line.seqs for line in lines))
    ends = (_SEQS.search(line) for line in told.text.split("\n"))
    seqs = tuple(
        tuple(seq for seq in map(int, end[1].split(", ")) if seq in here) if end else () for end in ends
    )
    named = set(chain.from_iterable(seqs))
    behind = [line for line in lines if named.intersection(line.seqs)] or lines
    sources = {line.source for line in behind}
    return replace(
        told,
        text=_SEQS.sub("", told.text),
        told=seqs,
        origin=tuple(dict.fromkeys(seq for line in behind for seq in line.origin)),
        source=sources.pop() if len(sources) == 1 else None,
    )
