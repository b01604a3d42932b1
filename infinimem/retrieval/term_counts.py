"""A few texts compared with each other, and the terms of a few documents, without an index.

An index of the whole library would take longer to bring up to date, and in an import each consolidation would
do so anew.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from threading import Lock

import numpy as np
from immutables import Map

from infinimem.markdown.document import Document
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.tantivy_index import K1
from infinimem.store.view import View

B = 0.3
"""How much longer texts are held back, 0 to 1."""
DIGITS = 4
SPARE = 1000
"""Texts that are of no use any more, beside as many as are, before they go."""


class Postings:
    """By term, the numbers of the texts that hold it, and how often. Texts are added and never change."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[array[int], array[int]]] = {}
        self._lengths = array("I")
        self._lock = Lock()  # what numpy looks at cannot grow

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, terms: Iterable[str]) -> int:
        """The number of a new text, by its terms with repeats."""
        counts = Counter(terms)
        with self._lock:
            number = len(self._lengths)
            for term, often in counts.items():
                texts, counted = self._held.setdefault(term, (array("I"), array("I")))
                texts.append(number)
                counted.append(often)
            self._lengths.append(counts.total())
        return number

    def scores(self, texts: Sequence[int], terms: Iterable[str]) -> list[float]:
        """The scores of some texts among each other, by BM25; 0 for one that holds no term.

        Args:
            texts: their numbers, each once.
            terms: what is looked for, each once.
        """
        if not texts or not (held := [self._held[term] for term in terms if term in self._held]):
            return [0.0] * len(texts)
        chosen = np.array(texts)
        with self._lock:
            lengths = np.array(self._lengths, float)
            found = np.concatenate([np.frombuffer(numbers, np.uintc) for numbers, _ in held])
            often = np.concatenate([np.frombuffer(counted, np.uintc) for _, counted in held])
            sizes = [len(numbers) for numbers, _ in held]
        place = np.full(len(lengths), -1)
        place[chosen] = np.arange(len(chosen))
        at, term = place[found], np.repeat(np.arange(len(held)), sizes)
        at, term, often = at[at >= 0], term[at >= 0], often[at >= 0]
        lengths = lengths[chosen]
        norms = K1 * (1 - B + B * lengths / (lengths.mean() or 1.0))
        frequency = np.bincount(term, minlength=len(held))
        rarity = np.log1p((len(chosen) - frequency + 0.5) / (frequency + 0.5))
        parts = rarity[term] * often * (K1 + 1) / (often + norms[at])
        scores: list[float] = np.bincount(at, parts, len(chosen)).round(DIGITS).tolist()
        return scores

    def only(self, texts: Iterable[int]) -> Postings:
        """These alone, numbered in this order."""
        kept = {old: new for new, old in enumerate(texts)}
        found = Postings()
        found._lengths = array("I", [self._lengths[old] for old in kept])
        for term, (numbers, counted) in self._held.items():
            pairs = [(kept[old], often) for old, often in zip(numbers, counted, strict=True) if old in kept]
            if pairs:
                found._held[term] = array("I", [at for at, _ in pairs]), array("I", [n for _, n in pairs])
        return found


class TermCounts:
    """The terms of a library's documents, read when first asked for and handed from snapshot to snapshot.

    An entry is counted by what its own line says: its text, who said it and when.

    Args:
        language: that the terms are made in.
        postings: of these documents, and of others.
        numbers: of the documents that were read, by id.
    """

    def __init__(
        self, language: str, postings: Postings | None = None, numbers: Map[str, int] | None = None
    ) -> None:
        self.language = language
        self._postings, self._numbers = postings or Postings(), numbers or Map()

    def scores(self, view: View, doc_ids: Collection[str], terms: Iterable[str]) -> dict[str, float]:
        """Those of some documents that hold any of these terms, and their scores among all of them."""
        known = self._numbers
        if unread := [doc_id for doc_id in doc_ids if doc_id not in known]:
            pieces = Pieces(view, Origins(view, KnownLines(()), lambda _: None))
            known = known.update((one, self._postings.add(_terms(view, pieces, one))) for one in unread)
            self._numbers = known
        scores = self._postings.scores([known[doc_id] for doc_id in doc_ids], terms)
        return {doc_id: score for doc_id, score in zip(doc_ids, scores, strict=True) if score}

    def handed_on(self, changed: Collection[str]) -> TermCounts:
        """What a snapshot begins with that differs in these documents."""
        postings, numbers = self._postings, self._numbers
        for doc_id in changed:
            if doc_id in numbers:
                numbers = numbers.delete(doc_id)
        if len(postings) > 2 * len(numbers) + SPARE:
            postings = postings.only(numbers.values())
            numbers = Map(zip(numbers, range(len(numbers)), strict=True))
        return TermCounts(self.language, postings, numbers)


def _terms(view: View, pieces: Pieces, doc_id: str) -> Iterable[str]:
    """The terms of a document's heading blocks; none of one that is gone."""
    document = view.document(doc_id) if doc_id in view else Document.empty(doc_id)
    for _, terms in pieces.parts(document):
        yield from terms.split()


def term_counts(view: View, known: TermCounts | None, changed: Collection[str] | None) -> TermCounts:
    """The one of a library (`View.derived`)."""
    language = view.settings.search.language
    if known is None or changed is None or known.language != language:
        return TermCounts(language)
    return known.handed_on(changed)
