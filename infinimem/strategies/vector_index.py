"""Where records lie by the meaning of their texts: cosines, and the nearest records of a folder.

Exact: every row is compared, and what counts is computed in double precision pair by pair, so that no cosine
hangs on what else is compared. Source: All-Mem, Eq. 2 and 4; section 3.5 (search over the surface alone).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from infinimem.index.pieces import text_key
from infinimem.model import Located
from infinimem.retrieval.vectors import Held, Positions, Vectors, unchanged, vectors_of
from infinimem.store.view import Stored, View
from infinimem.strategies.records.record import Record, number_of
from infinimem.strategies.records.record_store import RecordStore

Row = NDArray[np.float32]

DIGITS = 6
"""Of a cosine; beyond them processors differ."""
_SLACK = 1e-4
"""How far a sum in single precision may be off."""

AT_ONCE = 256
"""Records whose neighbours are looked for with one product."""

Scored = list[tuple[str, float]]
"""Records with their cosines."""


class Places(dict[str, int]):
    """Where the vectors of a folder's records stand among the library's, by name."""

    def __init__(self) -> None:
        self._all: Positions | None = None
        self.names: list[str] = []

    def put(self, name: str, place: int) -> None:
        self[name] = place
        self._all = None

    def drop(self, name: str) -> None:
        del self[name]
        self._all = None

    @property
    def all(self) -> Positions:
        """One for each of `names`."""
        if self._all is None:
            self._all, self.names = np.fromiter(self.values(), np.int64, len(self)), [*self]
        return self._all


class VectorIndex:
    """The vectors of records, those of each folder apart; kept where the library has files."""

    def __init__(self, vectors: Vectors, root: str | None = None, stored: Stored | None = None) -> None:
        self._root = root
        self._stored = stored
        self._vectors = vectors
        self._held = vectors.held
        """The library's vectors; they are mapped, not copied."""
        self._groups: dict[str, Places] = {}
        """By folder; what tells of nothing stands apart and is near to nothing."""
        self._records: dict[str, Record] = {}
        """As their rows have them."""
        self._store: RecordStore | None = None
        self._strayed: set[str] = set()
        """Records in which it may differ from that store, for it followed one that is tried on."""

    @classmethod
    def of(cls, view: View, known: VectorIndex | None = None) -> VectorIndex:
        """The index of a library, with what is known of it already; `sync` fills it."""
        root, embedder = view.root, view.embedder
        if known and known._vectors.embedder.name == embedder.name and known._root == root:
            known._stored = view.stored
            return known
        return cls(vectors_of(root, embedder), root, view.stored)

    def follow(self, store: RecordStore) -> None:
        """As `sync` with a store as it was loaded; costs what changed since the last."""
        news = store.since(self._store)
        self.sync(store, None if news is None else {*news, *self._strayed})
        self._store, self._strayed = store, set()

    def sync(self, store: RecordStore, touched: Iterable[str] | None = None) -> None:
        """Bring the index in line with a store, of which these records may differ (all, if None)."""
        looked = {*store.records, *self._records} if touched is None else set(touched)
        moved = {name for name in looked if self._records.get(name) is not store.records.get(name)}
        wanted = {name: store.records[name] for name in moved if name in store}
        old = {name: self._records[name].text for name in wanted if name in self._records}
        fresh = {name: record for name, record in wanted.items() if old.get(name) != record.text}
        held = self._added(store, fresh)
        known = self._held.keys
        if not np.array_equal(
            known, held.keys[: len(known)]
        ):  # a `forget` came between: all stands elsewhere
            self._held, self._groups, self._records = held, {}, {}
            self.sync(store)
            return
        self._held = held
        self._strayed |= looked
        keys = [text_key(record.text) for record in fresh.values()]
        places = dict(zip(fresh, held.rows(keys).tolist(), strict=True))
        for name in moved:
            before, record = self._records.pop(name, None), wanted.get(name)
            if before:
                places.setdefault(name, self._groups[before.group][name])
                if record is None or before.group != record.group:
                    self._groups[before.group].drop(name)
            if record:
                self._records[name] = record
                group = self._groups.setdefault(record.group, Places())
                if group.get(name) != places[name]:
                    group.put(name, places[name])

    def _added(self, store: RecordStore, fresh: Mapping[str, Record]) -> Held:
        """The library's vectors with those of records, kept while the evidence stands as it was."""
        if not fresh:
            return self._held
        turns = {said.ref.seq for name in fresh for said in store.quotes(name)} if self._stored else ()
        said = (place for place in map(store.turn, turns) if place)
        return self._with([record.text for record in fresh.values()], said)

    def _with(self, texts: Sequence[str], said: Iterable[Located]) -> Held:
        """The library's vectors, with those of these texts, which tell of what was said."""
        stored, places = self._stored, {turn.doc_id for turn in said}
        return self._vectors.add(texts, lambda: stored is not None and unchanged(stored, places))

    def embed(self, query: str) -> Row:
        """The vector of a question, which is not kept."""
        row: Row = self._vectors.embedder.embed([query])[0]
        return row

    def row(self, name: str) -> Row:
        """The vector of a record."""
        row: Row = self._held.matrix[self._place(name)]
        return row

    def _place(self, name: str) -> int:
        return self._groups[self._records[name].group][name]

    def cos(self, one: str, other: str) -> float:
        """Cosine of two records, to 6 decimals."""
        return self.cosines(self.row(one), (other,))[0]

    def cosines(self, query: Row, names: Sequence[str]) -> list[float]:
        """Cosines of a vector and of records, to 6 decimals."""
        if not names:
            return []
        return _exact(self._held.matrix[[self._place(name) for name in names]], query)

    def of_turns(self, query: Row, turns: Sequence[Located]) -> list[float]:
        """Cosines of a vector and of what was said, to 6 decimals; the vectors are those of search."""
        texts = [turn.text for turn in turns]
        held = self._with(texts, turns)
        return _exact(held.matrix[held.rows(list(map(text_key, texts)))], query) if turns else []

    def coherence(self, names: Sequence[str]) -> float:
        """Mean cosine over all pairs (All-Mem, Eq. 29); 1 for one record alone."""
        pairs = [self.cos(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
        return round(sum(pairs) / len(pairs), DIGITS) if pairs else 1.0

    def neighbours(self, names: Iterable[str], k: int) -> dict[str, Scored]:
        """For each of these records the k that are nearest to it in its folder, itself apart (k-NN)."""
        found: dict[str, Scored] = {name: [] for name in names}
        groups: dict[str, list[str]] = {}
        for name in found if k > 0 else ():
            groups.setdefault(self._records[name].group, []).append(name)
        for folder, group in groups.items():
            places = self._groups[folder]
            rows = self._held.matrix[places.all]
            for start in range(0, len(group) if folder else 0, AT_ONCE):
                some = group[start : start + AT_ONCE]
                queries = self._held.matrix[[self._place(name) for name in some]]
                scores = np.einsum("ij,kj->ki", rows, queries)
                for name, query, own in zip(some, queries, scores, strict=True):
                    if np.any(query):
                        near = _best(self._held.matrix, places, own, query, k, (name,))
                        found[name] = _sorted(near)[:k]
        return found

    def nearest(self, query: Row, k: int, folders: Iterable[str], *, without: Collection[str] = ()) -> Scored:
        """The records of some folders nearest to a vector, best first; ties by creation (Eq. 4)."""
        if k <= 0 or not np.any(query):
            return []
        found: Scored = []
        for folder in folders:
            if places := self._groups.get(folder):
                found += _near(self._held.matrix, places, query, k, without)
        return _sorted(found)[:k]


class Loaded:
    """The index of the view that was asked for last, for one thread at a time."""

    def __init__(self, load: Callable[..., RecordStore] = RecordStore.load) -> None:
        self._load = load
        self._lock = threading.RLock()
        self._index: VectorIndex | None = None

    @contextmanager
    def at(self, view: View) -> Iterator[tuple[RecordStore, VectorIndex]]:
        """The records as a view shows them, and where they lie.

        The store may be copied and is never edited; the index may follow a copy, and is set right next
        time.
        """
        store = view.derived(self._load)
        with self._lock:
            self._index = index = VectorIndex.of(view, self._index)
            index.follow(store)
            yield store, index


def _near(matrix: Row, places: Places, query: Row, k: int, without: Collection[str]) -> Scored:
    """As `_best`, of all."""
    among = places.all
    whole = 4 * len(among) > len(matrix)  # to gather a row costs as much as some products
    rows = matrix if whole else matrix[among]
    scores = np.einsum("ij,j->i", rows, query)  # "@" wakes threads, and waits for them longer than it takes
    return _best(matrix, places, scores[among] if whole else scores, query, k, without)


def _best(matrix: Row, places: Places, scores: Row, query: Row, k: int, without: Collection[str]) -> Scored:
    """By these products the k nearest and all that tie with the last of them, in no order."""
    among = places.all
    room = k + sum(name in places for name in without)
    near = np.arange(len(scores))
    if room < len(scores):
        least = np.partition(scores, len(scores) - room)[len(scores) - room]
        near = np.flatnonzero(scores >= least - _SLACK)
    names = places.names
    kept = [at for at in near.tolist() if names[at] not in without]
    if not kept:
        return []
    exact = _exact(matrix[among[kept]], query)
    return [(names[at], score) for at, score in zip(kept, exact, strict=True)]


def _sorted(found: Scored) -> Scored:
    return sorted(found, key=lambda item: (-item[1], number_of(item[0]), item[0]))


def _exact(rows: Row, query: Row) -> list[float]:
    products = rows.astype(np.float64) * query.astype(np.float64)
    return [round(float(score), DIGITS) + 0.0 for score in products.sum(axis=1)]
