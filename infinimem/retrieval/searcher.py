"""Lexical search over one snapshot: entries, heading blocks, nearest documents. Calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from infinimem.model import Retrieved
from infinimem.retrieval.kin import related
from infinimem.retrieval.pieces import Piece, Pieces
from infinimem.retrieval.scoring import OWN_B, Field, Ranking
from infinimem.retrieval.tokenizer import query_terms
from infinimem.store.view import Scope, View


class Searcher:
    """Ranks what a snapshot holds. Indexes are built on first use and kept with it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._pieces = Pieces(view)
        self._entries: dict[Scope, _Index] = {}
        self._blocks: dict[Scope, _Index] = {}
        self._of: dict[str, list[Retrieved]] = {}
        self._documents: dict[str, tuple[str, ...]] = {}

    def entries(self, query: str, limit: int = 50, scope: Scope = "default") -> list[Retrieved]:
        """The entries that answer a query best; ties by document and line.

        Args:
            query: a question or keywords, any text.
            limit: at most so many.
            scope: which documents; the default one holds evidence that no entry cites yet.
        """
        if scope not in self._entries:
            self._entries[scope] = _Index(self._pieces, self._pieces.entries(scope))
        return self._entries[scope].best(query, limit)

    def blocks(self, query: str, limit: int = 10, scope: Scope = "default") -> list[Retrieved]:
        """The heading blocks that answer a query best; ties by document and line."""
        if scope not in self._blocks:
            self._blocks[scope] = _Index(self._pieces, self._pieces.blocks(scope))
        return self._blocks[scope].best(query, limit)

    def blocks_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """The heading blocks of a document that hold any of these lines, in order, with score 0."""
        if doc_id not in self._of:
            self._of[doc_id] = [piece.item for piece in self._pieces.blocks_of(self._view.document(doc_id))]
        return [block for block in self._of[doc_id] if block.start_line <= end and block.end_line >= start]

    def lines_at(self, doc_id: str, start: int, end: int) -> Retrieved:
        """These lines of a document's body as one piece, with score 0."""
        return self._pieces.lines_of(self._view.document(doc_id), start, end)

    def entries_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """The entries that begin in these lines, in order, with score 0."""
        return self._pieces.entries_of(self._view.document(doc_id), start, end)

    def order(self, query: str, items: Sequence[Retrieved]) -> list[Retrieved]:
        """These pieces, best first when compared with each other; ties keep their order."""
        wanted = query_terms(query)
        field = Field(
            [self._pieces.terms_at(item.doc_id, item.start_line, item.end_line) for item in items], OWN_B
        )
        scored = [replace(item, score=round(field.score(wanted, at), 4)) for at, item in enumerate(items)]
        return sorted(scored, key=lambda item: -item.score)

    def documents(self, text: str, limit: int = 50, ids: Sequence[str] | None = None) -> list[str]:
        """Ids of the documents lexically nearest to a text, those without a common word last.

        Args:
            text: of any length.
            limit: at most so many.
            ids: if given, only these are compared; else the default scope.
        """
        chosen = sorted(set(self._view.ids() if ids is None else ids))
        wanted = query_terms(text)
        field = Field([self._document(doc_id) for doc_id in chosen], OWN_B)
        scores = {doc_id: round(field.score(wanted, number), 4) for number, doc_id in enumerate(chosen)}
        return sorted(chosen, key=lambda doc_id: (-scores[doc_id], doc_id))[:limit]

    def _document(self, doc_id: str) -> tuple[str, ...]:
        if doc_id not in self._documents:
            self._documents[doc_id] = self._pieces.document_terms(doc_id)
        return self._documents[doc_id]


class _Index:
    """Pieces with their ranking."""

    def __init__(self, reader: Pieces, pieces: list[Piece]) -> None:
        self._items = [piece.item for piece in pieces]
        self._ranking = Ranking([piece.bags for piece in pieces], reader.wholes(pieces))

    def best(self, query: str, limit: int) -> list[Retrieved]:
        wanted = query_terms(query)
        ranked = self._ranking.best(wanted) or self._ranking.best(related(wanted))
        return [replace(self._items[at], score=score) for at, score in ranked[: max(limit, 0)]]


@lru_cache(maxsize=2)
def searcher(view: View) -> Searcher:
    """The searcher of a snapshot, made once; those of older snapshots are let go."""
    return Searcher(view)
