"""A few texts compared with each other, and the terms of a few documents, without an index.

An index of the whole library would take longer to bring up to date, and in an import each consolidation would
do so anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.tantivy_index import K1, rarity
from infinimem.store.view import View

B = 0.3
"""How much longer texts are held back, 0 to 1."""
DIGITS = 4

NOTHING = Document.empty("")
T = TypeVar("T")


def compared(holding: Iterable[Mapping[T, int]], lengths: Mapping[T, int]) -> dict[T, float]:
    """The scores of those of a few texts that hold a term, among all of them, by BM25.

    Args:
        holding: for each term the texts that hold it, and how often.
        lengths: terms of each text.
    """
    mean = sum(lengths.values()) / max(len(lengths), 1) or 1.0  # of texts without a term none is asked for
    norms = {text: K1 * (1 - B + B * length / mean) for text, length in lengths.items()}
    scores: dict[T, float] = {}
    for counts in holding:
        weight = rarity(len(lengths), len(counts))
        for text, often in counts.items():
            scores[text] = scores.get(text, 0.0) + weight * often * (K1 + 1) / (often + norms[text])
    return {text: round(score, DIGITS) for text, score in scores.items()}


@dataclass(frozen=True, eq=False)
class DocumentTerms:
    """The terms of a document's heading blocks."""

    document: Document
    language: str
    """That they were made in."""
    counts: Mapping[str, int]
    length: int
    """How many they are, repeats counted."""


class TermCounts:
    """The terms of a library's documents, read when first asked for and handed from snapshot to snapshot.

    An entry is counted by what its own line says: its text, who said it and when.
    """

    def __init__(self) -> None:
        self._known: dict[str, DocumentTerms] = {}

    def texts(
        self, view: View, doc_ids: Collection[str], terms: Sequence[str]
    ) -> tuple[list[dict[str, int]], dict[str, int]]:
        """For each term those of some documents that hold it, and how often; and how many terms each has."""
        pieces = Pieces(view, Origins(view, KnownLines(())))
        chosen = {doc_id: self._of(view, pieces, doc_id) for doc_id in doc_ids}
        holding = [
            {doc_id: one.counts[term] for doc_id, one in chosen.items() if term in one.counts}
            for term in terms
        ]
        if len(self._known) > len(view.ids("all")):  # some are gone
            self._known = {doc_id: one for doc_id, one in self._known.items() if doc_id in view}
        return holding, {doc_id: one.length for doc_id, one in chosen.items()}

    def _of(self, view: View, pieces: Pieces, doc_id: str) -> DocumentTerms:
        document = view.document(doc_id) if doc_id in view else NOTHING
        language, one = view.settings.search.language, self._known.get(doc_id)
        if one is None or one.document is not document or one.language != language:
            counts: Counter[str] = Counter()
            for block in partitions(document):
                if block.text.strip():
                    counts.update(pieces.terms_at(document, block.start_line, block.end_line).split())
            self._known[doc_id] = one = DocumentTerms(document, language, counts, counts.total())
        return one


def term_counts(_: View, known: TermCounts | None, __: Collection[str] | None) -> TermCounts:
    """The one of a library (`View.derived`)."""
    return known or TermCounts()
