"""The lexical index on disk: tantivy, given our own terms, so that both engines see the same words.

Rows of a part are added once and deleted with it. A commit is safe under readers: each sees the index as it
was opened. One process writes at a time, which the caller sees to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
from tantivy import (
    Document,
    FieldType,
    Index,
    Occur,
    Query,
    Schema,
    SchemaBuilder,
    TextAnalyzerBuilder,
    Tokenizer,
)

from infinimem.retrieval.columns import Array
from infinimem.retrieval.lexical import ORDINALS, SHELVES

NUMBER = {shelf: number for number, shelf in enumerate(SHELVES)}
HEAP = 32_000_000
"""Bytes that the writer gathers before it writes a segment of its own."""


class TantivyIndex:
    """An index of rows on disk.

    Args:
        folder: an existing folder of its own.
        new: whether to begin one where there is none.

    Raises:
        ValueError: there is none, or it is garbled.
    """

    def __init__(self, folder: Path, new: bool = True) -> None:
        builder = SchemaBuilder()
        builder.add_text_field("terms", tokenizer_name="terms", index_option="freq")
        builder.add_unsigned_field("shelf", indexed=True)
        builder.add_unsigned_field("row", fast=True)
        builder.add_unsigned_field("part", indexed=True, fast=True)
        self._schema = builder.build()
        if not new and not Index.exists(str(folder)):
            raise ValueError(f"{folder} holds no index")
        self._index = Index(self._schema, path=str(folder))
        self._index.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
        self._index.config_reader("manual")  # else a thread of its own looks for commits all the time
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def candidates(self, terms: Sequence[str], limit: int, shelves: Collection[str]) -> list[int]:
        held = [
            (Occur.Should, Query.term_query(self._schema, "terms", term, "freq"))
            for term in dict.fromkeys(terms)
        ]
        if not held or not shelves or limit <= 0:
            return []
        anywhere = Query.boolean_query(held)
        numbers = [NUMBER[shelf] for shelf in shelves]
        # Without a condition tantivy passes over whole blocks of rows, and mostly enough are on the shelves.
        best = self._best(anywhere, limit + limit // 4)
        found = best[np.isin(best & 15, numbers)]
        if len(found) < limit <= len(best):
            there = Query.const_score_query(Query.term_set_query(self._schema, "shelf", numbers), 0.0)
            found = self._best(Query.boolean_query([(Occur.Must, anywhere), (Occur.Must, there)]), limit)
        keys: list[int] = np.sort(found[:limit] >> 4).tolist()
        return keys

    def _best(self, query: Query, limit: int) -> Array:
        """Keys of the best rows, each with the number of its shelf in the last four bits, best first."""
        addresses = [address for _, address in self._searcher.search(query, limit, count=False).hits]
        return np.array(self._searcher.fast_field_values("row", addresses), dtype=np.int64)

    def write(self) -> Writer:
        """Begin to change it."""
        return Writer(self._index, self._schema)


class Writer:
    """Changes of an index; nothing of them is seen before `commit`."""

    def __init__(self, index: Index, schema: Schema) -> None:
        self._schema = schema
        self._writer = index.writer(heap_size=HEAP, num_threads=1)

    def add(self, shelf: str, key: int, terms: Iterable[str]) -> None:
        """Add a row."""
        document = Document()
        document.add_text("terms", " ".join(terms))
        document.add_unsigned("shelf", NUMBER[shelf])
        document.add_unsigned("row", key << 4 | NUMBER[shelf])
        document.add_unsigned("part", key >> ORDINALS)
        self._writer.add_document(document)

    def delete(self, uids: Iterable[int]) -> None:
        """Delete all rows of these parts."""
        # by a query: a deletion by term takes a number for a signed one, and finds nothing (tantivy 0.27)
        gone = Query.term_set_query(self._schema, "part", list(uids))
        self._writer.delete_documents_by_query(gone)

    def delete_from(self, uid: int) -> None:
        """Delete all parts from a uid on: what a writer that was cut off left behind."""
        self._writer.delete_documents_by_query(
            Query.range_query(self._schema, "part", FieldType.Unsigned, uid, (1 << 64) - 1)
        )

    def commit(self) -> None:
        """Make it durable and seen by whoever opens the index from now on."""
        self._writer.commit()
        self._writer.wait_merging_threads()
