"""Heading partitions ranked by Okapi BM25, by which the paper's readers supplement what a model selected.

In: a snapshot, a question, and the documents that are left out. Out: heading blocks, and turns that no entry
cites yet, best first. Of a large library the index ranks, for this looks at every partition.

Source: HeadingPartitions and BM25Fallback of Algorithm 3, arXiv 2606.10677; the package rank-bm25.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from infinimem.model import Retrieved
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.strategies.readers.shown import as_shown, shown
from infinimem.terms import analyzer

MANY = 300
"""Documents, and turns that no entry cites yet, up to which each partition is looked at; of more the index
ranks."""
K1, B = 1.5, 0.75


class _Partitions:
    """Those of a snapshot: each with its document, first and last line as that is shown, and its terms."""

    def __init__(self, view: View, *_: object) -> None:
        from rank_bm25 import BM25Okapi

        self.places: list[tuple[str, int, int]] = []
        self.terms: list[list[str]] = []
        pieces = Pieces(view, Origins(view, KnownLines(()), lambda _: None))
        for doc_id in view.ids():
            for block, terms in pieces.parts(as_shown(view, doc_id)):
                self._add(doc_id, block.start_line, block.end_line, terms)
        for place in filter(None, map(view.entry, view.unfiled())):
            lines = (place.start_line, place.end_line)
            self._add(place.doc_id, *lines, pieces.terms_at(view.document(place.doc_id), *lines))
        self.engine = BM25Okapi(self.terms, k1=K1, b=B) if self.terms else None

    def _add(self, doc_id: str, start: int, end: int, terms: str) -> None:
        if terms:
            self.places.append((doc_id, start, end))
            self.terms.append(terms.split())


def best_partitions(view: View, question: str, limit: int, without: Collection[str] = ()) -> list[Retrieved]:
    """Return the partitions that answer a question best, of the documents that are not left out; ties by
    document and line."""
    if len(view.ids()) + len(view.unfiled()) > MANY:
        found = searcher(view).blocks(question, limit * (len(without) + 1))
        return [block for block in found if block.doc_id not in without][:limit]
    held = view.derived(_Partitions)
    terms = analyzer(view.settings.search.language).query_terms(question)
    wanted = frozenset(terms)
    chosen = [
        at
        for at, (doc_id, _, _) in enumerate(held.places)
        if doc_id not in without and not wanted.isdisjoint(held.terms[at])
    ]
    if not chosen or held.engine is None:
        return []
    scores = (round(score, 6) for score in held.engine.get_batch_scores(terms, chosen))
    best = sorted(zip(scores, chosen, strict=True), key=lambda one: (-one[0], held.places[one[1]]))[:limit]
    return [replace(shown(view, *held.places[at]), score=score) for score, at in best]
