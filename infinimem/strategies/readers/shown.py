"""Documents as readers show them, or the texts that were written of them, and partitions of both.

Source: HeadingPartitions and BM25Fallback of Infini Memory's Algorithm 3, arXiv 2606.10677.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from hashlib import sha256
from itertools import chain

from infinimem.index.pieces import Pieces
from infinimem.index.search import searcher
from infinimem.markdown.document import Document
from infinimem.model import Retrieved
from infinimem.store.view import View
from infinimem.terms import analyzer

MANY = 300
"""Documents and uncited turns up to which each partition is looked at; of more the index ranks."""
K1, B = 1.5, 0.75

_SEQS = re.compile(r" \{([0-9]{1,18}(?:, [0-9]{1,18})*)\}(?=\n|\Z)")


def text_id(view: View, doc_id: str) -> str:
    """Return the id that the text of a document has."""
    return view.spec.texts + doc_id.split("/", 1)[-1]


def digest(document: Document, of: Collection[int] | None = None) -> str:
    """Return what a text of these lines, or `of` some of them, wherever they stand, says of itself."""
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
    """Return what readers show for a document: itself, or its text if the strategy `shows` those."""
    own = view.settings.of(view.spec.settings) if view.spec.settings else None
    text = current_text(view, doc_id) if getattr(own, "shows", "") == "free" else None
    return text or view.document(doc_id)


def shown(view: View, doc_id: str, start: int = 1, end: int | None = None) -> Retrieved:
    """Return a document's body as readers show it, or some lines of that. A text cites the turns behind
    the lines that it names (`{41, 43}` ends an item); if it names none, behind all lines of the document."""
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


class _Partitions:
    """Heading blocks, and turns that no entry cites yet: document, first and last line as that is shown."""

    def __init__(self, view: View, *_: object) -> None:
        from rank_bm25 import BM25Okapi

        pieces = Pieces(view)
        terms = {
            (doc_id, block.start_line, block.end_line): terms
            for doc_id in view.ids()
            for block, terms in pieces.parts(as_shown(view, doc_id))
        }
        for place in filter(None, map(view.entry, sorted(view.unfiled))):
            lines = (place.start_line, place.end_line)
            terms[place.doc_id, *lines] = pieces.terms_at(view.document(place.doc_id), *lines)
        self.terms = {place: some.split() for place, some in terms.items() if some}
        self.engine = BM25Okapi([*self.terms.values()], k1=K1, b=B) if self.terms else None


def best_partitions(view: View, question: str, limit: int, without: Collection[str] = ()) -> list[Retrieved]:
    """Return the partitions that answer a question best by Okapi BM25; of a large library the index ranks."""
    if len(view.ids()) + len(view.unfiled) > MANY:
        found = searcher(view).blocks(question, limit * (len(without) + 1))
        return [block for block in found if block.doc_id not in without][:limit]
    held = view.derived(_Partitions)
    terms = analyzer(view.settings.search.language).query_terms(question)
    wanted = frozenset(terms)
    rows = {
        at: place
        for at, (place, own) in enumerate(held.terms.items())
        if place[0] not in without and not wanted.isdisjoint(own)
    }
    scores = held.engine.get_batch_scores(terms, [*rows]) if held.engine else ()
    best = sorted((-round(score, 6), place) for score, place in zip(scores, rows.values(), strict=True))
    return [replace(shown(view, *place), score=-score) for score, place in best[:limit]]
