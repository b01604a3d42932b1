"""A few texts compared with each other, and the terms of a few documents, without an index.

An index of the whole library would take longer to bring up to date, and in an import each consolidation would
do so anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions
from infinimem.model import Located
from infinimem.retrieval.origins import Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.tantivy_index import K1, rarity
from infinimem.store.lines import drawn_from
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View

B = 0.3
"""How much longer texts are held back, 0 to 1."""
DIGITS = 4


def compared(occurrences: Sequence[Sequence[int]], lengths: Sequence[int]) -> list[float]:
    """The scores of a few texts among themselves, by BM25.

    Args:
        occurrences: how often each text holds each term: texts by terms.
        lengths: terms of each text.
    """
    mean = sum(lengths) / max(len(lengths), 1)
    scores = [0.0] * len(lengths)
    for counts in zip(*occurrences, strict=True):
        weight = rarity(len(counts), sum(map(bool, counts)))
        for at, often in enumerate(counts):
            if often:
                scores[at] += weight * often * (K1 + 1) / (often + K1 * (1 - B + B * lengths[at] / mean))
    return [round(score, DIGITS) for score in scores]


@dataclass(frozen=True, eq=False)
class DocumentTerms:
    """The terms of a document's heading blocks."""

    counts: Mapping[str, int]
    length: int
    """How many they are, repeats counted."""
    language: str
    """That they were made in."""
    asked: Mapping[int, Located | None]
    """The lines that were looked up for it, by seq: an entry is also counted by who said it, and when."""


NOTHING = DocumentTerms({}, 0, "", {})

_kept: WeakKeyDictionary[Document, DocumentTerms] = WeakKeyDictionary()


class TermCounts:
    """The term counts of a snapshot's documents.

    Args:
        view: the snapshot.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._language = view.settings.search.language
        self._own: dict[str, DocumentTerms] = {}

    def texts(self, doc_ids: Sequence[str], terms: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """How often documents hold terms, and how many terms they have."""
        found = [self._of(doc_id) for doc_id in doc_ids]
        return [[one.counts.get(term, 0) for term in terms] for one in found], [one.length for one in found]

    def _of(self, doc_id: str) -> DocumentTerms:
        if doc_id not in self._own:
            self._own[doc_id] = self._found(self._view.document(doc_id)) if doc_id in self._view else NOTHING
        return self._own[doc_id]

    def _found(self, document: Document) -> DocumentTerms:
        one = _kept.get(document)
        if one is None or not self._holds(one):
            _kept[document] = one = self._made(document)
        return one

    def _holds(self, one: DocumentTerms) -> bool:
        """Whether it says of this snapshot what it said of an earlier one."""
        same = (self._view.entry(seq) is place for seq, place in one.asked.items())
        return one.language == self._language and all(same)

    def _made(self, document: Document) -> DocumentTerms:
        lines = _Asked(self._view)
        pieces = Pieces(self._view, Origins(self._view, lines))
        counts: Counter[str] = Counter()
        length = 0
        for block in partitions(document):
            if block.text.strip():
                terms = pieces.terms_at(document, block.start_line, block.end_line).split()
                counts.update(terms)
                length += len(terms)
        return DocumentTerms(dict(counts), length, self._language, lines.found)


class _Asked:
    """Where the numbered lines of a snapshot stand (origins.Lines); remembers which were looked up."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.found: dict[int, Located | None] = {}

    def evidence(self, seq: int) -> str | None:
        place = self._at(seq)
        return place.doc_id if place and place.doc_id.startswith(EVIDENCE) else None

    def cites(self, seq: int) -> tuple[int, ...]:
        place = self._at(seq)
        return drawn_from(place.entry) if place else ()

    def _at(self, seq: int) -> Located | None:
        if seq not in self.found:
            self.found[seq] = self._view.entry(seq)
        return self.found[seq]
