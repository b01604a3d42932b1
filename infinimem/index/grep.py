"""Pattern search over the lines of documents, in time linear in the text whatever the pattern.

Patterns come from models and clients: they run in RE2 or as literals, never in `re`. It knows lines, nothing
of entries. Of a small library each document is looked through; the text of a large one is mapped into memory:

    <folder of index.db>/text-<8 hex>    documents one behind another, lines as they are shown, ended by "\n"

Where each document lies is in index.db; of one that differs now the file is read.
"""

from __future__ import annotations

import mmap
import os
import re
import secrets
import sqlite3
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from infinimem.errors import UsageError
from infinimem.log import log
from infinimem.markdown.characters import sound
from infinimem.markdown.document import Document
from infinimem.markdown.signature import without_tombstones
from infinimem.store.folders import Stamp
from infinimem.store.index import Index
from infinimem.store.view import Scope, View

MAX_PATTERN = 1000
MAX_PROGRAM = 10_000
"""Instructions of a compiled pattern; counted repeats within each other multiply."""
MAX_SECONDS, PACE, PER_LINE = 2, 10, 2000
"""CPU time that one search may take beyond so many nanoseconds a byte and a line that matches, which no
ordinary pattern needs."""
MAX_STEPS = 250_000_000
"""Instructions times bytes of text that are searched at once, for RE2 cannot be stopped: about a second where
it runs out of states."""

SMALL_DOCUMENTS, SMALL_BYTES = 300, 4 << 20
"""A library up to this size is looked through document by document."""
FEW, MUCH = 64, 1 << 20
"""So many documents, or bytes of them, are put into the file; fewer are read again and held."""
CHUNK = 1 << 20
MOST_THREADS = 4
WORTH_A_THREAD = 4 << 20
"""Bytes; for less, another thread costs more than it saves. RE2 runs without Python's lock."""

AS_IT_STANDS = "nothing matches it as a pattern; it was searched for literally"
SMALLER = "smaller counts in {…}, fewer of them within each other, or plain text"
TOO_LARGE = f"the pattern is too large (over {MAX_PROGRAM} instructions); use {SMALLER}"
_APART = re.compile(r"\\[AzC]|\(\?[a-zA-Z]*-")
"""What means something else in a whole text, or may: such a pattern is looked for line by line."""

META = re.compile(r"[\\.^$|?*+()\[{]")

Search = Callable[[Any, int, int], tuple[int, int]]
"""From a text and two offsets in it, where a match begins and ends; -1 where there is none."""


class Match(NamedTuple):
    """A line in which the pattern occurs; lines count from 1."""

    document: Document
    line: int


class Found(NamedTuple):
    """How many lines match, and the first of them by document and line."""

    total: int
    first: list[Match]


@dataclass
class Pattern:
    """A pattern ready for one search; `notes` says where it is not used as it was written."""

    line: Any
    """Compiled for a line."""
    text: Any
    """Compiled for a whole text, where it finds no line end; None where that would mean something else."""
    notes: list[str] = field(default_factory=list)
    is_plain: bool = False
    """Whether it is ASCII that stands for itself."""
    left: int = MAX_SECONDS * 10**9
    """Nanoseconds that this search may still take."""

    def lines(self, text: bytes | mmap.mmap, start: int, end: int) -> Iterator[int]:
        """Give a place in each matching line of a part of a text; every line of it ends with "\n".

        A UsageError if the search takes too long.
        """
        search, at = spans(self.text or self.line), start
        reach = self.reach if self.text else 1
        while at < end:
            most = min(at + reach, end)
            stop = text.rfind(b"\n", at, most) + 1 or text.find(b"\n", at, end) + 1 or end
            began = self._begin(stop - at)
            part, before = (text, 0) if self.text else (text[at : stop - 1], at)
            here, last = at - before, stop - 1 - before
            while here <= last and (place := search(part, here, last))[0] >= 0:
                yield before + place[0]
                self.left += PER_LINE
                here = part.find(b"\n", place[1], last) + 1 or last + 1
            self._spend(began, stop - at)
            at = stop

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Give begin and end of each place in a line of text where it matches; a UsageError as `lines`."""
        data = text.encode("utf-8", "surrogateescape")
        began, read, at = self._begin(len(data)), 0, 0
        for place in self.line.finditer(data):
            span = []
            for end in place.span():
                at, read = at + len(data[read:end].decode("utf-8", "surrogateescape")), end
                span.append(at)
            yield span[0], span[1]
            began = self._spend(began, 0)
        self._spend(began, len(data))

    def found(self, text: str) -> list[str]:
        """What of a line of text it matches, in order."""
        return [text[start:end] for start, end in self.places(text)]

    @property
    def reach(self) -> int:
        """Bytes that may be searched at once."""
        return 1 << 62 if self.is_plain else MAX_STEPS // max(int(self.line.programsize), 1)

    def _begin(self, size: int) -> int:
        if size > self.reach:
            raise UsageError(f"the pattern is too large for a line of {size} bytes; use {SMALLER}")
        return time.thread_time_ns()

    def _spend(self, began: int, size: int) -> int:
        now = time.thread_time_ns()
        self.left -= now - began - PACE * size
        if self.left < 0:
            raise UsageError(f"the pattern takes more than {MAX_SECONDS} s to search for; use {SMALLER}")
        return now


def spans(expression: Any) -> Search:
    """Return what the package's `search` asks, which takes three times as long to tell of it."""
    import re2

    try:
        match, anywhere = expression._regexp.Match, re2._Anchor.UNANCHORED
    except AttributeError:  # another version of the package

        def slower(text: Any, start: int, end: int) -> tuple[int, int]:
            found = expression.search(text, start, end)
            return (-1, -1) if found is None else found.span()

        return slower
    return lambda text, start, end: match(anywhere, text, start, end)[0]


def compile_pattern(pattern: str, ignore_case: bool = True, literal: bool = False) -> Pattern:
    """Prepare a pattern of RE2; what RE2 refuses, or is to be taken literally, is searched for as it stands.

    A UsageError if it is too large.
    """
    import re2

    pattern = pattern.encode("utf-8", "replace").decode()
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.never_capture = True
    notes = [AS_IT_STANDS] if literal else []
    if len(pattern) > MAX_PATTERN:
        literal = True
        notes = [f"the pattern is longer than {MAX_PATTERN} characters; it was searched for literally"]
    elif not literal:
        try:
            re2.compile(pattern, options)
        except re2.error as error:
            literal = True
            reason = error.args[0].decode("utf-8", "replace")
            if "too large" in reason:
                raise UsageError(TOO_LARGE) from None
            notes = [f"not a pattern that RE2 knows ({reason}); it was searched for literally"]
    options.literal = literal
    line = re2.compile(pattern, options)
    if line.programsize > MAX_PROGRAM:
        raise UsageError(TOO_LARGE)
    options.never_nl = True
    text = None if not literal and _APART.search(pattern) else pattern if literal else f"(?m){pattern}"
    text = None if text is None else re2.compile(text, options)
    is_plain = (literal or not META.search(pattern)) and "\n" not in pattern and pattern.isascii()
    return Pattern(line, text, notes, bool(pattern) and is_plain)


def text_of(document: Document) -> bytes:
    """The lines of a document as they are shown (`Document.text_line`), each ended by "\\n"."""
    if not document.lines:
        return b""
    text = without_tombstones("\n".join((*document.lines, "")))
    return sound(text).encode().replace(b"\r\n", b"\n")


def first_matches(documents: Iterable[Document], pattern: Pattern, most: int) -> Found:
    """Return the first lines that match, at most so many, header lines included, and the number of all."""
    total, found = 0, list[Match]()
    for document in documents:
        text = text_of(document)
        places = [*pattern.lines(text, 0, len(text))]
        total += len(places)
        number, before = 1, 0
        for at in places[: most - len(found)]:
            number += text.count(b"\n", before, at)
            before = at
            found.append(Match(document, number))
    return Found(total, found)


# ── the text of a large library ──────────────────────────────────────────────────────────────────

_SCHEMA = """
create table if not exists text(file text not null, size integer not null, state integer not null);
create table if not exists place(doc integer primary key, start integer not null, length integer not null);
create trigger if not exists document_leaves after delete on document
    begin delete from place where doc = old.id; end;
create trigger if not exists document_grows after update of mtime, size, inode on document
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
        self._places: dict[tuple[str, Stamp], tuple[int, int]] = {}
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
                places = {name: self._places.get((name, stamps[name])) for name in view.ids(scope)}
                runs = sorted((*place, name) for name, place in places.items() if place)
                missing = [name for name, place in places.items() if not place]
                self._chosen[scope] = Lying(self._data, runs, missing)
            return self._chosen[scope]

    def _refresh(self, view: View) -> None:
        with suppress(sqlite3.OperationalError):
            self._read()
        missing = [stamp for name, stamp in self._stamps.items() if (name, stamp) not in self._places]
        if len(missing) > FEW or sum(stamp.size for stamp in missing) > MUCH:
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
            query = "select name, mtime, size, inode, start, length from place join document on id = doc"
            places = {(row[0], Stamp(*row[1:4])): (row[4], row[4] + row[5]) for row in db.execute(query)}
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
        stored, folder = view.stored, self.index.folder
        assert stored and folder, "only what files show is written"
        file, size, state = db.execute("select file, size, state from text").fetchone() or ("", 0, 0)
        live = db.execute("select coalesce(sum(length), 0) from place").fetchone()[0]
        path = folder / file
        if not file or 3 * live < 2 * size or not path.is_file() or path.stat().st_size < size:
            db.execute("delete from place")
            file, size = f"text-{secrets.token_hex(4)}", 0
            for old in folder.glob("text-*"):
                old.unlink(missing_ok=True)
            path = folder / file
        from infinimem.index.tables import Current  # and tantivy

        reader = Current(db, view)
        with path.open("r+b" if size else "wb") as out:
            out.truncate(size)
            out.seek(size)
            query = (
                "select id, name, mtime, size, inode from document where id not in (select doc from place)"
            )
            for doc, name, *stamp in db.execute(query).fetchall():
                if (document := reader.read(name, Stamp(*stamp))) is not None:
                    data = text_of(document)
                    db.execute("insert into place values(?, ?, ?)", (doc, size, len(data)))
                    size += len(data)
                    out.write(data)
        db.execute("delete from text")
        db.execute("insert into text values(?, ?, ?)", (file, size, state + 1))


def _text(view: View, known: Text | None, _: Collection[str] | None) -> Text:
    return known if known and known.index is view.index else Text(view.index)


def search(view: View, scope: Scope, pattern: Pattern, most: int) -> Found:
    """Search all documents of a scope; return at most so many matches, by document and line; count all."""
    stamps = view.stored.stamps if view.stored else {}
    if len(stamps) <= SMALL_DOCUMENTS and sum(stamp.size for stamp in stamps.values()) <= SMALL_BYTES:
        return first_matches(map(view.document, view.ids(scope)), pattern, most)
    data, runs, pending = view.derived(_text).at(view, scope)
    offsets = _scan(data, pattern, _chunks(runs))
    documents = map(view.document, pending) if len(pending) <= FEW else view.each(pending)
    beside = first_matches(documents, pattern, most)
    found = [*_matches(view, runs, offsets, pattern, most), *beside.first]
    found = sorted(found, key=lambda match: (match.document.id, match.line))[:most]
    return Found(max(len(offsets) + beside.total, len(found)), found)


def _chunks(runs: Sequence[Run]) -> list[tuple[int, int]]:
    chunks = list[tuple[int, int]]()
    start = end = 0
    for first, last, _ in (*runs, (-1, 0, "")):
        if first != end or end - start >= CHUNK:
            chunks += [(start, end)] if end > start else []
            start = first
        end = last
    return chunks


def _scan(data: mmap.mmap | bytes, pattern: Pattern, chunks: Sequence[tuple[int, int]]) -> list[int]:
    size = sum(end - start for start, end in chunks)
    many = max(1, min(MOST_THREADS, os.cpu_count() or 1, size // WORTH_A_THREAD))
    cuts = [len(chunks) * part // many for part in range(many + 1)]

    def work(cut: tuple[int, int]) -> list[int]:
        some = chunks[cut[0] : cut[1]]
        return [place for start, end in some for place in pattern.lines(data, start, end)]

    if many == 1:
        return work((0, len(chunks)))
    with ThreadPoolExecutor(many) as threads:
        return [place for places in threads.map(work, pairwise(cuts)) for place in places]


def _matches(
    view: View, runs: Sequence[Run], offsets: Sequence[int], pattern: Pattern, most: int
) -> list[Match]:
    """Look for the first matches in the documents as they are."""
    starts, names, at = [start for start, _, _ in runs], list[str](), 0
    while at < len(offsets):
        _, end, name = runs[bisect_right(starts, offsets[at]) - 1]
        names.append(name)
        at = bisect_left(offsets, end, at)
    matches: list[Match] = []
    for name in sorted(names):
        if len(matches) >= most:
            break
        matches += first_matches([view.document(name)], pattern, most - len(matches)).first
    return matches
