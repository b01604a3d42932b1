"""Rows in tantivy, by its formula those that it was not told, and texts that are compared with each other.

tantivy ranks by BM25 with k1 = 1.2 and b = 0.75, and each field by its own document frequencies. Two things
bend that to what was measured to be best. A row is padded with dummy terms, so that length counts less: 1.5
times the mean length of dummies makes b = 0.3 of 0.75, half the mean makes 0.5. And a term's boost replaces
its frequency in a field by the one in the rows' own text. It knows nothing of files or of SQLite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import log1p
from pathlib import Path
from typing import Any, NamedTuple

from tantivy import DocAddress, FieldType, Occur, Query, SchemaBuilder, TextAnalyzerBuilder, Tokenizer
from tantivy import Document as TantivyDocument
from tantivy import Index as TantivyIndex

from infinimem.index.pieces import BLOCK, WHOLE, Row

OWN, AROUND = "own", "around"
ENTRIES, DOCUMENTS = "entries", "documents"
PADDING: Mapping[str, tuple[int, int]] = {ENTRIES: (80, 80), DOCUMENTS: (500, 5)}
"""Dummy terms of the two fields of rows; those of a note's blocks have none."""
K1, B = 1.2, 0.75
"""tantivy's own."""
TEXTS_B = 0.3
"""How much longer texts are held back, 0 to 1."""
DIGITS = 4
"""Of a score, so that an order does not hang on the last bits of a float."""
DUMMY = "."
"""No term: tokens have letters or digits."""
_HEAP = 50_000_000
"""Bytes that a writer gathers before it writes a segment of its own."""
_EXACT = 24

Hit = tuple[float, DocAddress]


class Lookup(NamedTuple):
    """Weights of fields, of terms whatever the field, and of terms that stand side by side in a row's own."""

    fields: Mapping[str, float]
    terms: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float] = {}


def rarity(count: int, frequency: int) -> float:
    """Return how much a term tells: ln(1 + (N - n + 0.5) / (n + 0.5)) of N rows, n of which hold it."""
    return log1p((max(count, frequency) - frequency + 0.5) / (frequency + 0.5))


def _kept(length: int) -> int:
    """Return a length as tantivy keeps it, in a byte: from 40 on only its first four bits above 24."""
    shift = max((length - _EXACT).bit_length() - 4, 0)
    return length if length < _EXACT else _EXACT + ((length - _EXACT) >> shift << shift)


class Words:
    """Rows of one kind in tantivy, given our own terms, so that all words are cut alike.

    `folder` is an existing one of its own, None for memory; a ValueError if what is there is garbled.
    """

    def __init__(self, folder: Path | None) -> None:
        builder = SchemaBuilder()
        for name, option in ((OWN, "position"), (AROUND, "freq")):
            builder.add_text_field(name, tokenizer_name="terms", index_option=option)
        for name in ("id", "doc", "part", "seq"):
            builder.add_unsigned_field(name, indexed=name == "id", fast=True)
        self._schema = builder.build()
        self._index = TantivyIndex(self._schema, path=str(folder) if folder else None)
        self._index.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
        self._index.config_reader("manual")  # else a thread of its own looks for commits all the time
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def change(self, mark: int, dead: Collection[int], rows: Sequence[Row]) -> None:
        """Drop the dead and all rows above a mark, add others, and make it durable.

        An OSError or ValueError if the disk refused, or another process writes.
        """
        writer = self._index.writer(heap_size=_HEAP, num_threads=1)
        above = Query.range_query(self._schema, "id", FieldType.Unsigned, mark, None, include_lower=False)
        writer.delete_documents_by_query(above)
        if dead:  # by a query: a deletion by term takes a number for a signed one, and finds nothing
            writer.delete_documents_by_query(Query.term_set_query(self._schema, "id", [*dead]))
        for row in rows:
            fields: dict[str, Any] = {"id": row.id, "doc": row.doc, "part": row.part, "seq": row.seq}
            fields |= {name: terms + f" {DUMMY}" * extra for name, (terms, extra) in fields_of(row).items()}
            writer.add_document(TantivyDocument.from_dict(fields, self._schema))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def frequency(self, field: str, term: str) -> int:
        """Return how many rows hold a term; those that were deleted count until their segment is merged."""
        return int(self._searcher.doc_freq(field, term))

    def find(self, query: Query, limit: int, ids: Sequence[int] | None = None) -> list[Hit]:
        """Return the best rows of a query, or of these alone; of equal ones those that were added first."""
        if ids is not None:
            there = Query.const_score_query(Query.term_set_query(self._schema, "id", [*ids]), 0.0)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Must, there)])
        hits: list[Hit] = self._searcher.search(query, limit, count=False).hits
        return hits

    def query(self, lookup: Lookup) -> Query | None:
        """Return what finds the rows with any of these terms, scored by their weights; None for no row."""
        # tantivy counts deleted rows until their segment is merged; all rows but a note's blocks hold dummies
        count = max(len(self), self.frequency(OWN, DUMMY))
        held = []
        for field, factor in lookup.fields.items():
            for term, weight in lookup.terms.items():
                if frequency := self.frequency(field, term):
                    boost = factor * weight / rarity(count, frequency)
                    one = Query.term_query(self._schema, field, term, "freq")
                    held.append((Occur.Should, Query.boost_query(one, boost)))
        for pair, weight in lookup.pairs.items():
            boost = weight / sum(rarity(count, self.frequency(OWN, term)) for term in pair)
            phrase = Query.phrase_query(self._schema, OWN, list(pair))
            held.append((Occur.Should, Query.boost_query(phrase, boost)))
        return Query.boolean_query(held) if held else None

    def values(self, name: str, hits: Sequence[Hit]) -> list[Any]:
        """Return a number of each of some rows."""
        return self._searcher.fast_field_values(name, [address for _, address in hits])


def table_of(row: Row) -> str:
    return DOCUMENTS if row.line == WHOLE else ENTRIES


def fields_of(row: Row) -> dict[str, tuple[str, int]]:
    """Return the terms of a row by field, and how many dummies stand behind them."""
    dummies = (0, 0) if row.line == BLOCK else PADDING[table_of(row)]
    return {OWN: (row.own or "", dummies[0]), AROUND: (row.around or "", dummies[1])}


class Bag:
    """A row of the tail: how often it holds each term."""

    def __init__(self, row: Row) -> None:
        self.row, self._own = row, (row.own or "").split()
        fields = fields_of(row)
        self.counts = {name: Counter(terms.split()) for name, (terms, _) in fields.items()}
        self.lengths = {name: self.counts[name].total() + extra for name, (_, extra) in fields.items()}

    @cached_property
    def _pairs(self) -> Counter[tuple[str, str]]:
        return Counter(pairwise(self._own))

    def score(self, lookup: Lookup, means: Mapping[str, float]) -> float:
        """Return what tantivy would score it, with the mean lengths of fields."""
        parts = [
            (field, factor * weight, self.counts[field][term])
            for field, factor in lookup.fields.items()
            for term, weight in lookup.terms.items()
            if term in self.counts[field]
        ]
        parts += [(OWN, weight, self._pairs[pair]) for pair, weight in lookup.pairs.items()]
        return sum(
            weight * often * (K1 + 1) / (often + K1 * (1 - B + B * _kept(self.lengths[field]) / means[field]))
            for field, weight, often in parts
        )


def compared(texts: Sequence[Counter[str]], terms: Iterable[str]) -> list[float]:
    """Return the scores of some texts among each other, by BM25 of their terms; 0 for none of the terms."""
    lengths = [text.total() for text in texts]
    mean, scores = sum(lengths) / max(len(texts), 1) or 1.0, [0.0] * len(texts)
    for term in terms:
        there = [at for at, text in enumerate(texts) if term in text]
        weight = rarity(len(texts), len(there)) * (K1 + 1)
        for at in there:
            often, norm = texts[at][term], K1 * (1 - TEXTS_B + TEXTS_B * lengths[at] / mean)
            scores[at] += weight * often / (often + norm)
    return [round(score, DIGITS) for score in scores]
