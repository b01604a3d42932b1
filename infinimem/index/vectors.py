"""Vectors of texts, each computed once: a file of a library and an embedder, which only grows and is mapped.

    <cache root>/<16 hex>/vectors/<16 hex of the embedder's name>.rows

The form of a record: docs/SEARCH.md, little-endian. Behind the last stand zeros; a writer puts more there,
under a lock, and readers take none. What is put into a file that a `forget` deleted goes with it.

Vectors are made of texts alone, without speaker or date. It ranks nothing by itself: search.py does.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infinimem.embedders.base import Embedder
from infinimem.errors import LibraryError
from infinimem.index.pieces import GROUPS, WHOLE, Row, cut, plain
from infinimem.index.questions import nameless
from infinimem.log import log
from infinimem.markdown.characters import text_key
from infinimem.store.folders import state_of
from infinimem.store.lines import SPEAKER
from infinimem.store.view import Stored, View
from infinimem.user_folders import cache_folder

if TYPE_CHECKING:  # and tantivy
    from infinimem.index.tables import Reading, Tables

Matrix = NDArray[np.float32]
Positions = NDArray[np.int64]
Array = NDArray[Any]

DIGITS = 6
"""Of a cosine; beyond them processors differ."""
_PRODUCTS = 1 << 18
"""Of two numbers: so many at once wake no threads, which are waited for longer than it takes."""
_SLACK = 1e-4
"""How far a sum in single precision may be off."""
_KEY, _SUM = 16, 4
"""Bytes of a record before its row."""
_NOTHING = bytes(_KEY)
_SPARE = 256
"""Records for which a file has room at least, and a fifth more than it holds."""
_PORTION = 256
"""Texts that are computed at once: a process that is killed loses no more."""
_LONG = 10.0
"""Seconds that are left where it is told."""
NEAREST = 256
"""Texts that join the candidates, the nearest ones; fewer than 64 change the best ten."""
BESIDE_WEIGHT = 0.75
"""What the turns before and after count beside the text itself: an answer is near to its question."""
GONE = 64
"""Rows that are gone before those that are kept here go too."""


class Rows:
    """Vectors by the keys of their texts. It only grows: a row stays where it is.

    `size` is that of a vector, `file` the descriptor of what holds them, closed in the end; None for memory.
    """

    def __init__(self, size: int, file: int | None = None) -> None:
        self.size = size
        self.file = file
        self.process = os.getpid()
        self.at: dict[bytes, int] = {}
        """Where the vector of a text stands, by its `text_key`."""
        self._kind = np.dtype([("key", f"V{_KEY}"), ("sum", "<u4"), ("row", "<f4", (size,))])
        self._records: NDArray[Any] = np.zeros(0, self._kind)
        self._end = 0
        self._lock = threading.RLock()
        if file is not None:
            weakref.finalize(self, os.close, file)

    @property
    def matrix(self) -> Matrix:
        """A row of length 1 (or of zeros) a text; ask for it after the positions that it is asked for."""
        rows: Matrix = self._records["row"][: self._end]
        return rows

    def places(self, keys: Iterable[bytes]) -> list[int]:
        """Return where the vectors of these texts stand; -1 for those without."""
        return [self.at.get(key, -1) for key in keys]

    def copy(self) -> Rows:
        """Return the same in memory; what is put there is not kept."""
        twin = Rows(self.size)
        with self._lock:
            twin._records, twin._end, twin.at = self._records[: self._end], self._end, self.at.copy()
        return twin

    def read(self) -> None:
        """Take in what stands behind the rows that are known, of this process or of others."""
        with self._lock:
            if self.file is not None and (size := os.fstat(self.file).st_size) > self._records.nbytes:
                count = size // self._kind.itemsize
                mapped = mmap.mmap(self.file, count * self._kind.itemsize, access=mmap.ACCESS_READ)
                self._records = np.frombuffer(mapped, self._kind)
            width, data = self._kind.itemsize, self._records.view(np.uint8).data
            for at in range(self._end, len(self._records)):
                record = data[at * width : (at + 1) * width]
                if (key := bytes(record[:_KEY])) == _NOTHING:
                    break
                self._end = at + 1
                told = int.from_bytes(record[_KEY : _KEY + _SUM], "little")
                if zlib.crc32(record[_KEY + _SUM :], zlib.crc32(key)) == told:
                    self.at.setdefault(key, at)

    def put(self, keys: Sequence[bytes], rows: Matrix) -> None:
        """Put the vectors of texts behind the others, but for those that came in meanwhile."""
        with self._lock:
            if self.file is not None:
                fcntl.flock(self.file, fcntl.LOCK_EX)
            try:
                self.read()
                fresh = [at for at, key in enumerate(keys) if key not in self.at]
                records = np.zeros(len(fresh), self._kind)
                records["key"] = np.frombuffer(b"".join(keys[at] for at in fresh), f"V{_KEY}")
                records["row"] = rows[fresh]
                records["sum"] = [
                    zlib.crc32(record["row"].data, zlib.crc32(record["key"].tobytes())) for record in records
                ]
                self._write(records)
                self.read()
            finally:
                if self.file is not None:
                    fcntl.flock(self.file, fcntl.LOCK_UN)

    def _write(self, records: NDArray[Any]) -> None:
        end = self._end + len(records)
        room = end + end // 5 + _SPARE if end > len(self._records) else 0
        if self.file is None:
            if room:
                known, self._records = self._records, np.zeros(room, self._kind)
                self._records[: self._end] = known[: self._end]
            self._records[self._end : end] = records
            return
        if room:  # so that it need not be mapped anew for each record; on most disks zeros take no place
            os.ftruncate(self.file, room * self._kind.itemsize)
        with open(self.file, "r+b", closefd=False) as file:
            file.seek(self._end * self._kind.itemsize)
            file.write(records.tobytes())


class Vectors:
    """The vectors of one library by one embedder; more are computed as they are asked for.

    `root` is the library's absolute path, None keeps them in memory; `rows` are known already.
    """

    def __init__(self, root: str | None, embedder: Embedder, rows: Rows | None = None) -> None:
        self.embedder = embedder
        self._root = root
        self._writing, self._opening = threading.Lock(), threading.Lock()
        self._rows = rows or Rows(embedder.size)
        self._in_memory = root is None
        """Also where the disk refused: this process then keeps what it knows."""

    @property
    def rows(self) -> Rows:
        """What is known now, of this process and of others: other rows after a `forget`."""
        with self._opening:
            if not self._in_memory:
                try:
                    self._open()
                except OSError as error:
                    self._refuse(error)
            return self._rows

    def add(self, texts: Iterable[str], still: Callable[[], bool] = lambda: True) -> Rows:
        """Compute the vectors of those texts that have none, and keep them; return what is known then.

        Where the library's files do not hold these texts any more (`still`, see `unchanged`), or a `forget`
        comes meanwhile, what is computed is not kept.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder; what was computed before is kept.
        """
        wanted = {text_key(text): text for text in texts}
        with self._writing:
            rows = self.rows
            missing = [key for key in wanted if key not in rows.at]
            # asked after the file was opened: a later `forget` deletes that
            if missing and not (self._in_memory or still()):
                rows = rows.copy()
            began = time.monotonic()
            for start in range(0, len(missing), _PORTION):
                keys = missing[start : start + _PORTION]
                left = (time.monotonic() - began) * (len(missing) - start) / (start or 1)
                if start == _PORTION and left > _LONG:
                    name, count = self.embedder.name, len(missing)
                    log.warning("%s reads %d texts, once; %.0f s are left", name, count, left)
                new = self.embedder.embed([wanted[key] for key in keys], "passage")
                try:
                    rows.put(keys, new)
                except OSError as error:
                    rows = self._refuse(error)
                    rows.put(keys, new)
            return rows

    def _open(self) -> None:
        """Open the file, made anew where a `forget` deleted it, and read on."""
        name = f"{self.embedder.name} {self._rows.size}".encode("utf-8", "surrogatepass")
        folder = cache_folder(self._root or "", "vectors")
        if folder is None:
            raise PermissionError("the cache cannot be used")
        path = folder / f"{hashlib.sha256(name).hexdigest()[:16]}.rows"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        old = self._rows.file
        try:
            own = self._rows.process == os.getpid()  # a lock is not held apart by who shares a descriptor
            stands = old is not None and own and os.path.samestat(path.lstat(), os.fstat(old))
        except FileNotFoundError:
            stands = False
        if not stands:
            self._rows = Rows(self._rows.size, os.open(path, flags, 0o600))
        self._rows.read()

    def _refuse(self, error: OSError) -> Rows:
        log.warning("vectors are kept in memory (%s)", error.strerror or error)
        self._in_memory, self._rows = True, self._rows.copy()
        return self._rows


_shared: dict[tuple[str, str], Vectors] = {}
_sharing = threading.Lock()
_SHARED = 4
"""Libraries whose vectors stay mapped; the one that was asked for longest ago is let go."""


def vectors_of(view: View) -> Vectors:
    """Return the vectors of a view's library, shared by all that ask in this process. Of a view that shows
    its files otherwise than they are, or has none, what is added stays with this call."""
    root, embedder = view.root, view.embedder
    if root is None:
        return Vectors(None, embedder)
    key = root, embedder.name
    with _sharing:
        vectors = _shared.pop(key, None) or Vectors(root, embedder)
        _shared[key] = vectors
        while len(_shared) > _SHARED:
            del _shared[next(iter(_shared))]
    return vectors if view.stored else Vectors(None, embedder, vectors.rows.copy())


def unchanged(stored: Stored, ids: Iterable[str]) -> bool:
    """Return whether the files of these documents are in the state that a snapshot saw."""
    root = Path(stored.root)
    try:
        return all(state_of(root, f"{doc_id}.md") == stored.stamps.get(doc_id) for doc_id in ids)
    except LibraryError:
        return False


def cosines(rows: Matrix, query: Matrix) -> list[float]:
    """Return how near rows are to a vector, to 6 decimals; pair by pair, so that no cosine hangs on what else
    is compared."""
    products = rows.astype(np.float64) * query.astype(np.float64)
    return [round(float(score), DIGITS) + 0.0 for score in products.sum(axis=1)]


def nearest(
    matrix: Matrix, queries: Matrix, k: int, among: Positions | None = None
) -> list[tuple[Positions, list[float]]]:
    """Find for each of some vectors the rows nearest to it and all that tie with the last, in no order.

    Args:
        matrix: one row a text. It is gone through once, and every row is compared: exact.
        queries: one a row; one of zeros is near to nothing.
        k: so many and those that tie.
        among: positions that alone are looked at; None for all.

    Returns a pair a query: positions (places in `among`, where that is given) and cosines.
    """
    count = len(matrix) if among is None else len(among)
    if k <= 0 or not count:
        return [(np.zeros(0, np.int64), [])] * len(queries)
    whole = among is None or 4 * count > len(matrix)  # to gather a row costs as much as some products
    rows, found = matrix if whole else matrix[among], []
    scores = np.empty((len(queries), len(rows)), np.float32)
    if len(queries) == 1:  # "@" wakes threads for it
        np.einsum("ij,j->i", rows, queries[0], out=scores[0])
    else:
        step = max(_PRODUCTS // queries.size, 1)
        for start in range(0, len(rows), step):
            scores[:, start : start + step] = queries @ rows[start : start + step].T
    for query, own in zip(queries, scores, strict=True):
        own = own[among] if whole and among is not None else own
        least = np.partition(own, count - k)[count - k] - _SLACK if k < count else -np.inf
        near = np.flatnonzero(own >= least) if np.any(query) else np.zeros(0, np.int64)
        found.append((near, cosines(matrix[near if among is None else among[near]], query)))
    return found


_COLUMNS = [("id", "i8"), ("part", "i8"), ("seq", "i8"), ("at", "i8"), ("key", f"V{_KEY}")]
"""Of a row; `at` is where its vector stands, -1 for those that nobody looked for."""


class Columns:
    """Of all rows what is looked through, kept as long as tantivy's folder stands; new ones come behind."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: dict[str, Array] = {name: np.zeros(0, kind) for name, kind in _COLUMNS}
        self.vectors: Rows | None = None
        self.texts: tuple[object, Array] = (None, self.rows["at"])
        """What was asked last, and where the vectors of the rows stand that may be found, each once."""
        self.query: tuple[str, Any] = ("", None)

    def read(self, reading: Reading) -> dict[str, Array]:
        """Take in the rows that are new, let those go that are gone where they are many, and return all."""
        last = int(self.rows["id"][-1]) if len(self.rows["id"]) else 0
        query = f"select id, part, seq, -1, key from row where id > ? and line != {WHOLE} order by id"
        if rows := reading.db.execute(query, (last,)).fetchall():
            fresh = np.array(rows, _COLUMNS)
            self.rows = {name: np.append(known, fresh[name]) for name, known in self.rows.items()}
        count = f"select count(*) - (select count(*) from row where line = {WHOLE}) from row"
        if len(self.rows["id"]) > reading.db.execute(count).fetchone()[0] + GONE:
            there = np.isin(self.rows["id"], [row[0] for row in reading.db.execute("select id from row")])
            self.rows = {name: known[there] for name, known in self.rows.items()}
            self.texts = (None, self.rows["at"])
        return self.rows


class Meaning:
    """What a query means, compared with the rows of a reading.

    Args:
        query: as it was asked; names of speakers are left out, for they are in no text of theirs.
        parts: numbers of the groups that are searched.
        turns: seqs of turns that are searched too.

    Raises:
        ModelUnavailable, ModelNotConfigured: of the embedder.
    """

    def __init__(
        self, view: View, tables: Tables, reading: Reading, query: str, parts: Set[int], turns: Set[int]
    ) -> None:
        self._view, self._reading = view, reading
        columns: Columns = tables.kept.setdefault(reading.folder, Columns())
        with columns.lock:
            there = columns.read(reading)
            said = (there["part"] == GROUPS.index("evidence")) & (there["seq"] > 0)
            chosen = np.isin(there["part"], list(parts)) | (said & np.isin(there["seq"], list(turns)))
            wanted, vectors = np.flatnonzero(chosen | said), vectors_of(view)
            self._vectors = vectors.rows
            missing = self._missing(columns, self._vectors, wanted)
            if len(missing):
                self._vectors = vectors.add(*self._texts(there["id"][missing].tolist()))
                self._missing(columns, self._vectors, wanted)
            asked = nameless(query, view.lines.names(SPEAKER))
            if columns.query[0] != asked:  # a search may ask twice
                columns.query = (asked, view.embedder.embed([asked], "query")[0])
            vector = columns.query[1]
            self._query = vector.astype(np.float64)
            here = chosen & (there["at"] >= 0)
            scope = (frozenset(parts), turns, len(there["id"]), self._vectors)
            if columns.texts[0] != scope:
                columns.texts = (scope, np.unique(there["at"][here]))
            texts = columns.texts[1]
            ((near, cosines),) = nearest(self._vectors.matrix, vector[None], NEAREST, texts)
            near = texts[near[np.array(cosines) > 0]]
            self.nearest: list[int] = there["id"][here & np.isin(there["at"], near)].tolist()

    def shares(self, rows: Sequence[Row], most: float) -> list[float]:
        """Return what rows get for their nearness, the nearest `most`; 0 where nothing is alike.

        The text's own cosine, and `BESIDE_WEIGHT` of the mean of the turns beside it; where there are none,
        it stands in for them.
        """
        keys = [[row.beside[at : at + _KEY] for at in range(0, len(row.beside), _KEY)] for row in rows]
        asked = dict.fromkeys(key for row, some in zip(rows, keys, strict=True) for key in (row.key, *some))
        there = [key for key in asked if key in self._vectors.at]
        # Row by row, so that a sum does not hang on what else is asked.
        products = np.einsum("ij,j->i", self._vectors.matrix[self._vectors.places(there)], self._query)
        near = dict.fromkeys(asked, 0.0)
        near.update(zip(there, np.round(products, DIGITS).tolist(), strict=True))
        sums = []
        for row, some in zip(rows, keys, strict=True):
            around = sum(near[key] for key in some) / len(some) if some else near[row.key]
            sums.append(max(near[row.key] + BESIDE_WEIGHT * around, 0.0))
        nearest = max(sums, default=0.0) or 1.0
        return [most * one / nearest for one in sums]

    def _missing(self, columns: Columns, rows: Rows, wanted: Array) -> Array:
        at = columns.rows["at"]
        if columns.vectors is not rows:  # in other vectors no place of before holds
            columns.vectors, at[:] = rows, -1
        left = wanted[at[wanted] < 0]
        at[left] = rows.places(map(bytes, columns.rows["key"][left]))
        return left[at[left] < 0]

    def _texts(self, ids: Sequence[int]) -> tuple[list[str], Any]:
        query = (
            "select d.name, r.start, r.end, r.piece from row r join document d on d.id = r.doc where r.id = ?"
        )
        wanted: dict[str, list[tuple[int, int, int]]] = {}
        for number in ids:
            for name, *place in self._reading.db.execute(query, (number,)):
                wanted.setdefault(name, []).append((place[0], place[1], place[2]))
        view, stored = self._view, self._view.stored
        texts = [
            text[slice(*cut(text, piece))]
            for document in view.each(name for name in sorted(wanted) if name in view)
            for start, end, piece in wanted[document.id]
            if end <= len(document.lines)  # a note may have been saved meanwhile
            for text in (plain(document, start, end),)
        ]
        return texts, lambda: stored is None or unchanged(stored, wanted)
