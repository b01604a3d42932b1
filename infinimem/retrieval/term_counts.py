"""A few texts compared with each other, and the terms of a few documents, without an index.

An index of the whole library would take longer to bring up to date, and in an import each consolidation would
do so anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.tantivy_index import K1
from infinimem.store.view import View

B = 0.3
"""How much longer texts are held back, 0 to 1."""
DIGITS = 4

NOTHING = Document.empty("")


@dataclass(frozen=True, eq=False)
class Bag:
    """The terms of a text, as numbers: each once, and how often it is there."""

    terms: NDArray[np.int32]
    counts: NDArray[np.int32]


class Numbers(defaultdict[str, int]):
    """A number for each term; who asks for that of a new one gives it the next."""

    def __init__(self) -> None:
        super().__init__(count().__next__)

    def bag(self, terms: Iterable[str]) -> Bag:
        """A text by its terms, with repeats."""
        counts = Counter(terms)
        return Bag(
            np.array([self[term] for term in counts], np.int32), np.array([*counts.values()], np.int32)
        )


def compared(bags: Sequence[Bag], terms: Iterable[str], numbers: Numbers) -> list[float]:
    """The scores of a few texts among each other, by BM25; 0 for one that holds no term.

    Args:
        bags: the texts.
        terms: what is looked for, each once.
        numbers: those of the bags.
    """
    if not bags:
        return []
    lengths = np.array([bag.counts.sum() for bag in bags], float)
    norms = K1 * (1 - B + B * lengths / (lengths.mean() or 1.0))
    wanted = np.zeros(len(numbers), bool)
    wanted[[numbers[term] for term in terms if term in numbers]] = True
    held = np.concatenate([bag.terms for bag in bags])
    here = wanted[held]
    held, often = held[here], np.concatenate([bag.counts for bag in bags])[here]
    texts = np.repeat(np.arange(len(bags)), [len(bag.terms) for bag in bags])[here]
    frequency = np.bincount(held)[held]
    rarity = np.log1p((len(bags) - frequency + 0.5) / (frequency + 0.5))
    parts = rarity * often * (K1 + 1) / (often + norms[texts])
    scores: list[float] = np.bincount(texts, parts, len(bags)).round(DIGITS).tolist()
    return scores


@dataclass(frozen=True, eq=False)
class DocumentTerms:
    """The terms of a document's heading blocks."""

    document: Document
    language: str
    """That they were made in."""
    bag: Bag


class TermCounts:
    """The terms of a library's documents, read when first asked for and handed from snapshot to snapshot.

    An entry is counted by what its own line says: its text, who said it and when.
    """

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._known: dict[str, DocumentTerms] = {}

    def scores(self, view: View, doc_ids: Collection[str], terms: Iterable[str]) -> dict[str, float]:
        """Those of some documents that hold any of these terms, and their scores among all of them."""
        pieces = Pieces(view, Origins(view, KnownLines(()), lambda _: None))
        bags = [self._of(view, pieces, doc_id) for doc_id in doc_ids]
        scores = compared(bags, terms, self._numbers)
        return {doc_id: score for doc_id, score in zip(doc_ids, scores, strict=True) if score}

    def drop(self, doc_ids: Collection[str]) -> None:
        """Hold no longer what documents were that changed."""
        for doc_id in doc_ids:
            self._known.pop(doc_id, None)

    def _of(self, view: View, pieces: Pieces, doc_id: str) -> Bag:
        document = view.document(doc_id) if doc_id in view else NOTHING
        language, one = view.settings.search.language, self._known.get(doc_id)
        if one is None or one.document is not document or one.language != language:
            blocks = (block for block in partitions(document) if block.text.strip())
            bag = self._numbers.bag(
                term
                for block in blocks
                for term in pieces.terms_at(document, block.start_line, block.end_line).split()
            )
            self._known[doc_id] = one = DocumentTerms(document, language, bag)
        return one.bag


def term_counts(_: View, known: TermCounts | None, changed: Collection[str] | None) -> TermCounts:
    """The one of a library (`View.derived`)."""
    counts = known or TermCounts()
    counts.drop(changed or ())
    return counts
