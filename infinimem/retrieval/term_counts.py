"""A few texts compared with each other, and the terms of a few documents, without an index.

An index of the whole library would take longer to bring up to date, and in an import each consolidation would
do so anew.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

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
    terms: tuple[str, ...]
    """Each once."""
    length: int
    """How many they are, repeats counted."""
    language: str
    """That they were made in."""
    asked: Mapping[int, Located | None]
    """The lines that were looked up for it, by seq: an entry is also counted by who said it, and when."""

    @property
    def homes(self) -> set[str]:
        """The documents in which those lines stand; "" for those that stood nowhere."""
        return {place.doc_id if place else "" for place in self.asked.values()}


class _Known:
    """The terms of a library's documents as they were last asked for; its snapshots share it."""

    def __init__(self) -> None:
        self.turns = threading.Lock()
        self.documents: dict[str, DocumentTerms] = {}
        self.holding: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self.asking: defaultdict[str, set[str]] = defaultdict(set)
        """The documents that looked lines up, by the document in which those stand."""
        self.sure: tuple[object, set[str]] = None, set()
        """Which snapshot asked last, and the documents that are known as they are there."""

    def forget(self, doc_id: str) -> None:
        """Take out what is known of a document."""
        if one := self.documents.pop(doc_id, None):
            for term in one.terms:
                del self.holding[term][doc_id]
            for home in one.homes:
                self.asking[home].discard(doc_id)

    def add(self, doc_id: str, one: DocumentTerms, counts: Mapping[str, int]) -> None:
        self.documents[doc_id] = one
        for term, often in counts.items():
            self.holding[term][doc_id] = often
        for home in one.homes:
            self.asking[home].add(doc_id)


class TermCounts:
    """The terms of a snapshot's documents, read when first asked for.

    Args:
        before: those of a snapshot that this one follows.
        changed: the documents in which they differ.
    """

    def __init__(self, before: TermCounts | None = None, changed: Collection[str] | None = None) -> None:
        self._known: _Known = before._known if before else _Known()
        self._self = object()
        self._before = (before._self, changed) if before and changed is not None else None

    def texts(
        self, view: View, doc_ids: Collection[str], terms: Sequence[str]
    ) -> tuple[list[dict[str, int]], dict[str, int]]:
        """For each term those of some documents that hold it, and how often; and how many terms each has."""
        chosen = frozenset(doc_ids)
        with self._known.turns:
            self._read(view, chosen)
            found = [self._known.holding.get(term, {}) for term in terms]
            holding = [
                {doc_id: often for doc_id, often in held.items() if doc_id in chosen} for held in found
            ]
            return holding, {doc_id: self._known.documents[doc_id].length for doc_id in chosen}

    def _read(self, view: View, doc_ids: frozenset[str]) -> None:
        known = self._known
        last, sure = known.sure
        if last is not self._self:
            if self._before and self._before[0] is last and not view.lines.doubled:
                changed = self._before[1]
                sure.difference_update(changed, *(known.asking[home] for home in ("", *changed)))
            else:  # another snapshot was asked in between, or one line hides another
                sure.clear()
            for doc_id in [doc_id for doc_id in known.documents if doc_id not in view]:
                known.forget(doc_id)
                sure.discard(doc_id)
            known.sure = self._self, sure
        for doc_id in sorted(doc_ids - sure):
            document = view.document(doc_id) if doc_id in view else NOTHING
            one = known.documents.get(doc_id)
            if one is None or one.document is not document or not _holds(one, view):
                known.forget(doc_id)
                known.add(doc_id, *_made(view, document))
            sure.add(doc_id)


def _holds(one: DocumentTerms, view: View) -> bool:
    """Whether it says of this snapshot what it said of an earlier one."""
    same = (view.entry(seq) is place for seq, place in one.asked.items())
    return one.language == view.settings.search.language and all(same)


def _made(view: View, document: Document) -> tuple[DocumentTerms, Mapping[str, int]]:
    lines = _Asked(view)
    pieces = Pieces(view, Origins(view, lines))
    counts: Counter[str] = Counter()
    for block in partitions(document):
        if block.text.strip():
            counts.update(pieces.terms_at(document, block.start_line, block.end_line).split())
    language = view.settings.search.language
    return DocumentTerms(document, tuple(counts), counts.total(), language, lines.found), counts


def term_counts(_: View, known: TermCounts | None, changed: Collection[str] | None) -> TermCounts:
    """Those of a snapshot (`View.derived`)."""
    return TermCounts(known, changed)


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
