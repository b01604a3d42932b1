"""How often a note is found by its own name, beside SQLite FTS5 with the name's column weighted five.

    python benchmarks/names.py ARCHIVE…       tar archives, or folders, of Markdown

Each note is asked for by its file's name in words, and by its title (the header's, or its first heading).
Names that several notes bear are asked for too, and counted in a column of their own.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from infinimem import open_memory
from infinimem.markdown.document import Document

BEST = 10
Search = Callable[[str], Sequence[str]]
"""Ids of the notes that a query finds, best first, each once."""


def ours(folder: Path) -> Search:
    """The search tool."""
    memory = open_memory(folder)

    def search(query: str) -> Sequence[str]:
        hits = memory.tools.search(query=query, k=BEST)["hits"]
        return list(dict.fromkeys(hit["doc_id"] for hit in hits))

    return search


def of_sqlite(notes: Mapping[str, str]) -> Search:
    """FTS5 over a row a note: its file's name in words, and all of its text."""
    table = sqlite3.connect(":memory:")
    table.execute("create virtual table notes using fts5(id unindexed, name, body, tokenize='porter')")
    rows = ((note, in_words(note), text) for note, text in notes.items())
    table.executemany("insert into notes values (?, ?, ?)", rows)

    def search(query: str) -> Sequence[str]:
        terms = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        order = f"bm25(notes, 0, 5, 1), id limit {BEST}"
        found = table.execute(f"select id from notes where notes match ? order by {order}", (terms,))
        return [row[0] for row in found]

    return search


def in_words(note: str) -> str:
    """The name of a note's file, its separators as spaces."""
    return re.sub(r"[-_.]+", " ", note.rsplit("/", 1)[-1]).strip()


def title_of(note: str, text: str) -> str:
    """What a note calls itself; "" where it does not."""
    document = Document.parse(note, text.encode())
    return document.title or next((head.title for head in document.headings if head.level == 1), "")


def measure(folder: Path) -> None:
    """Print a line for each kind of name and each engine."""
    files = sorted(path for path in folder.rglob("*.md") if "/." not in str(path.relative_to(folder)))
    notes = {str(path.relative_to(folder))[:-3]: path.read_text(errors="replace") for path in files}
    engines = {"infinimem": ours(folder), "FTS5 5:1": of_sqlite(notes)}
    names = {
        "file name": {note: in_words(note) for note in notes},
        "title": {note: title for note, text in notes.items() if (title := title_of(note, text))},
    }
    for kind, asked in names.items():
        borne = Counter(name.casefold() for name in asked.values())
        shared = {note for note, name in asked.items() if borne[name.casefold()] > 1}
        for engine, search in engines.items():
            found = {note: search(name) for note, name in asked.items()}
            first = sum(hits[:1] == [note] for note, hits in found.items())
            absent = [note for note, hits in found.items() if note not in hits]
            alone = [note for note in absent if note not in shared]
            print(
                f"{kind:10} {engine:10} first {first:3} of {len(asked)}, not among {BEST}: {len(absent)}"
                f" ({len(absent) - len(alone)} of {len(shared)} whose name others bear) {alone[:5]}"
            )


def main() -> None:
    """Measure each archive in a folder of its own, with an index of its own."""
    with tempfile.TemporaryDirectory(prefix="im-") as made:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CONFIG_HOME"] = f"{made}/cache"
        for number, source in enumerate(sys.argv[1:]):
            folder = Path(source)
            if folder.is_file():
                folder = Path(made, str(number))
                with tarfile.open(source) as archive:
                    archive.extractall(folder, filter="data")
            print(source)
            measure(folder)


if __name__ == "__main__":
    main()
