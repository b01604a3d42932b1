"""A few texts compared with each other, and the terms of a few documents, without rows.

Rows of the whole library would take longer to bring up to date, and in an import each consolidation would do
so anew.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import log1p
from threading import Lock

from infinimem.index.pieces import Pieces
from infinimem.index.words import K1
from infinimem.store.view import View

B = 0.3
"""How much longer texts are held back, 0 to 1."""
DIGITS = 4
SPARE = 1000
"""Texts that are of no use any more, beside as many as are, before they go."""


def compared(texts: Sequence[Iterable[str]], terms: Iterable[str]) -> list[float]:
    """Return the scores of some texts among each other, by BM25; 0 for one that holds no term.

    Args:
        texts: their terms, with repeats.
        terms: what is looked for, each once.
    """
    counts = TermCounts("")
    numbers = [counts.add(text) for text in texts]
    return counts.compared(numbers, terms)


class TermCounts:
    """By term, the numbers of the texts that hold it, and how often. Texts are added and never change.

    Args:
        language: that the terms are made in.
        before: one with texts of other documents; what is added here is added there too.
        without: documents whose texts do not count any more.
    """

    _numbers: dict[str, int]
    _held: dict[str, tuple[array[int], array[int]]]
    _lengths: array[int]
    _lock: Lock

    def __init__(
        self, language: str, before: TermCounts | None = None, without: Collection[str] = ()
    ) -> None:
        self.language = language
        kept = {name: at for name, at in before._numbers.items() if name not in without} if before else {}
        if before and len(before._lengths) <= 2 * len(kept) + SPARE:
            self._numbers, self._held = kept, before._held
            self._lengths, self._lock = before._lengths, before._lock
        else:
            self._numbers, self._held = {}, {}
            self._lengths, self._lock = array("I"), Lock()

    def add(self, terms: Iterable[str]) -> int:
        """Return the number of a new text, by its terms with repeats."""
        counts = Counter(terms)
        with self._lock:
            for term, often in counts.items():
                texts, counted = self._held.setdefault(term, (array("I"), array("I")))
                texts.append(len(self._lengths))
                counted.append(often)
            self._lengths.append(counts.total())
            return len(self._lengths) - 1

    def compared(self, texts: Sequence[int], terms: Iterable[str]) -> list[float]:
        """Return the scores of some texts, by their numbers; as the function does."""
        with self._lock:
            mean = sum(map(self._lengths.__getitem__, texts)) / max(len(texts), 1) or 1.0
            scores = dict.fromkeys(texts, 0.0)
            for term in terms:
                pairs = zip(*self._held.get(term, ((), ())), strict=True)
                there = [(text, often) for text, often in pairs if text in scores]
                rarity = log1p((len(texts) - len(there) + 0.5) / (len(there) + 0.5))
                for text, often in there:
                    norm = K1 * (1 - B + B * self._lengths[text] / mean)
                    scores[text] += rarity * often * (K1 + 1) / (often + norm)
        return [round(score, DIGITS) for score in scores.values()]

    def scores(self, view: View, doc_ids: Collection[str], terms: Iterable[str]) -> dict[str, float]:
        """Return those of some documents that hold any of these terms, with their scores among all of them.

        An entry is counted by what its own line says: its text, who said it and when.
        """
        pieces, numbers = Pieces(view), self._numbers
        for name in doc_ids:
            if name not in numbers:
                parts = pieces.parts(view.document(name)) if name in view else ()
                numbers[name] = self.add(term for _, joined in parts for term in joined.split())
        scores = self.compared([numbers[name] for name in doc_ids], terms)
        return {name: score for name, score in zip(doc_ids, scores, strict=True) if score}


def term_counts(view: View, known: TermCounts | None, changed: Collection[str] | None) -> TermCounts:
    """Return those of a library (`View.derived`)."""
    language = view.settings.search.language
    if known is None or changed is None or known.language != language:
        return TermCounts(language)
    return TermCounts(language, known, frozenset(changed))
