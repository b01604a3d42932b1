"""A few texts compared with each other, and the terms of a few documents, without an index.

An index of the whole library would take longer to bring up to date, and in an import each consolidation would
do so anew.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import ref

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

NOTHING = Document.empty("")
T = TypeVar("T")


def compared(holding: Iterable[Mapping[T, int]], lengths: Mapping[T, int]) -> dict[T, float]:
    """The scores of those of a few texts that hold a term, among all of them, by BM25.

    Args:
        holding: for each term the texts that hold it, and how often.
        lengths: terms of each text.
    """
    mean = sum(lengths.values()) / max(len(lengths), 1)
    scores: dict[T, float] = {}
    for counts in holding:
        weight = rarity(len(lengths), len(counts))
        for text, often in counts.items():
            norm = K1 * (1 - B + B * lengths[text] / mean)
            scores[text] = scores.get(text, 0.0) + weight * often * (K1 + 1) / (often + norm)
    return {text: round(score, DIGITS) for text, score in scores.items()}


@dataclass(frozen=True, eq=False)
class DocumentTerms:
    """The terms of a document's heading blocks."""

    document: Document
    counts: Mapping[str, int]
    length: int
    """How many they are, repeats counted."""
    language: str
    """That they were made in."""
    asked: Mapping[int, Located | None]
    """The lines that were looked up for it, by seq: an entry is also counted by who said it, and when."""


class TermCounts:
    """The terms of a library's documents, read when first asked for and handed from snapshot to snapshot."""

    def __init__(self) -> None:
        self._turns = threading.Lock()
        self._known: dict[str, DocumentTerms] = {}
        self._holding: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._sure: tuple[Callable[[], View | None], set[str]] = (lambda: None, set())
        """A snapshot, and the documents that are known as they are there."""

    def texts(
        self, view: View, doc_ids: Collection[str], terms: Sequence[str]
    ) -> tuple[list[dict[str, int]], dict[str, int]]:
        """For each term those of some documents that hold it, and how often; and how many terms each has."""
        chosen = frozenset(doc_ids)
        with self._turns:
            self._read(view, chosen)
            found = [self._holding.get(term, {}) for term in terms]
            holding = [
                {doc_id: often for doc_id, often in held.items() if doc_id in chosen} for held in found
            ]
            return holding, {doc_id: self._known[doc_id].length for doc_id in chosen}

    def _read(self, view: View, doc_ids: frozenset[str]) -> None:
        if self._sure[0]() is not view:
            self._sure = ref(view), set()
            doc_ids |= {doc_id for doc_id in self._known if doc_id not in view}
        for doc_id in sorted(doc_ids - self._sure[1]):
            document = view.document(doc_id) if doc_id in view else NOTHING
            one = self._known.get(doc_id)
            if one is None or one.document is not document or not _holds(one, view):
                for term in one.counts if one else ():
                    del self._holding[term][doc_id]
                self._known[doc_id] = one = _made(view, document)
                for term, often in one.counts.items():
                    self._holding[term][doc_id] = often
            self._sure[1].add(doc_id)


def _holds(one: DocumentTerms, view: View) -> bool:
    """Whether it says of this snapshot what it said of an earlier one."""
    same = (view.entry(seq) is place for seq, place in one.asked.items())
    return one.language == view.settings.search.language and all(same)


def _made(view: View, document: Document) -> DocumentTerms:
    lines = _Asked(view)
    pieces = Pieces(view, Origins(view, lines))
    counts: Counter[str] = Counter()
    for block in partitions(document):
        if block.text.strip():
            counts.update(pieces.terms_at(document, block.start_line, block.end_line).split())
    return DocumentTerms(document, counts, counts.total(), view.settings.search.language, lines.found)


def term_counts(_: View, known: TermCounts | None, __: Collection[str] | None) -> TermCounts:
    """The one of a library (`View.derived`)."""
    return known or TermCounts()


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
