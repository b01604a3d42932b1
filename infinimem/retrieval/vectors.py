"""Vectors of texts, each computed once: kept in a library's cache under the hash of its text.

    <cache root>/<16 hex>/vectors/<16 hex of the embedder's name>/
        manifest.json    names the two files, how many rows count, and their checksum: the commit point
        keys.<hex>       16 bytes a row: the hash of the text
        rows.<hex>       float32, one row a text

Both files only grow. A writer appends after the rows that count, then commits; what a killed one left is
written over. Readers map the files and take no lock. What is garbled is dropped and computed anew.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infinimem.embedders.base import Embedder
from infinimem.errors import LibraryError
from infinimem.log import log
from infinimem.retrieval import cache

KEY = 16
from infinimem.index.pieces import text_key
from infinimem.store.folders import state_of
from infinimem.store.view import Stored

Matrix = NDArray[np.float32]
Keys = NDArray[np.uint64]
"""Two numbers a row: the 16 bytes of a text's hash."""
Positions = NDArray[np.int64]

FORMAT = "vectors-1"
_DIGITS = 6
"""Of a score; beyond them processors differ."""
_FIRST, _MOST = 64, 4096
"""Texts of a portion."""
_SHORT = 0.5
"""Seconds; after a portion that took less the next is twice as large."""
_LONG = 10.0
"""Seconds that are left where it is told."""


def as_keys(keys: Sequence[bytes] | NDArray[Any]) -> Keys:
    """Keys as an array of two numbers each.

    Args:
        keys: 16 bytes each; or an array whose rows are 16 bytes.
    """
    data = keys if isinstance(keys, np.ndarray) else np.frombuffer(b"".join(keys), np.uint8)
    return np.ascontiguousarray(data).view(np.uint8).reshape(-1).view(np.uint64).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Held(cache.Commit):
    """What is known at one moment; it never changes, so positions in it hold as long as it is held.

    Args:
        manifest: that it was read from; empty in memory.
    """

    keys: Keys
    matrix: Matrix
    """One row of length 1 (or of zeros) a key."""
    checksums: tuple[int, int] = (0, 0)
    """Of keys and rows, from the first on."""
    known: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    """The order of the first keys, as it was found before the others came."""

    @cached_property
    def order(self) -> Positions:
        """Where the keys stand, ascending by their first number."""
        first, start = self.keys[:, 0], len(self.known)
        new = start + np.argsort(first[start:], kind="stable")
        return np.insert(self.known, np.searchsorted(first[:start], first[new], "right", self.known), new)

    def rows(self, keys: Sequence[bytes] | NDArray[Any]) -> Positions:
        """Where the vectors of these keys stand in `matrix`; -1 for those without."""
        wanted = as_keys(keys)
        if not len(self.keys) or not len(wanted):
            return np.full(len(wanted), -1, dtype=np.int64)
        at = np.searchsorted(self.keys[:, 0], wanted[:, 0], sorter=self.order)
        found = self.order[np.minimum(at, len(self.keys) - 1)]
        return np.where((self.keys[found] == wanted).all(axis=1), found, -1)


class Vectors:
    """The vectors of one library by one embedder; more are computed as they are asked for.

    Args:
        root: the library's absolute path; None keeps them in memory.
        embedder: computes what is missing.
    """

    def __init__(self, root: str | None, embedder: Embedder) -> None:
        self.embedder = embedder
        self._root = root
        self._writing = threading.Lock()
        self._held = self._nothing()
        self._in_memory = root is None
        """Also where the disk refused: this process then keeps what it knows."""

    @property
    def held(self) -> Held:
        """What is known now, of this process and of others."""
        if not self._in_memory:
            self._held = self._newest(self.folder())
        return self._held

    def add(self, texts: Sequence[str], still: Callable[[], bool] = lambda: True) -> Held:
        """Compute the vectors of those texts that have none, and keep them.

        Args:
            texts: in any order; doubled ones are computed once.
            still: whether the library's files hold these texts now (see `unchanged`). Where they do not, or a
                `forget` comes meanwhile, what is computed is not kept.

        Returns:
            What is known then; every text has a row in it.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder; what was computed before is kept.
        """
        wanted = {text_key(text): text for text in texts}
        with self._writing, ExitStack() as stack:
            held = self.held
            missing = [key for key, at in zip(wanted, held.rows(list(wanted)), strict=True) if at < 0]
            folder = self._opened(stack) if missing else None
            if folder and not still():  # asked after the folder was opened: a later `forget` deletes that
                folder = None
            for portion in portions(self.embedder.name, len(missing)):
                keys = missing[portion]
                rows = self.embedder.embed([wanted[key] for key in keys])
                held = self._keep(held, as_keys(keys), np.ascontiguousarray(rows, np.float32), folder)
            places = held.rows(list(wanted)).tolist()
            if lost := [key for key, at in zip(wanted, places, strict=True) if at < 0]:
                rows = self.embedder.embed([wanted[key] for key in lost])  # the cache was deleted meanwhile
                held = self._keep(held, as_keys(lost), np.ascontiguousarray(rows, np.float32), None)
            return held

    # ── keeping ─────────────────────────────────────────────────────────────────────────────────

    def _opened(self, stack: ExitStack) -> tuple[Path, int] | None:
        """The folder and a descriptor of it; as long as that is open no other folder is taken for it."""
        folder = None if self._in_memory else self.folder()
        if folder is None:
            return None
        try:
            here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        stack.callback(os.close, here)
        return folder, here

    def _keep(self, known: Held, keys: Keys, rows: Matrix, opened: tuple[Path, int] | None) -> Held:
        """What is known with these rows, on disk if that is possible."""
        if opened and not self._in_memory:
            folder, here = opened
            try:
                with cache.exclusive(folder, wait=True) as writer:
                    if writer and os.path.samestat(folder.lstat(), os.fstat(here)):
                        self._held = held = self._newest(folder)
                        new = held.rows(keys) < 0  # another process may have come first
                        self._append(writer, folder, held, keys[new], rows[new])
                        self._held = self._newest(folder)
                        return self._held
            except FileNotFoundError:
                pass  # a `forget` came between
            except OSError as error:
                log.warning("vectors are kept in memory (%s: %s)", folder, error.strerror or error)
                self._in_memory = True
        new = known.rows(keys) < 0
        held = Held({}, np.concatenate([known.keys, keys[new]]), np.concatenate([known.matrix, rows[new]]))
        if self._in_memory:
            self._held = held
        return held

    def _append(self, writer: cache.Writer, folder: Path, held: Held, keys: Keys, rows: Matrix) -> None:
        """Write after the rows that count, and commit."""
        named, count = {part: held.manifest.get(part, "") for part in ("keys", "rows")}, len(held.keys)
        if not held.manifest:
            named = {part: cache.new_name(part) for part in named}
            for name in named.values():
                writer.write(name)
        for part, data, width in (("keys", keys, KEY), ("rows", rows, 4 * self.embedder.size)):
            with (folder / named[part]).open("r+b") as file:
                file.truncate(count * width)
                file.seek(0, os.SEEK_END)
                file.write(data.data.cast("B") if len(data) else b"")
        manifest = {
            "format": FORMAT,
            "embedder": self.embedder.name,
            "size": self.embedder.size,
            "count": count + len(keys),
            **named,
            "checksums": _sums(keys, rows, held.checksums),
        }
        writer.commit(manifest, named.values())

    def _newest(self, folder: Path | None) -> Held:
        """What the manifest names; nothing where it is garbled or does not fit its files."""
        held = folder and cache.newest(folder, FORMAT, self._held, partial(self._load, folder))
        return held or self._nothing()

    def _load(self, folder: Path, manifest: dict[str, Any]) -> Held:
        size, count, before = self.embedder.size, manifest["count"], self._held
        if (manifest["embedder"], manifest["size"]) != (self.embedder.name, size):
            raise ValueError("these are another embedder's")
        keys = _mapped(folder / manifest["keys"], np.dtype(np.uint64), 2, count)
        rows = _mapped(folder / manifest["rows"], np.dtype(np.float32), size, count)
        if before.manifest.get("keys") != manifest["keys"] or len(before.keys) > count:
            before = self._nothing()
        start = len(before.keys)  # only what is new is read
        sums = _sums(keys[start:], rows[start:], before.checksums)
        if list(sums) != manifest["checksums"]:
            raise ValueError("the vectors are garbled")
        return Held(manifest, keys, rows, sums, before.order)

    def _nothing(self) -> Held:
        return Held({}, np.zeros((0, 2), np.uint64), np.zeros((0, self.embedder.size), np.float32))

    def folder(self) -> Path | None:
        """Where they are kept, made anew where a `forget` deleted it; None where they are not kept."""
        name = hashlib.sha256(self.embedder.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return cache.cache_folder(self._root, "vectors", name) if self._root is not None else None


def _mapped(path: Path, kind: np.dtype[Any], width: int, count: int) -> NDArray[Any]:
    """The first rows of a file.

    Raises:
        OSError: there is no such file.
        ValueError: it is shorter than that.
    """
    if not count:
        return np.zeros((0, width), kind)
    data = cache.mapped(path, count * width * kind.itemsize)
    return np.frombuffer(data, kind).reshape(count, width)


def _sums(keys: Keys, rows: Matrix, before: tuple[int, int]) -> tuple[int, int]:
    """The checksums of keys and rows, with those of all that stand before them."""
    return zlib.crc32(keys.data, before[0]), zlib.crc32(rows.data, before[1])


def portions(name: str, count: int, clock: Callable[[], float] = time.monotonic) -> Iterator[slice]:
    """Portions of about a second, as places of texts: so much is lost at most where the process is killed.

    Args:
        name: of the embedder, for the message.
        count: of texts.
        clock: gives seconds; the next portion is asked for when the last one is done.
    """
    done, size, told = 0, _FIRST, False
    while done < count:
        began = clock()
        yield slice(done, done + size)
        took, done = clock() - began, done + size
        left = took * (count - done) / size
        if left > _LONG and not told:
            log.warning("%s reads %d texts, once; about %.0f s", name, count, took + left)
            told = True
        if took < _SHORT:
            size = min(2 * size, _MOST)


_shared: dict[tuple[str, str], Vectors] = {}
_sharing = threading.Lock()
_SHARED = 4
"""Libraries whose vectors stay mapped; the one that was asked for longest ago is let go."""


def vectors_of(root: str | None, embedder: Embedder) -> Vectors:
    """The vectors of a library, shared by all that ask in this process.

    Args:
        root: the library's absolute path (`view.stored.root`); None for a view without files, in memory.
        embedder: computes what is missing.
    """
    if root is None:
        return Vectors(None, embedder)
    key = root, embedder.name
    with _sharing:
        found = _shared.pop(key, None) or Vectors(root, embedder)
        _shared[key] = found
        while len(_shared) > _SHARED:
            del _shared[next(iter(_shared))]
    return found


def unchanged(stored: Stored, ids: Iterable[str]) -> bool:
    """Whether the files of these documents are in the state that a snapshot saw."""
    root = Path(stored.root)
    try:
        return all(state_of(root, f"{doc_id}.md") == stored.stamps.get(doc_id) for doc_id in ids)
    except LibraryError:
        return False


def top(
    matrix: Matrix, query: NDArray[Any], k: int, among: NDArray[Any] | None = None
) -> tuple[Positions, Matrix]:
    """The rows nearest to a query, best first; ties by position.

    Args:
        matrix: one row a text.
        query: of the same size; one of zeros is near to nothing.
        k: at most so many.
        among: positions in rising order, that alone are looked at; None for all.

    Returns:
        Positions and scores, the latter rounded to 6 digits. Every row is compared: exact, in one product.
    """
    count = len(matrix) if among is None else len(among)
    if k <= 0 or not count or not np.any(query):
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    if among is None:
        scores = matrix @ query
    elif 4 * count < len(matrix):
        scores = matrix[among] @ query
    else:
        scores = (matrix @ query)[among]
    scores = np.round(scores, _DIGITS)
    near = np.arange(count)
    if k < count:
        least = np.partition(scores, count - k)[count - k]
        near = np.flatnonzero(scores >= least)
    near = near[np.argsort(-scores[near], kind="stable")][:k]
    places = near if among is None else among[near]
    return places.astype(np.int64), scores[near].astype(np.float32)
