"""Where units lie by the meaning of their descriptors: cosines, and the nearest units of the surface.

Exact: every row is compared, and what counts is computed in double precision pair by pair, so that no cosine
hangs on what else is compared. Source: All-Mem, Eq. 2 and 4; section 3.5 (search over the surface alone).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from infinimem.retrieval.vectors import Vectors, text_key, unchanged, vectors_of
from infinimem.store.view import Stored, View
from infinimem.strategies.allmem.record_store import RecordStore
from infinimem.strategies.allmem.unit import Unit, number_of

Row = NDArray[np.float32]

DIGITS = 6
"""Of a cosine; beyond them processors differ."""
_SLACK = 1e-4
"""How far a sum in single precision may be off."""


class Rows:
    """Vectors by name, one below the other; a row that goes is filled with the last."""

    def __init__(self, size: int) -> None:
        self.names: list[str] = []
        self._at: dict[str, int] = {}
        self._matrix = np.zeros((64, size), np.float32)

    def __contains__(self, name: object) -> bool:
        return name in self._at

    def __getitem__(self, name: str) -> Row:
        row: Row = self._matrix[self._at[name]]
        return row

    @property
    def matrix(self) -> Row:
        matrix: Row = self._matrix[: len(self.names)]
        return matrix

    def put(self, name: str, row: Row) -> None:
        if name not in self._at:
            if len(self.names) == len(self._matrix):
                self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
            self._at[name] = len(self.names)
            self.names.append(name)
        self._matrix[self._at[name]] = row

    def drop(self, name: str) -> None:
        at = self._at.pop(name, None)
        if at is None:
            return
        last = self.names.pop()
        if last != name:
            self._matrix[at] = self._matrix[len(self.names)]
            self.names[at], self._at[last] = last, at


class VectorIndex:
    """The vectors of a bank's units, those of the surface apart.

    Args:
        vectors: of the library.
        root: the library's absolute path; None for one without files.
        stored: its files; None where vectors are used and not kept.
    """

    def __init__(self, vectors: Vectors, root: str | None = None, stored: Stored | None = None) -> None:
        self._root = root
        self._stored = stored
        self._vectors = vectors
        self._surface = Rows(vectors.embedder.size)
        self._archive = Rows(vectors.embedder.size)
        self._units: dict[str, Unit] = {}
        """As their rows have them."""
        self._bank: RecordStore | None = None
        self._strayed: set[str] = set()
        """Units in which it may differ from that bank, for it followed one that is tried on."""

    @classmethod
    def of(cls, view: View, known: VectorIndex | None = None) -> VectorIndex:
        """The space of a library, with what is known of it already; `sync` fills it.

        Raises:
            ModelNotConfigured: the embedder is not there.
        """
        root, embedder = view.root, view.embedder
        if known and known._vectors.embedder.name == embedder.name and known._root == root:
            known._stored = view.stored
            return known
        return cls(vectors_of(root, embedder), root, view.stored)

    def follow(self, bank: RecordStore) -> None:
        """As `sync` with a bank as it was loaded; costs what changed since the last.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder.
        """
        news = bank.since(self._bank)
        self.sync(bank, None if news is None else {*news, *self._strayed})
        self._bank, self._strayed = bank, set()

    def sync(self, bank: RecordStore, names: Iterable[str] | None = None) -> None:
        """Bring the space in line with a bank.

        Args:
            names: units that may differ, be they in the bank or not; None for all.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder; nothing has changed.
        """
        looked = {*bank.units, *self._units} if names is None else set(names)
        moved = {name for name in looked if self._units.get(name) is not bank.units.get(name)}
        wanted = {name: bank.units[name] for name in moved if name in bank}
        old = {name: self._units[name].text for name in wanted if name in self._units}
        fresh = {name: unit for name, unit in wanted.items() if old.get(name) != unit.text}
        rows = self._embed(bank, fresh)
        self._strayed |= looked
        for name in moved - wanted.keys():
            self._drop(name)
        for name, unit in wanted.items():
            here, there = self._homes(unit)
            self._units[name] = unit
            if name in fresh:
                here.put(name, rows[unit.text])
                there.drop(name)
            elif name not in here:
                here.put(name, there[name])
                there.drop(name)

    def _homes(self, unit: Unit) -> tuple[Rows, Rows]:
        """Where its row belongs, and where not."""
        return (self._surface, self._archive) if unit.visible else (self._archive, self._surface)

    def _drop(self, name: str) -> None:
        self._units.pop(name, None)
        self._surface.drop(name)
        self._archive.drop(name)

    def _embed(self, bank: RecordStore, fresh: Mapping[str, Unit]) -> dict[str, Row]:
        """Vectors by text; they are kept while the evidence stands as it was seen: a `forget` changes it."""
        if not fresh:
            return {}
        texts = [unit.text for unit in fresh.values()]
        turns = {said.ref.seq for name in fresh for said in bank.quotes(name)} if self._stored else ()
        places = {place.doc_id for place in map(bank.turn, turns) if place}
        stored = self._stored
        held = self._vectors.add(texts, lambda: stored is not None and unchanged(stored, places))
        at = held.rows([text_key(text) for text in texts])
        return {text: held.matrix[place] for text, place in zip(texts, at, strict=True)}

    def embed(self, query: str) -> Row:
        """The vector of a question, which is not kept.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder.
        """
        row: Row = self._vectors.embedder.embed([query])[0]
        return row

    def row(self, name: str) -> Row:
        """The vector of a unit, on the surface or not."""
        return self._surface[name] if name in self._surface else self._archive[name]

    def cos(self, one: str, other: str) -> float:
        """Cosine of two units, to 6 decimals."""
        return self.cosines(self.row(one), (other,))[0]

    def cosines(self, query: Row, names: Sequence[str]) -> list[float]:
        """Cosines of a vector and of units, to 6 decimals."""
        if not names:
            return []
        rows = np.stack([self.row(name) for name in names])
        return _exact(rows, query)

    def coherence(self, names: Sequence[str]) -> float:
        """Mean cosine over all pairs (Eq. 29); 1 for one unit alone."""
        pairs = [self.cos(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
        return round(sum(pairs) / len(pairs), DIGITS) if pairs else 1.0

    def nearest(
        self, query: Row, k: int, *, without: Collection[str] = (), archived: bool = False
    ) -> list[tuple[str, float]]:
        """The units of the surface nearest to a vector, best first; ties by order of creation (Eq. 4).

        Args:
            query: a vector; one of zeros is near to nothing.
            k: at most so many.
            without: units to leave out.
            archived: whether the archive is searched too.
        """
        if k <= 0 or not np.any(query):
            return []
        found: list[tuple[str, float]] = []
        for rows in (self._surface, self._archive) if archived else (self._surface,):
            found += _near(rows, query, k, without)
        found.sort(key=lambda item: (-item[1], number_of(item[0])))
        return found[:k]


class Loaded:
    """The space of the view that was asked for last, for one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._space: VectorIndex | None = None

    @contextmanager
    def at(self, view: View) -> Iterator[tuple[RecordStore, VectorIndex]]:
        """The bank as a view shows it, and where its units lie.

        The bank may be copied and is never edited; the space may follow a copy, and is set right next time.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder.
        """
        bank = view.derived(RecordStore.load)
        with self._lock:
            self._space = space = VectorIndex.of(view, self._space)
            space.follow(bank)
            yield bank, space


def _near(rows: Rows, query: Row, k: int, without: Collection[str]) -> list[tuple[str, float]]:
    """The k nearest and all that tie with the last of them, in no order."""
    scores = rows.matrix @ query
    room = k + sum(name in rows for name in without)
    places = np.arange(len(scores))
    if room < len(scores):
        least = np.partition(scores, len(scores) - room)[len(scores) - room]
        places = np.flatnonzero(scores >= least - _SLACK)
    names = rows.names
    kept = [place for place in places.tolist() if names[place] not in without]
    if not kept:
        return []
    exact = _exact(rows.matrix[kept], query)
    return [(names[place], score) for place, score in zip(kept, exact, strict=True)]


def _exact(rows: Row, query: Row) -> list[float]:
    products = rows.astype(np.float64) * query.astype(np.float64)
    return [round(float(score), DIGITS) + 0.0 for score in products.sum(axis=1)]
