"""One packed copy of a large library's text in the cache directory, mapped into memory, for grep.

    text.*    segments: documents in the order of their ids, every line as it is shown, ended by "\\n"
    rows.*    JSON, a list a document: id, segment, offset, length, and the file's stamp

What changed since is read from the files (`Snapshot.pending`), until it is so much that it is written as
another segment. cache.py says how readers and the one writer get along. The manifest has the checksum of each
file; one that does not agree is written anew.
"""

from __future__ import annotations

import json
import mmap
import threading
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.retrieval import cache
from infinimem.retrieval.grep import text_of
from infinimem.store.files import Files
from infinimem.store.folders import Stamp
from infinimem.store.view import Stored, View

FORMAT = "packed text 2"
FEW = 64
MUCH = 1 << 20
"""So many documents, or bytes of them, are written as a further segment; fewer are read again and held."""

Place = tuple[int, int, int]
"""Segment, offset and length of a document's text."""


@dataclass(frozen=True, eq=False)
class _Table(cache.Commit):
    """What one commit says."""

    segments: tuple[mmap.mmap | bytes, ...]
    places: Mapping[str, Place]
    stamps: Mapping[str, tuple[int, int, int]]

    def missing(self, ids: tuple[str, ...], stored: Stored) -> list[str]:
        """The documents that are not here as they are now."""
        now, known = stored.stamps, self.stamps
        return [doc_id for doc_id in ids if known.get(doc_id) != now[doc_id]]


@dataclass(frozen=True)
class Snapshot:
    """The packed text of the documents of one view."""

    stored: Stored
    segments: tuple[mmap.mmap | bytes, ...]
    places: Mapping[str, Place]
    pending: tuple[str, ...]
    """Documents that are to be read from their files."""
    chosen: dict[tuple[str, str], tuple[list[tuple[int, int, str]], ...]] = field(default_factory=dict)
    """For each segment the documents in a strategy's scope, as far as somebody asked: begin, end and id."""


class Packed:
    """The packed text of a library.

    Args:
        folder: as `cache_folder` gave it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._table = _Table({}, (), {}, {})
        self._snapshot: Snapshot | None = None
        self._writable = True

    def at(self, ids: tuple[str, ...], stored: Stored) -> Snapshot:
        """The packed text of a view's documents, built or brought up to date first if need be."""
        with self._lock:
            if self._snapshot is None or self._snapshot.stored is not stored:
                self._snapshot = self._fresh(ids, stored)
            return self._snapshot

    def _fresh(self, ids: tuple[str, ...], stored: Stored) -> Snapshot:
        self._table = self._read()
        if self._is_much(ids, stored):
            try:
                with cache.exclusive(self.folder, True) as writer:
                    self._table = self._read()
                    if writer and self._is_much(ids, stored):
                        self._write(writer, ids, stored)
                        self._table = self._read()
                    self._writable = writer is not None
            except (OSError, LibraryError):  # no space, or a `forget` took the folder away
                self._writable = False
        pending = self._table.missing(ids, stored)
        places = {doc_id: self._table.places[doc_id] for doc_id in set(ids).difference(pending)}
        return Snapshot(stored, self._table.segments, places, tuple(pending))

    def _is_much(self, ids: tuple[str, ...], stored: Stored) -> bool:
        """Whether what is not packed is worth a segment."""
        sizes = [stored.stamps[doc_id].size for doc_id in self._table.missing(ids, stored)]
        return self._writable and (len(sizes) > FEW or sum(sizes) > MUCH)

    def _read(self) -> _Table:
        """The last commit."""
        return cache.newest(self.folder, FORMAT, self._table, self._load) or _Table({}, (), {}, {})

    def _load(self, manifest: dict[str, Any]) -> _Table:
        known = dict(zip(self._table.manifest.get("segments", ()), self._table.segments, strict=True))
        segments = tuple(
            known.get(name) or _mapped(self.folder / name, manifest["checksums"][name])
            for name in manifest["segments"]
        )
        table = _mapped(self.folder / manifest["rows"], manifest["checksums"][manifest["rows"]])
        rows = json.loads(table[:])
        places = {row[0]: (row[1], row[2], row[3]) for row in rows}
        return _Table(manifest, segments, places, {row[0]: tuple(row[4:]) for row in rows})

    def _write(self, writer: cache.Writer, ids: tuple[str, ...], stored: Stored) -> None:
        """Commit what is missing as a further segment, or everything anew where too much is dead."""
        table = self._table
        held = {doc_id: table.places[doc_id] for doc_id in set(ids).difference(table.missing(ids, stored))}
        live = sum(length for _, _, length in held.values())
        dead = sum(map(len, table.segments)) - live
        anew = dead * 3 > dead + live or not table.segments
        names: list[str] = [] if anew else list(table.manifest["segments"])
        sums: dict[str, int] = {} if anew else {name: table.manifest["checksums"][name] for name in names}
        places = {} if anew else dict(held)
        reader = Files(Path(stored.root))
        text, size, checksum = cache.new_name("text"), 0, 0
        with writer.file(text) as file:
            for doc_id in ids:
                if doc_id in places:
                    continue
                data = _packable(reader, doc_id, stored.stamps[doc_id])
                if data is None:  # it cannot be read, or was saved meanwhile
                    continue
                places[doc_id] = (len(names) if data else 0, size, len(data))
                size, checksum = size + len(data), zlib.crc32(data, checksum)
                file.write(data)
        if size:
            names, sums = [*names, text], {**sums, text: checksum}
        if not names:
            return
        rows = cache.new_name("rows")
        stamps = stored.stamps
        data = json.dumps([(doc_id, *place, *stamps[doc_id]) for doc_id, place in places.items()]).encode()
        writer.write(rows, data)
        sums = {**sums, rows: zlib.crc32(data)}
        writer.commit({"format": FORMAT, "segments": names, "rows": rows, "checksums": sums}, sums)


def _packable(reader: Files, doc_id: str, stamp: Stamp) -> bytes | None:
    """The lines of a document as they are shown; None where its file is not as the snapshot says."""
    data = cache.as_stored(reader, doc_id, stamp)
    return None if data is None else text_of(Document.parse(doc_id, data))


def _mapped(path: Path, checksum: int) -> mmap.mmap | bytes:
    """A file.

    Raises:
        OSError: there is none.
        ValueError: it is not what its checksum says.
    """
    data = cache.mapped(path)
    if zlib.crc32(data) != checksum:
        raise ValueError(f"{path.name} is garbled")
    return data


def packed_text(view: View) -> Snapshot | None:
    """The packed text of a view; None where the library is small, or there is no cache directory."""
    if view.stored is None or not cache.is_large(view):
        return None
    packed = view.derived(_packed)
    return packed.at(view.ids("all"), view.stored) if packed else None


def _packed(view: View, known: Packed | None, _: Collection[str] | None) -> Packed | None:
    """The one of a library, handed from snapshot to snapshot."""
    folder = view.stored and cache.cache_folder(view.stored.root, "text")
    if not folder:
        return None
    return known if known and known.folder == folder else Packed(folder)
