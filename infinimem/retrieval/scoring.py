"""The one ranking: BM25 over what a row says, what stands around it, and its whole; and nearness in meaning.

A turn like "I drew it yesterday" is found by its neighbours and by the session that is about the drawing.
How rare a term is counts alike in all three, by the rows that say it; priors (priors.py) then decide between
rows of like wording. Whatever engine gathered the candidates, the same rows get the same scores.

`TermCounts` serves comparing a text with a few documents: an index of the whole library would take longer to
build, and in an import each consolidation would build it anew.

Where vectors count, the row that is nearest in meaning gets `MEANING_WEIGHT` of what the row with the best
words gets, each other one its share of that: neither scale has to be known. Without them nothing changes.

Source: BM25 as in STRATEGIES 1.7 (k1, b, idf with + 1). The weights of the fields were chosen on the LoCoMo
development conversations, where recall is flat around them, and checked on LongMemEval's. MEANING_WEIGHT and
dense.BESIDE_WEIGHT were chosen on both together (docs/SEARCH.md gives the figures), on six conversations and
235 questions, with static vectors on both and MiniLM's on the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions
from infinimem.model import Located
from infinimem.retrieval.columns import MOST_COUNTED, Array
from infinimem.retrieval.lexical import Kind
from infinimem.retrieval.origins import Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.priors import Attributes, factors
from infinimem.retrieval.rows import Rows, Statistics
from infinimem.settings import SearchSettings
from infinimem.store.lines import drawn_from
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from infinimem.retrieval.dense import Near

AROUND_WEIGHT, WHOLE_WEIGHT = 0.5, 0.5
OWN_B, CONTEXT_B = 0.3, 0.5
K1 = 1.2
MEANING_WEIGHT = 0.8


def rarity(count: int, frequency: Array) -> Array:
    """How much each term tells: ln(1 + (N - n + 0.5) / (n + 0.5)) of N rows, n of which hold it."""
    return np.asarray(np.log1p((count - frequency + 0.5) / (frequency + 0.5)))


def bm25(occurrences: Array, lengths: Array, mean: float, weights: Array, b: float) -> Array:
    """The sum over the terms of weight times saturated frequency; 0 where none occurs.

    Args:
        occurrences: rows by terms.
        lengths: terms of each row; `mean` of all rows.
        weights: of the terms, as `rarity` gives them.
        b: how much longer rows are held back, 0 to 1.
    """
    norm = K1 * (1 - b + b * (lengths / mean if mean else lengths * 0))
    total = np.zeros(len(lengths))
    for column in range(occurrences.shape[1]):  # term by term, so that sums do not hang on their order
        often = occurrences[:, column]
        total += weights[column] * often * (K1 + 1) / (often + norm)
    return total


def compared(occurrences: ArrayLike, lengths: ArrayLike) -> list[float]:
    """The scores of a few texts among themselves.

    Args:
        occurrences: how often each text holds each term: texts by terms.
        lengths: terms of each text.
    """
    counts, sizes = np.atleast_2d(np.asarray(occurrences, float)), np.asarray(lengths, float)
    if not counts.size:
        return [0.0] * len(sizes)
    weights = rarity(len(sizes), (counts > 0).sum(axis=0))
    scores: list[float] = np.round(bm25(counts, sizes, sizes.mean(), weights, OWN_B), 4).tolist()
    return scores


class Scored(NamedTuple):
    """Rows and what orders them."""

    positions: Array
    scores: Array
    """Rounded, so that an order does not hang on the last bits of a float."""
    days: Array
    """As yyyymmdd; 0 for none."""
    seqs: Array


def score(
    rows: Rows,
    kind: Kind,
    positions: Array,
    query: str,
    terms: Sequence[str],
    known: Statistics,
    settings: SearchSettings,
    near: Near | None = None,
) -> Scored:
    """The rows that hold a term, or stand beside one that does, or are near in meaning.

    Args:
        rows: of the snapshot.
        kind: what is ranked.
        positions: the candidates, ascending.
        query: as it was asked, for what it tells beside its words.
        terms: that are looked for.
        known: of all rows together.
        settings: which priors count.
        near: what the query means, where vectors count.
    """
    chosen = rows.select(positions)
    said, beside = chosen.occurrences("own", terms), chosen.occurrences("around", terms)
    weights = rarity(known.count, known.frequency)
    own = bm25(said, chosen.lengths("own"), known.own_length, weights, OWN_B)
    around = bm25(beside, chosen.lengths("around"), known.around_length, weights, CONTEXT_B)
    wholes, of = chosen.wholes(kind)
    occurrences, lengths = rows.texts(wholes, terms)
    whole = bm25(occurrences, lengths, known.whole_length, weights, CONTEXT_B)
    about = chosen.attributes()
    attributes = Attributes(chosen.speakers(), about["personal"], about["day"], about["asking"] / 255)
    held = said.any(axis=1) | beside.any(axis=1)
    scores = np.where(held, own + AROUND_WEIGHT * around + WHOLE_WEIGHT * whole[of], 0.0)
    if near and len(positions):
        scores += _shared(near.similarity(positions), scores.max())
        held |= np.isin(positions, near.positions)
    scores *= factors(query, attributes, settings)
    return Scored(positions[held], np.round(scores[held], 4), about["day"][held], about["seq"][held])


def _shared(similarity: Array, best: float) -> Array:
    """What rows get for their nearness, in units of a score of words.

    Args:
        similarity: 0 or more.
        best: score of the row with the best words; 0 where no row holds any.
    """
    nearest = similarity.max()
    return MEANING_WEIGHT * (best or 1.0) * similarity / nearest if nearest > 0 else similarity


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

    def texts(self, doc_ids: Sequence[str], terms: Sequence[str]) -> tuple[Array, Array]:
        """How often documents hold terms, and how many terms they have; as `Rows.texts`."""
        found = [self._of(doc_id) for doc_id in doc_ids]
        occurrences = np.zeros((len(found), len(terms)))
        for row, one in enumerate(found):
            occurrences[row] = [one.counts.get(term, 0) for term in terms]
        return occurrences, np.array([one.length for one in found], dtype=np.float64)

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
                terms = pieces.terms_at(document, block.start_line, block.end_line)
                counts.update({term: min(often, MOST_COUNTED) for term, often in Counter(terms).items()})
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
