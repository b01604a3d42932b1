"""One table of rows in tantivy, on disk or in memory, given our own terms, so that all words are cut alike.

tantivy ranks by BM25 with k1 = 1.2 and b = 0.75, and each field by its own document frequencies. Two things
bend that to what was measured to be best. A row is padded with dummy terms, so that length counts less: 1.5
times the mean length of dummies makes b = 0.3 of 0.75, half the mean makes 0.5. And a term's boost replaces
its frequency in a field by the one in the rows' own text.

A table is written once, by one process: a change is made in a copy (disk.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import log1p
from pathlib import Path
from typing import Any

from tantivy import (
    DocAddress,
    Document,
    Index,
    Occur,
    Query,
    Schema,
    SchemaBuilder,
    TextAnalyzerBuilder,
    Tokenizer,
)

K1, B = 1.2, 0.75
"""tantivy's own."""
PADDING = "."
"""No term: tokens have letters or digits."""
HEAP = 50_000_000
"""Bytes that a writer gathers before it writes a segment of its own: the fewer, the less to merge."""
_EXACT = 24

Hit = tuple[float, DocAddress]


def rarity(count: int, frequency: int) -> float:
    """How much a term tells: ln(1 + (N - n + 0.5) / (n + 0.5)) of N rows, n of which hold it."""
    return log1p((max(count, frequency) - frequency + 0.5) / (frequency + 0.5))


def saturated(often: int, length: int, mean: float) -> float:
    """What of a term's weight a field gets that holds it so often: tantivy's own formula.

    Args:
        often: how often.
        length: terms of the field, padding included; `mean` of all rows.
    """
    return often * (K1 + 1) / (often + K1 * (1 - B + B * _kept(length) / mean))


def _kept(length: int) -> int:
    """A length as tantivy keeps it, in a byte: from 40 on only its first four bits above 24."""
    shift = max((length - _EXACT).bit_length() - 4, 0)
    return length if length < _EXACT else _EXACT + ((length - _EXACT) >> shift << shift)


class Table:
    """Rows of one kind.

    Args:
        texts: names of the fields of terms.
        numbers: names of unsigned fields; those in `_INDEXED` can be looked up.
        phrases: those fields of terms in which pairs are looked for too.
        folder: an existing folder of its own; None for memory.

    Raises:
        ValueError: what is there is garbled.
    """

    def __init__(
        self,
        texts: Sequence[str],
        numbers: Sequence[str],
        folder: Path | None = None,
        phrases: Collection[str] = (),
    ) -> None:
        builder = SchemaBuilder()
        for name in texts:
            option = "position" if name in phrases else "freq"
            builder.add_text_field(name, tokenizer_name="terms", index_option=option)
        for name in numbers:
            builder.add_unsigned_field(name, indexed=name in _INDEXED, fast=True, stored=name == "cites")
        self._schema: Schema = builder.build()
        self._index = Index(self._schema, path=str(folder)) if folder else Index(self._schema)
        self._index.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
        self._index.config_reader("manual")  # else a thread of its own looks for commits all the time
        self._writer: Any = None
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def add(self, fields: dict[str, str | int | list[int]]) -> None:
        """Add a row, by the names of its fields; it is found after `commit`."""
        self._writing().add_document(Document.from_dict(fields, self._schema))

    def delete(self, name: str, values: Collection[int]) -> None:
        """Delete the rows with one of these numbers."""
        # by a query: a deletion by term takes a number for a signed one, and finds nothing (tantivy 0.27)
        if values:
            self._writing().delete_documents_by_query(self.any_of(name, values))

    def commit(self) -> None:
        """Make it durable and seen."""
        if self._writer is not None:
            self._writer.commit()
            self._writer.wait_merging_threads()
            self._writer = None
            self._index.reload()
            self._searcher = self._index.searcher()

    def _writing(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(heap_size=HEAP, num_threads=1)
        return self._writer

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def frequency(self, field: str, term: str) -> int:
        """How many rows hold a term; those that were deleted count until their segment is merged."""
        return int(self._searcher.doc_freq(field, term))

    def any_of(self, name: str, values: Collection[int]) -> Query:
        """The rows with one of these numbers."""
        return Query.term_set_query(self._schema, name, list(values))

    def find(self, query: Query, limit: int | None = None) -> list[Hit]:
        """The best rows of a query, of equal ones those that were added first; all of them by default."""
        hits: list[Hit] = self._searcher.search(query, limit or len(self) or 1, count=False).hits
        return hits

    def all(self) -> list[DocAddress]:
        """Where every row lies."""
        return [address for _, address in self.find(Query.all_query())]

    def words(
        self,
        fields: Mapping[str, float],
        weights: Mapping[str, float],
        pairs: Mapping[tuple[str, str], float] | None = None,
    ) -> Query | None:
        """What holds any of these terms, scored by their weights.

        Args:
            fields: weights of fields.
            weights: of terms, whatever the field.
            pairs: weights of terms side by side, in the first field.
        """
        count, held = len(self), []
        for field, factor in fields.items():
            for term, weight in weights.items():
                if frequency := self.frequency(field, term):
                    boost = factor * weight / rarity(count, frequency)
                    one = Query.term_query(self._schema, field, term, "freq")
                    held.append((Occur.Should, Query.boost_query(one, boost)))
        for pair, weight in (pairs or {}).items():
            field = next(iter(fields))
            boost = weight / sum(rarity(count, self.frequency(field, term)) for term in pair)
            phrase = Query.phrase_query(self._schema, field, list(pair))
            held.append((Occur.Should, Query.boost_query(phrase, boost)))
        return Query.boolean_query(held) if held else None

    def among(self, query: Query, there: Query) -> Query:
        """A query, of some rows alone."""
        return Query.boolean_query([(Occur.Must, query), (Occur.Must, Query.const_score_query(there, 0.0))])

    def values(self, name: str, addresses: Sequence[DocAddress]) -> list[Any]:
        """A number of each of some rows, the first where it has several; None for none."""
        return self._searcher.fast_field_values(name, list(addresses))

    def several(self, name: str, address: DocAddress) -> tuple[int, ...]:
        """All numbers of that name of one row."""
        return tuple(self._searcher.doc(address).get_all(name))


_INDEXED = frozenset({"row", "doc", "seq", "cites", "group", "called"})


def padded(terms: str, padding: int) -> str:
    """A field as tantivy is given it: terms, joined by spaces, and dummies."""
    return terms + f" {PADDING}" * padding
