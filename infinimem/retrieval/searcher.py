"""Search over one snapshot: entries, heading blocks, nearest documents. Calls no language model."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from infinimem.markdown.sections import partitions
from infinimem.model import Retrieved
from infinimem.retrieval.cache import cache_folder, is_large
from infinimem.retrieval.priors import related
from infinimem.store.view import Scope, View
from infinimem.terms import analyzer

if TYPE_CHECKING:
    from infinimem.retrieval.index import Indexed
    from infinimem.retrieval.lexical import Kind
    from infinimem.retrieval.pieces import Pieces
    from infinimem.retrieval.rows import Place
    from infinimem.retrieval.scoring import TermCounts

log = logging.getLogger("infinimem")

CANDIDATES = {"entries": 2048, "blocks": 512}
"""Rows that are scored, where more hold a term of the query: so many that the best ten are among them. An
entry is also found by what stands around it, so its own words say less."""
COMPARED = 2000
"""Documents that are compared with a text one by one; of more, those that hold the best blocks."""


def indexed(view: View) -> Indexed:
    """The index of a snapshot; on disk where it is large and the cache directory can be used."""
    from infinimem.retrieval.index import in_memory

    if view.stored and is_large(view):
        from infinimem.retrieval.disk import disk_index

        folder = cache_folder(view.stored.root, "index", view.spec.name)
        try:
            if folder:
                return disk_index(folder).of(view)
            why = "the cache directory cannot be used"
        except (OSError, ValueError) as error:
            why = f"{folder}: {error}"
        log.warning("the index is built in memory, each time anew (%s)", why)
    return in_memory(view)


class Searcher:
    """Ranks what a snapshot holds. Its index is opened, or built, on first use."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._words = analyzer(view.settings.search.language)

    @cached_property
    def _index(self) -> Indexed:
        return indexed(self._view)

    @cached_property
    def _term_counts(self) -> TermCounts:
        from infinimem.retrieval.scoring import TermCounts

        return TermCounts(self._view)

    @property
    def _pieces(self) -> Pieces:
        return self._index.pieces

    def entries(self, query: str, limit: int = 50, scope: Scope = "default") -> list[Retrieved]:
        """The entries that answer a query best; ties by document and line.

        Args:
            query: a question or keywords, any text.
            limit: at most so many.
            scope: which documents; the default one holds evidence that no entry cites yet.
        """
        return self._found("entries", query, limit, scope)

    def blocks(self, query: str, limit: int = 10, scope: Scope = "default") -> list[Retrieved]:
        """The heading blocks that answer a query best; ties by document and line."""
        return self._found("blocks", query, limit, scope)

    def blocks_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """The heading blocks of a document that hold any of these lines, in order, with score 0."""
        document = self._view.document(doc_id)
        return [
            self._pieces.lines(document, block.start_line, block.end_line, block.headings)
            for block in partitions(document)
            if block.start_line <= end and block.end_line >= start and block.text.strip()
        ]

    def lines_at(self, doc_id: str, start: int, end: int) -> Retrieved:
        """These lines of a document's body as one piece, with score 0; cut to what there is."""
        document = self._view.document(doc_id)
        start = min(max(start, document.header.end + 1), max(len(document.lines), 1))
        end = min(max(end, start), len(document.lines))
        return self._pieces.lines(document, start, end, document.path_at(start))

    def entries_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """The entries that begin in these lines, in order, with score 0."""
        places = self._view.document(doc_id).entries_in(start, end)
        return [self._pieces.entry(place) for place in places if place.start_line >= start]

    def order(self, query: str, items: Sequence[Retrieved]) -> list[Retrieved]:
        """These pieces, best first when compared with each other; ties keep their order."""
        from infinimem.retrieval.scoring import compared

        bags = [
            Counter(self._pieces.terms_at(self._view.document(item.doc_id), item.start_line, item.end_line))
            for item in items
        ]
        terms = self._words.query_terms(query)
        scores = compared([[bag[term] for term in terms] for bag in bags], [bag.total() for bag in bags])
        scored = [replace(item, score=score) for item, score in zip(items, scores, strict=True)]
        return sorted(scored, key=lambda item: -item.score)

    def documents(self, text: str, limit: int = 50, ids: Sequence[str] | None = None) -> list[str]:
        """Ids of the documents lexically nearest to a text, those without a common word last.

        Args:
            text: of any length.
            limit: at most so many.
            ids: if given, only these are compared; else the default scope. Few need no index.
        """
        from infinimem.retrieval.scoring import compared

        chosen = sorted(set(self._view.ids() if ids is None else ids))
        terms, near = self._words.query_terms(text), chosen
        if len(chosen) > COMPARED:
            best = self._index.best("blocks", text, terms, "default", COMPARED, COMPARED, words_only=True)
            near = sorted({place.doc_id for place, _ in best}.intersection(chosen))
        if ids is not None and near is chosen:
            held = self._term_counts.texts(near, terms)
        else:
            rows = self._index.rows
            held = rows.texts(rows.documents("blocks", near), terms)
        scores = dict(zip(near, compared(*held), strict=True))
        return sorted(chosen, key=lambda doc_id: (-scores.get(doc_id, 0.0), doc_id))[:limit]

    def _found(self, kind: Kind, query: str, limit: int, scope: Scope) -> list[Retrieved]:
        if limit <= 0:
            return []
        terms, many = self._words.query_terms(query), max(CANDIDATES[kind], 4 * limit)
        best = self._index.best(kind, query, terms, scope, limit, many)
        if not best and self._view.settings.search.language == "english":
            best = self._index.best(kind, query, related(terms), scope, limit, many)
        shown = ((self._shown(kind, place), score) for place, score in best)
        return [replace(item, score=score) for item, score in shown if item]

    def _shown(self, kind: Kind, place: Place) -> Retrieved | None:
        """What stands there; None where a note was saved meanwhile and is shorter now."""
        from infinimem.retrieval.pieces import passage

        document = self._view.document(place.doc_id)
        if place.end > len(document.lines):
            return None
        if kind == "blocks" or not document.entries:
            return self._pieces.lines(document, place.start, place.end, place.headings)
        if not place.seq:
            return passage(document, place.start, place.end)
        located = document.entries_in(place.start, place.start)
        return self._pieces.entry(located[0]) if located and located[0].entry.seq == place.seq else None


@lru_cache(maxsize=2)
def searcher(view: View) -> Searcher:
    """The searcher of a snapshot, made once; those of older snapshots are let go."""
    return Searcher(view)
