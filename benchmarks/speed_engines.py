"""Search engines side by side: infinimem and what people would use instead, one class each.

All of them index the same pieces of the notes: the heading blocks that infinimem's `search` ranks, which
are cut over 1,600 bytes. Each gives the ten best.
"""

from __future__ import annotations

import os
import pickle
import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions

BEST = 10
MANY = 64
"""Numbers of blocks that each document has for itself."""


class Engine(Protocol):
    """An engine over one library, its own files in a folder of its own."""

    def build(self) -> None:
        """Index everything, from nothing, and write it down where that is done."""

    def open(self) -> None:
        """Use what `build` wrote."""

    def search(self, query: str) -> Sequence[Any]:
        """The ten best."""


def notes(library: Path) -> list[Path]:
    """All notes of a library, by path."""
    found = [Path(folder) / name for folder, _, names in os.walk(library / "notes") for name in names]
    return sorted(path for path in found if path.suffix == ".md")


@lru_cache(maxsize=1)
def numbers(library: Path) -> dict[Path, int]:
    """The number of each note."""
    return {path: number for number, path in enumerate(notes(library))}


def blocks(text: str) -> list[str]:
    """The blocks of a note."""
    return [block.text for block in partitions(Document.parse("note", text.encode()))]


def corpus(library: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of every block of the notes."""
    for number, path in enumerate(notes(library)):
        for part, block in enumerate(blocks(path.read_text(encoding="utf-8"))[:MANY]):
            yield number * MANY + part, block


class Ours:
    """The `search` tool, as an agent calls it: files looked at, ten sections with their lines."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library = library

    def build(self) -> None:
        self.open()
        self.search("memory")

    def open(self) -> None:
        from infinimem.memory import open_memory

        self.memory = open_memory(self.library, model="offline")

    def search(self, query: str) -> Sequence[Any]:
        found: Sequence[Any] = self.memory.tools.search(query, k=BEST)["hits"]
        return found


class RankBM25:
    """rank_bm25, with our tokenizer, kept as a pickle."""

    variant = "BM25Okapi"

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.file = library, folder / "index.pickle"

    def build(self) -> None:
        import rank_bm25

        from infinimem.terms import tokens

        rows = list(corpus(self.library))
        self.ids = [number for number, _ in rows]
        self.index = getattr(rank_bm25, self.variant)([tokens(text) for _, text in rows])
        with self.file.open("wb") as out:
            pickle.dump((self.ids, self.index), out, protocol=pickle.HIGHEST_PROTOCOL)

    def open(self) -> None:
        with self.file.open("rb") as file:
            self.ids, self.index = pickle.load(file)

    def search(self, query: str) -> Sequence[Any]:
        from infinimem.terms import tokens

        found: Sequence[Any] = self.index.get_top_n(tokens(query), self.ids, n=BEST)
        return found


class RankBM25Plus(RankBM25):
    """Its variant that gives no negative scores."""

    variant = "BM25Plus"


class FTS5:
    """SQLite's full-text index without the text (contentless), Porter's stemmer, any of the words."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.file = library, folder / "index.sqlite"

    def build(self) -> None:
        self.open()
        with self.base:
            self.base.execute(
                "CREATE VIRTUAL TABLE t USING fts5(body, content='', tokenize='porter unicode61')"
            )
            self.base.executemany("INSERT INTO t(rowid, body) VALUES (?, ?)", corpus(self.library))
            self.base.execute("INSERT INTO t(t) VALUES ('optimize')")

    def open(self) -> None:
        self.base = sqlite3.connect(self.file)
        self.base.execute("PRAGMA journal_mode=WAL")

    def search(self, query: str) -> Sequence[Any]:
        wanted = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        chosen = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?"
        return self.base.execute(chosen, (wanted, BEST)).fetchall()

    def change(self, path: Path, text: str) -> None:
        first = numbers(self.library)[path] * MANY
        with self.base:
            old = [(first + n, block) for n, block in enumerate(blocks(path.read_text(encoding="utf-8")))]
            new = [(first + n, block) for n, block in enumerate(blocks(text))]
            self.base.executemany("INSERT INTO t(t, rowid, body) VALUES ('delete', ?, ?)", old)
            self.base.executemany("INSERT INTO t(rowid, body) VALUES (?, ?)", new)


class Tantivy:
    """tantivy by itself: its English stemmer, the text indexed and not stored, any of the words."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder = library, folder
        self.writer: Any = None

    def build(self) -> None:
        self.open()
        writer = self.index.writer(heap_size=100_000_000, num_threads=1)
        for number, text in corpus(self.library):
            writer.add_document(self._block(number, text))
        writer.commit()
        writer.wait_merging_threads()

    def open(self) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("body", stored=False, tokenizer_name="en_stem")
        schema.add_unsigned_field("number", stored=True)
        schema.add_unsigned_field("document", stored=False, indexed=True)
        self.index = tantivy.Index(schema.build(), path=str(self.folder))

    def search(self, query: str) -> Sequence[Any]:
        searcher = self.index.searcher()
        parsed = self.index.parse_query(" ".join(re.findall(r"\w+", query)).lower(), ["body"])
        hits = searcher.search(parsed, BEST, count=False).hits
        return [searcher.doc(address)["number"][0] for _, address in hits]

    def change(self, path: Path, text: str) -> None:
        number = numbers(self.library)[path]
        self.writer = self.writer or self.index.writer(heap_size=15_000_000, num_threads=1)
        self.writer.delete_documents("document", number)
        for part, block in enumerate(blocks(text)):
            self.writer.add_document(self._block(number * MANY + part, block))
        self.writer.commit()
        self.index.reload()

    def _block(self, number: int, text: str) -> Any:
        import tantivy

        row = tantivy.Document(body=text)
        row.add_unsigned("number", number)
        row.add_unsigned("document", number // MANY)
        return row


ENGINES: dict[str, type[Any]] = {
    "infinimem": Ours,
    "tantivy": Tantivy,
    "fts5": FTS5,
    "rank_bm25": RankBM25,
    "rank_bm25+": RankBM25Plus,
}
"""By the name that is given on the command line."""
NAMES = {
    "infinimem": "infinimem",
    "tantivy": "tantivy alone",
    "fts5": "SQLite FTS5",
    "rank_bm25": "rank_bm25 Okapi",
    "rank_bm25+": "rank_bm25 BM25Plus",
    "ripgrep": "ripgrep",
    "re": "Python re",
}
"""What a table calls them."""
