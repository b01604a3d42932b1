"""The text of a large library in one file that is mapped into memory, for grep.

    <folder of index.db>/text-<8 hex>    documents one behind another, lines as they are shown, ended by "\\n"

In: a view. Out: the lines of it that match. Where each document lies, and in which state it was taken in, is
in index.db; of one that differs now the file is read. Where that is much it is put behind the others, and all
of it into another file where a third is of no use any more. What a killed process wrote counts for nothing.
"""

from __future__ import annotations

import mmap
import os
import secrets
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from infinimem.index.grep import Found, Match, Pattern, first_matches, text_of
from infinimem.log import log
from infinimem.store.folders import Stamp
from infinimem.store.index import Index
from infinimem.store.view import Scope, View

SMALL_DOCUMENTS, SMALL_BYTES = 300, 4 << 20
"""A library up to this size is looked through document by document."""
FEW, MUCH = 64, 1 << 20
"""So many documents, or bytes of them, are put into the file; fewer are read again and held."""
CHUNK = 1 << 20
MOST_THREADS = 4
WORTH_A_THREAD = 4 << 20
"""Bytes; for less, another thread costs more than it saves. RE2 runs without Python's lock."""

_SCHEMA = """
create table if not exists text(file text not null, size integer not null, state integer not null);
create table if not exists place(doc integer primary key, start integer not null, length integer not null,
    mtime integer not null, size integer not null, inode integer not null);
create trigger if not exists document_leaves after delete on document
    begin delete from place where doc = old.id; end
"""
"""`size` is what counts of the file, `state` grows with each change."""

Run = tuple[int, int, str]
"""A document in the text: begin, end and id."""


class Lying(NamedTuple):
    """The documents of a scope that lie in the text, in its order, and those that do not."""

    data: mmap.mmap | bytes
    runs: Sequence[Run]
    missing: Sequence[str]


class Text:
    """The text of one index, for one process; its threads take turns."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._state: tuple[str, int] = ("", -1)
        self._data: mmap.mmap | bytes = b""
        self._places: dict[str, tuple[int, int, Stamp]] = {}
        self._stamps: Mapping[str, Stamp] = {}
        self._chosen: dict[Scope, Lying] = {}
        """Of the snapshot with these stamps, by scope."""

    def at(self, view: View, scope: Scope) -> Lying:
        """Return where the documents of a scope are."""
        stamps = view.stored.stamps if view.stored else {}
        with self._lock:
            if self._stamps is not stamps:
                self._stamps, self._chosen = stamps, {}
                try:
                    if self.index.folder:
                        self.index.attempt(view, lambda: self._refresh(view))
                except (OSError, ValueError) as error:
                    log.warning("the text of the library cannot be kept (%s)", error)
                    self._places, self._data = {}, b""
            if scope not in self._chosen:
                places = [(*self._places.get(name, _NONE), name) for name in view.ids(scope)]
                runs = [
                    (start, start + size, name)
                    for start, size, stamp, name in places
                    if stamps[name] == stamp
                ]
                there = {name for _, _, name in runs}
                missing = [name for name in view.ids(scope) if name not in there]
                self._chosen[scope] = Lying(self._data, sorted(runs), missing)
            return self._chosen[scope]

    def _refresh(self, view: View) -> None:
        """Read what the database says, and put there what is missing, if it is much."""
        stamps = view.stored.stamps if view.stored else {}
        with suppress(sqlite3.OperationalError):
            self._read()
        missing = [name for name, stamp in stamps.items() if self._places.get(name, _NONE)[2] != stamp]
        if len(missing) > FEW or sum(stamps[name].size for name in missing) > MUCH:
            with self.index.writing() as db:
                for statement in _SCHEMA.split(";\n"):
                    db.execute(statement)
                self._write(db, view)
            self._read()

    def _read(self) -> None:
        db = self.index.pinned()
        try:
            file, size, state = db.execute("select file, size, state from text").fetchone() or ("", 0, 0)
            if (file, state) == self._state:
                return
            query = (
                "select name, start, length, p.mtime, p.size, p.inode from place p join document on id = doc"
            )
            places = {row[0]: (row[1], row[2], Stamp(*row[3:])) for row in db.execute(query)}
        finally:
            self.index.release(db)
        self._data, self._places = b"", {}
        folder = self.index.folder
        if size and folder:
            try:
                with (folder / file).open("rb") as opened:
                    self._data = mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ)
            except (OSError, ValueError):  # it was deleted, or is shorter: all is missing then
                places = {}
        self._places, self._state = places, (file, state)

    def _write(self, db: sqlite3.Connection, view: View) -> None:
        """Put documents behind the others, or all into a file of their own.

        Raises:
            OSError: the disk refused.
        """
        stored, folder = view.stored, self.index.folder
        assert stored and folder, "only what files show is written"
        file, size, state = db.execute("select file, size, state from text").fetchone() or ("", 0, 0)
        there, live = set[int](), 0
        for doc, length, here in db.execute(
            "select p.doc, length, d.mtime = p.mtime and d.size = p.size and d.inode = p.inode "
            "from place p join document d on d.id = p.doc"
        ):
            if here:
                there.add(doc)
                live += length
        path = folder / file
        if not file or 3 * live < 2 * size or not path.is_file() or path.stat().st_size < size:
            db.execute("delete from place")
            there, file, size = set(), f"text-{secrets.token_hex(4)}", 0
            for old in folder.glob("text-*"):
                old.unlink(missing_ok=True)
            path = folder / file
        from infinimem.index.tables import Current  # and tantivy

        reader = Current(db, view)
        with path.open("r+b" if size else "wb") as out:
            out.truncate(size)
            out.seek(size)
            for doc, name, *stamp in db.execute(
                "select id, name, mtime, size, inode from document"
            ).fetchall():
                document = None if doc in there else reader.read(name, Stamp(*stamp))
                if document is not None:
                    data = text_of(document)
                    row = (doc, size, len(data), *stamp)
                    db.execute("insert or replace into place values(?, ?, ?, ?, ?, ?)", row)
                    size += len(data)
                    out.write(data)
        db.execute("delete from text")
        db.execute("insert into text values(?, ?, ?)", (file, size, state + 1))


_NONE = (0, 0, None)


def _text(view: View, known: Text | None, _: Collection[str] | None) -> Text:
    """Return the text of a snapshot's index (`View.derived`)."""
    index = view.index
    return known if known and known.index is index else Text(index)


def search(view: View, scope: Scope, pattern: Pattern, most: int) -> Found:
    """Search all documents of a scope.

    Args:
        view: the library.
        scope: which documents.
        pattern: what is looked for.
        most: how many matches are wanted; all are counted.
    """
    stamps = view.stored.stamps if view.stored else {}
    if len(stamps) <= SMALL_DOCUMENTS and sum(stamp.size for stamp in stamps.values()) <= SMALL_BYTES:
        return first_matches(map(view.document, view.ids(scope)), pattern, most)
    data, runs, pending = view.derived(_text).at(view, scope)
    offsets = _scan(data, pattern, _chunks(runs))
    documents = map(view.document, pending) if len(pending) <= FEW else view.each(pending)
    beside = first_matches(documents, pattern, most)
    found = [*_matches(view, data, pattern, runs, offsets, most), *beside.first]
    found = sorted(found, key=lambda match: (match.document.id, match.line))[:most]
    return Found(max(len(offsets) + beside.total, len(found)), found)


def _chunks(runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Return runs that touch as chunks of about `CHUNK` bytes; a document is in one chunk."""
    chunks = list[tuple[int, int]]()
    start = end = 0
    for first, last, _ in (*runs, (-1, 0, "")):
        if first != end or end - start >= CHUNK:
            chunks += [(start, end)] if end > start else []
            start = first
        end = last
    return chunks


def _scan(data: mmap.mmap | bytes, pattern: Pattern, chunks: Sequence[tuple[int, int]]) -> list[int]:
    """Return a place in each matching line, ascending."""
    size = sum(end - start for start, end in chunks)
    many = max(1, min(MOST_THREADS, os.cpu_count() or 1, size // WORTH_A_THREAD))
    cuts = [len(chunks) * part // many for part in range(many + 1)]

    def work(cut: tuple[int, int]) -> list[int]:
        some = chunks[cut[0] : cut[1]]
        return [start + at for start, end in some for at in pattern.lines(data[start:end])]

    if many == 1:
        return work((0, len(chunks)))
    with ThreadPoolExecutor(many) as threads:
        return [place for places in threads.map(work, pairwise(cuts)) for place in places]


def _matches(
    view: View,
    data: mmap.mmap | bytes,
    pattern: Pattern,
    runs: Sequence[Run],
    offsets: Sequence[int],
    most: int,
) -> list[Match]:
    """Return the first matches, told by the documents as the view has them."""
    starts, held = [start for start, _, _ in runs], dict[int, list[int]]()
    for offset in offsets:
        held.setdefault(bisect_right(starts, offset) - 1, []).append(offset)
    matches: list[Match] = []
    for at in sorted(held, key=lambda at: runs[at][2]):
        if len(matches) >= most:
            break
        document = view.document(runs[at][2])
        lines = [_line(data, starts[at], offset) for offset in held[at][:most]]
        if all(
            line <= len(document.lines) and document.text_line(line).encode() == text for line, text in lines
        ):
            matches += (Match(document, line) for line, _ in lines)
        else:  # saved since the view was made
            matches += first_matches([document], pattern, most).first
    return matches


def _line(data: mmap.mmap | bytes, start: int, place: int) -> tuple[int, bytes]:
    """Return which line of a document a place is in, and its text; the document begins at `start`."""
    before = data[start:place]
    first = start + before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, data[first : data.find(b"\n", place)]
