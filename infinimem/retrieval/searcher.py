"""Search over one snapshot: entries, heading blocks, nearest documents. Calls no language model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from infinimem.log import log
from infinimem.markdown.sections import partitions
from infinimem.model import Retrieved
from infinimem.retrieval.cache import cache_folder
from infinimem.retrieval.priors import related
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import Scope, View
from infinimem.terms import analyzer

if TYPE_CHECKING:
    from infinimem.retrieval.disk import DiskIndex
    from infinimem.retrieval.rows import Kind, Row
    from infinimem.retrieval.scoring import Ranking


COMPARED, GATHERED = 10_000, 2000
"""Documents that are compared with a text one by one; of more, the nearest so many by the index."""


def ranking(view: View) -> Ranking:
    """The ranking of a snapshot; by the index in the cache directory where files show it."""
    from infinimem.retrieval.disk import in_memory

    if view.stored:
        index = view.derived(_disk_index)
        try:
            if index:
                return index.of(view)
            why = "the cache directory cannot be used"
        except (OSError, ValueError) as error:
            why = f"{index and index.folder}: {error}"
        log.warning("the index is built in memory, each time anew (%s)", why)
    return in_memory(view)


def _disk_index(view: View, known: DiskIndex | None, _: Collection[str] | None) -> DiskIndex | None:
    """The one of a library, handed from snapshot to snapshot."""
    from infinimem.retrieval.disk import DiskIndex

    folder = view.stored and cache_folder(view.stored.root, "index", view.spec.name)
    if not folder:
        return None
    return known if known and known.folder == folder else DiskIndex(folder)


class Searcher:
    """Ranks what a snapshot holds. Its index is opened, or built, on first use."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._words = analyzer(view.settings.search.language)

    @property
    def _ranking(self) -> Ranking:
        return self._view.derived(_ranking)

    def entries(self, query: str, limit: int = 50, scope: Scope = "default") -> list[Retrieved]:
        """The entries that answer a query best; ties by document and line.

        Args:
            query: a question or keywords, any text.
            limit: at most so many.
            scope: which documents; the default one holds evidence that no entry cites yet.
        """
        return self._found("entries", query, limit, scope)

    def blocks(self, query: str, limit: int = 10, scope: Scope = "default") -> list[Retrieved]:
        """The heading blocks that answer a query best, and in the default scope the turns that stand for
        themselves (`View.unfiled`); ties by document and line."""
        found = self._found("blocks", query, limit, scope)
        if scope != "default" or not self._ranking.waiting:
            return found
        for item in self._found("entries", query, limit, scope):
            if item.doc_id.startswith(EVIDENCE):
                turn = self.lines_at(item.doc_id, item.start_line, item.end_line)
                found.append(replace(turn, text=item.text, score=item.score))
        return sorted(found, key=lambda item: (-item.score, item.doc_id, item.start_line))[:limit]

    def reasons(
        self, query: str, limit: int = 10, scope: Scope = "default"
    ) -> list[tuple[str, int, int, Mapping[str, float]]]:
        """Of the heading blocks that `blocks` ranks: document, first and last line, and what the score of
        each is made of (`Ranking.best`)."""
        parts: dict[Row, Mapping[str, float]] = {}
        self._best("blocks", query, limit, scope, parts)
        return [(row.doc_id, row.start, row.end, found) for row, found in parts.items()]

    def blocks_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """The heading blocks of a document that hold any of these lines, in order, with score 0."""
        document = self._view.document(doc_id)
        return [
            self._ranking.pieces.lines(document, block.start_line, block.end_line, block.headings)
            for block in partitions(document)
            if block.start_line <= end and block.end_line >= start and block.text.strip()
        ]

    def lines_at(self, doc_id: str, start: int, end: int) -> Retrieved:
        """These lines of a document's body as one piece, with score 0; cut to what there is."""
        document = self._view.document(doc_id)
        start = min(max(start, document.header.end + 1), max(len(document.lines), 1))
        end = min(max(end, start), len(document.lines))
        return self._ranking.pieces.lines(document, start, end, document.path_at(start))

    def entries_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """The entries that begin in these lines, in order, with score 0."""
        places = self._view.document(doc_id).entries_in(start, end)
        return [self._ranking.pieces.entry(place) for place in places if place.start_line >= start]

    def order(self, query: str, items: Sequence[Retrieved]) -> list[Retrieved]:
        """These pieces, best first when compared with each other; ties keep their order."""
        from infinimem.retrieval.term_counts import Postings

        postings, pieces = Postings(), self._ranking.pieces
        texts = [
            postings.add(pieces.terms_at(document, item.start_line, item.end_line).split())
            for item, document in ((item, self._view.document(item.doc_id)) for item in items)
        ]
        scores = postings.scores(texts, self._words.query_terms(query))
        scored = [replace(item, score=score) for item, score in zip(items, scores, strict=True)]
        return sorted(scored, key=lambda item: -item.score)

    def documents(self, text: str, limit: int = 50, ids: Sequence[str] | None = None) -> list[str]:
        """Ids of the documents lexically nearest to a text, those without a common word last.

        Args:
            text: of any length.
            limit: at most so many.
            ids: if given, only these are compared, with each other; else the default scope. Few need no
                index.
        """
        from infinimem.retrieval.term_counts import term_counts

        chosen = set(self._view.ids() if ids is None else ids)
        terms = self._words.query_terms(text)
        if ids is None or len(chosen) > COMPARED:
            near = self._ranking.documents(terms, chosen, GATHERED)
        else:
            scores = self._view.derived(term_counts).scores(self._view, chosen, terms)
            near = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))
        rest = () if len(near) >= limit else sorted(chosen.difference(near))
        return [*near, *rest][:limit]

    def frequencies(self, terms: Iterable[str]) -> tuple[dict[str, int], int]:
        """How many entries hold each term, and how many there are."""
        return self._ranking.frequencies(terms)

    def scores(self, query: str, limit: int = 50, scope: Scope = "default") -> list[tuple[str, int, float]]:
        """As `entries`, but of each only the id of its document, its seq (0 for none) and its score: nothing
        is read."""
        return [(row.doc_id, row.seq, score) for row, score in self._best("entries", query, limit, scope)]

    def _found(self, kind: Kind, query: str, limit: int, scope: Scope) -> list[Retrieved]:
        shown = ((self._shown(kind, row), score) for row, score in self._best(kind, query, limit, scope))
        return [replace(item, score=score) for item, score in shown if item]

    def _best(
        self,
        kind: Kind,
        query: str,
        limit: int,
        scope: Scope,
        parts: dict[Row, Mapping[str, float]] | None = None,
    ) -> Sequence[tuple[Row, float]]:
        if limit <= 0:
            return []
        terms = self._words.query_terms(query)
        best = self._ranking.best(kind, query, terms, scope, limit, parts)
        if not best and self._view.settings.search.language == "english":
            best = self._ranking.best(kind, query, related(terms), scope, limit, parts)
        return best

    def _shown(self, kind: Kind, row: Row) -> Retrieved | None:
        """What stands there; None where a note was saved meanwhile and is shorter now."""
        from infinimem.retrieval.pieces import part, passage
        from infinimem.retrieval.rows import PIECES

        document = self._view.document(row.doc_id)
        if row.end > len(document.lines):
            return None
        if kind == "blocks" or not document.entries:
            item = self._ranking.pieces.lines(document, row.start, row.end, document.path_at(row.start))
        elif not row.seq:
            item = passage(document, row.start, row.end)
        else:
            located = document.entries_in(row.start, row.start)
            if not located or located[0].entry.seq != row.seq:
                return None
            item = self._ranking.pieces.entry(located[0])
        piece = row.number & (1 << PIECES) - 1
        return part(document, item, piece) if piece else item


def searcher(view: View) -> Searcher:
    """The searcher of a snapshot, whose ranking is made once."""
    return Searcher(view)


def _ranking(view: View, _: Ranking | None, __: Collection[str] | None) -> Ranking:
    return ranking(view)
