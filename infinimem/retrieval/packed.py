"""One packed copy of a large library's text in the cache directory, mapped into memory, for grep.

    text.*    segments: documents in the order of their ids, every line as it is shown, ended by "\\n";
              ASCII letters are lower-cased, so that one search serves both ways of looking
    case.*    beside each a bit a byte: where an upper-case letter stood
    rows.*    columns of 64-bit numbers, one row a document: segment, offset, length, whether it holds other
              forms of ASCII letters, and the file's stamp
    ids.*     the ids of the rows, a line each

What changed since is read from the files (`Snapshot.pending`), until it is so much that it is written as
another segment. cache.py says how readers and the one writer get along.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.retrieval import cache
from infinimem.retrieval.grep import text_of
from infinimem.store.files import Files
from infinimem.store.listing import Stamp
from infinimem.store.view import Stored, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = "packed text 1"
FEW = 64
MUCH = 1 << 20
"""So many documents, or bytes of them, are written as a further segment; fewer are read again and held."""
BLOCK = 1 << 20
_COLUMNS = ("segment", "offset", "length", "other", "mtime", "size", "inode")
_OTHER_FORMS = ("\u017f".encode(), "\u212a".encode())
"""A long s and a Kelvin sign: without case they are an s and a k."""
_NUMBER = (1 << 63) - 1


@dataclass(frozen=True)
class Segment:
    """A part of the packed text."""

    text: mmap.mmap
    case: mmap.mmap

    def original(self, start: int, end: int) -> bytes:
        """Bytes `start` to `end` with their upper-case letters."""
        import numpy as np

        first = start // 8
        bits = np.frombuffer(self.case, np.uint8, (end + 7) // 8 - first, first)
        upper = np.unpackbits(bits, bitorder="little")[start - first * 8 : end - first * 8]
        text = np.frombuffer(self.text, np.uint8, end - start, start)
        return (text ^ (upper << 5)).tobytes()


@dataclass(frozen=True)
class _Table:
    """What one commit says; `rows` has `_COLUMNS` as its rows."""

    name: str
    segments: tuple[Segment, ...]
    files: tuple[tuple[str, str], ...]
    ids: tuple[str, ...]
    rows: NDArray[np.int64]

    def places(self, ids: tuple[str, ...], stamps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each document, -1 where it is not here as it is now."""
        import numpy as np

        if not self.ids:
            return np.full(len(ids), -1)
        if ids == self.ids:
            found = np.arange(len(ids))
        else:
            at = dict(zip(self.ids, range(len(self.ids)), strict=True))
            found = np.array([at.get(doc_id, -1) for doc_id in ids], np.int64)
        return np.where((self.rows[4:, found] == stamps).all(axis=0), found, -1)


@dataclass(frozen=True)
class Snapshot:
    """The packed text of the documents of one view."""

    stored: Stored
    segments: tuple[Segment, ...]
    ids: tuple[str, ...]
    """Of all documents, sorted."""
    rows: NDArray[np.int64]
    """A column a document, as in the table; its segment is -1 where it is pending."""
    pending: tuple[str, ...]
    """Documents that are to be read from their files."""
    chosen: dict[tuple[str, str], NDArray[np.bool_]] = field(default_factory=dict)
    """Which documents are in a strategy's scope, as far as somebody asked."""


class Packed:
    """The packed text of a library.

    Args:
        folder: as `cache_folder` gave it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._table: _Table | None = None
        self._snapshot: Snapshot | None = None
        self._refused: Mapping[str, Stamp] = {}
        """What could not be packed; it is not tried again as it is."""
        self._writable = True

    def at(self, ids: tuple[str, ...], stored: Stored) -> Snapshot:
        """The packed text of a view's documents, built or brought up to date first if need be."""
        with self._lock:
            if self._snapshot is None or self._snapshot.stored is not stored:
                self._snapshot = self._fresh(ids, stored)
            return self._snapshot

    def _fresh(self, ids: tuple[str, ...], stored: Stored) -> Snapshot:
        known = stored.stamps
        stamps = _stamps(list(known.values()) if tuple(known) == ids else [known[doc_id] for doc_id in ids])
        self._table = self._read(self._table)
        places = self._table.places(ids, stamps)
        if self._is_much(stored, ids, places):
            try:
                with cache.exclusive(self.folder, True) as mine:
                    self._table = self._read(self._table)
                    places = self._table.places(ids, stamps)
                    if mine and self._is_much(stored, ids, places):
                        self._write(stored, ids, stamps, places)
                        self._table = self._read(None)
                        places = self._table.places(ids, stamps)
                    self._writable = mine
            except (OSError, LibraryError):  # no space, or a `forget` took the folder away
                self._writable = False
        rows = self._table.rows[:, places] if self._table.ids else _empty(len(ids))
        rows[0, places < 0] = -1
        pending = tuple(ids[at] for at in (places < 0).nonzero()[0].tolist())
        return Snapshot(stored, self._table.segments, ids, rows, pending)

    def _is_much(self, stored: Stored, ids: Sequence[str], places: NDArray[np.int64]) -> bool:
        """Whether what is not packed is worth a segment."""
        missing = [ids[at] for at in (places < 0).nonzero()[0].tolist()]
        sizes = [
            stored.stamps[doc_id].size
            for doc_id in missing
            if self._refused.get(doc_id) != stored.stamps[doc_id]
        ]
        return self._writable and (len(sizes) > FEW or sum(sizes) > MUCH)

    def _read(self, known: _Table | None) -> _Table:
        """The last commit; a file of it may be gone when a newer one is there."""
        import numpy as np

        for _ in range(3):
            manifest = cache.read_manifest(self.folder, FORMAT) or {}
            try:
                name = str(manifest["rows"])
                if known is not None and known.name == name:
                    return known
                files = tuple((str(text), str(case)) for text, case in manifest["segments"])
                segments = tuple(Segment(_map(self.folder / a), _map(self.folder / b)) for a, b in files)
                ids = tuple((self.folder / str(manifest["ids"])).read_text("utf-8").split("\n"))
                numbers = np.frombuffer((self.folder / name).read_bytes(), np.int64)
                table = _Table(name, segments, files, ids, numbers.reshape(len(_COLUMNS), len(ids)))
            except (FileNotFoundError, KeyError):
                continue
            except (OSError, ValueError, TypeError):
                break
            if _is_sound(table):
                return table
            break
        return _Table("", (), (), (), _empty(0))

    def _write(
        self, stored: Stored, ids: tuple[str, ...], stamps: NDArray[np.int64], places: NDArray[np.int64]
    ) -> None:
        """Commit what is missing as a further segment, or everything anew where too much is dead."""
        import numpy as np

        table = self._table
        assert table is not None
        live = int(table.rows[2, places[places >= 0]].sum()) if table.ids else 0
        dead = sum(len(segment.text) for segment in table.segments) - live
        anew = dead * 3 > dead + live or not table.segments
        files = () if anew else table.files
        rows = table.rows[:, places] if table.ids else _empty(len(ids))
        rows[0, places < 0] = -1
        rows[4:] = stamps
        wanted = np.arange(len(ids)) if anew else (places < 0).nonzero()[0]
        reader = Files(Path(stored.root))
        names = cache.new_name("text"), cache.new_name("case")
        refused: dict[str, Stamp] = {}
        with cache.new_file(self.folder, names[0]) as text, cache.new_file(self.folder, names[1]) as case:
            writer = _Writer(text, case)
            for at in wanted.tolist():
                doc_id, (segment, offset, length, *_) = ids[at], rows[:, at].tolist()
                if segment >= 0:
                    data = table.segments[segment].original(offset, offset + length) if length else b""
                else:
                    found = _packable(reader, doc_id, stored.stamps[doc_id])
                    if found is None:
                        refused[doc_id] = stored.stamps[doc_id]
                        continue
                    data = found
                rows[:4, at] = len(files), writer.size, len(data), _has_other_forms(data)
                writer.add(data)
            writer.flush()
        if files and not writer.size:
            rows[0, rows[0] == len(files)] = 0  # empty documents need no file of their own
        self._refused = refused
        if writer.size:
            files = (*files, names)
        kept = (rows[0] >= 0).nonzero()[0]
        if not len(kept) or not files:
            return
        row_name, id_name = cache.new_name("rows"), cache.new_name("ids")
        cache.write_file(self.folder, row_name, rows[:, kept].tobytes())
        cache.write_file(self.folder, id_name, "\n".join(ids[at] for at in kept.tolist()).encode())
        manifest = {"format": FORMAT, "segments": files, "rows": row_name, "ids": id_name}
        cache.write_manifest(self.folder, manifest)
        cache.sweep(self.folder, {row_name, id_name, *(name for pair in files for name in pair)})


class _Writer:
    """Writes text and case; a block at a time is in memory."""

    def __init__(self, text: IO[bytes], case: IO[bytes]) -> None:
        self.size = 0
        self._text, self._case = text, case
        self._block = bytearray()

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._block += data
        if len(self._block) >= BLOCK:
            whole = len(self._block) // 8 * 8
            self._put(self._block[:whole])
            del self._block[:whole]

    def flush(self) -> None:
        self._put(self._block)

    def _put(self, block: bytearray) -> None:
        import numpy as np

        upper = (np.frombuffer(block, np.uint8) - np.uint8(ord("A"))) < 26
        self._case.write(np.packbits(upper, bitorder="little").tobytes())
        self._text.write(block.lower())


def _packable(reader: Files, doc_id: str, stamp: Stamp) -> bytes | None:
    """Read from the file itself, never from what is held: that may be of before a `forget`."""
    try:
        data, found = reader.read_stamped(f"{doc_id}.md", stamp.size)
    except LibraryError:
        return None
    if found != stamp:
        return None
    if b"\r" not in data and not data.startswith(b"\xef\xbb\xbf"):
        try:
            data.decode()
        except UnicodeDecodeError:
            pass
        else:
            return data if data.endswith(b"\n") or not data else data + b"\n"
    return text_of(Document.parse(doc_id, data))


def _has_other_forms(data: bytes) -> bool:
    return not data.isascii() and any(form in data for form in _OTHER_FORMS)


def _stamps(stamps: Sequence[Stamp]) -> NDArray[np.int64]:
    """The last rows of a table."""
    import numpy as np

    numbers = chain.from_iterable(map(attrgetter("mtime_ns", "size", "inode"), stamps))
    try:
        flat = np.fromiter(numbers, np.int64, 3 * len(stamps))
    except OverflowError:  # inodes of some file systems use the last bit too
        flat = np.array(
            [number for s in stamps for number in (s.mtime_ns, s.size, s.inode & _NUMBER)], np.int64
        )
    return flat.reshape(len(stamps), 3).T


def _empty(count: int) -> NDArray[np.int64]:
    import numpy as np

    return np.zeros((len(_COLUMNS), count), np.int64)


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _is_sound(table: _Table) -> bool:
    """Whether every row lies in its segment: a garbled file must not be believed."""
    import numpy as np

    if not table.segments:
        return False
    segment, offset, length = table.rows[:3]
    if segment.min() < 0 or segment.max() >= len(table.segments) or offset.min() < 0 or length.min() < 0:
        return False
    sizes = np.array([len(part.text) for part in table.segments])
    if any(len(part.case) != (len(part.text) + 7) // 8 for part in table.segments):
        return False
    return bool((offset + length <= sizes[segment]).all())


opened: dict[str, Packed] = {}
"""The packed texts that this process has open, by folder, the one that was asked last at the end."""
_OPEN = 4
_opening = threading.Lock()


def packed_text(view: View) -> Snapshot | None:
    """The packed text of a view; None where the library is small, or there is no cache directory."""
    stored = view.stored
    if stored is None or not cache.is_large(view):
        return None
    folder = cache.cache_folder(stored.root, "text")
    if folder is None:
        return None
    with _opening:
        known = opened.pop(str(folder), None) or Packed(folder)
        opened[str(folder)] = known
        for old in list(opened)[:-_OPEN]:
            del opened[old]
    return known.at(view.ids("all"), stored)
