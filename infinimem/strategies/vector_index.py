"""Where records lie by the meaning of their texts: cosines, and the nearest records of a folder. Exact.

Source: All-Mem, Eq. 2 and 4; section 3.5 (search over the surface alone).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from infinimem.embedders.base import text_key
from infinimem.index.vectors import DIGITS, Matrix, Rows, Vectors, cosines, nearest, unchanged, vectors_of
from infinimem.model import Located
from infinimem.store.view import Stored, View
from infinimem.strategies.records.record import Record, number_of
from infinimem.strategies.records.record_store import RecordStore, SharedDict

AT_ONCE = 32
"""Records that are compared with a folder's while these are gone through once."""

Scored = list[tuple[str, float]]
"""Records with their cosines."""


class VectorIndex:
    """The vectors of records, those of each folder apart; kept where the library has files."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.stored: Stored | None = None
        """The files that the store of the next `sync` shows."""
        self._rows = vectors.rows
        self._records: SharedDict[str, Record] = SharedDict()
        """As the columns have them: a slot each, that of a record which is gone stays."""
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._places = self._groups = np.zeros(0, np.int64)
        self._codes: dict[str, int] = {"": 0}
        """Of groups; what tells of nothing, or is gone, is in the first and near to nothing."""

    def sync(self, store: RecordStore) -> None:
        """Bring the index in line with a store; costs what differs from the last."""
        known, moved = self._records, store.records.changed(self._records)
        new = {name: store.records[name] for name in moved if name in store}
        fresh = [name for name, one in new.items() if name not in known or known[name].text != one.text]
        turns = {said.ref.seq for name in fresh for said in store.quotes(name)} if self.stored else ()
        rows = self._with([new[name].text for name in fresh], filter(None, map(store.turn, turns)))
        if rows is not self._rows:
            self._rows, self._records, self._groups = rows, SharedDict(), np.zeros_like(self._groups)
            if known:  # a `forget` came between: all stands elsewhere
                self.sync(store)
                return
        added = [name for name in moved if name not in self._slots]
        self._slots.update((name, at) for at, name in enumerate(added, len(self._names)))
        self._names += added
        self._places, self._groups = (
            np.append(column, np.zeros(len(added), np.int64)) for column in (self._places, self._groups)
        )
        for name in moved:
            slot, record = self._slots[name], new.get(name)
            self._places[slot] = rows.at[text_key(record.text)] if record else -1
            self._groups[slot] = self._codes.setdefault(record.group if record else "", len(self._codes))
        self._records = store.records.copy()

    def _with(self, texts: Sequence[str], said: Iterable[Located]) -> Rows:
        """The library's vectors, with those of these texts, kept while the evidence that they tell of stands
        as it was."""
        if not texts:
            return self._rows
        places = {turn.doc_id for turn in said}
        return self.vectors.add(texts, lambda: self.stored is None or unchanged(self.stored, places))

    def embed(self, query: str) -> Matrix:
        """The vector of a question, which is not kept."""
        row: Matrix = self.vectors.embedder.embed([query], "query")[0]
        return row

    def row(self, name: str) -> Matrix:
        """The vector of a record."""
        row: Matrix = self._rows.matrix[self._place(name)]
        return row

    def _place(self, name: str) -> int:
        return int(self._places[self._slots[name]])

    def cos(self, one: str, other: str) -> float:
        """Cosine of two records, to 6 decimals."""
        return self.cosines(self.row(one), (other,))[0]

    def cosines(self, query: Matrix, names: Sequence[str]) -> list[float]:
        """Cosines of a vector and of records, to 6 decimals."""
        return cosines(self._rows.matrix[[self._place(name) for name in names]], query) if names else []

    def of_turns(self, query: Matrix, turns: Sequence[Located]) -> list[float]:
        """Cosines of a vector and of what was said, to 6 decimals; the vectors are those of search."""
        texts = [turn.text for turn in turns]
        rows = self._with(texts, turns)
        return cosines(rows.matrix[rows.places(map(text_key, texts))], query) if turns else []

    def coherence(self, names: Sequence[str]) -> float:
        """Mean cosine over all pairs (All-Mem, Eq. 29); 1 for one record alone."""
        pairs = [self.cos(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
        return round(sum(pairs) / len(pairs), DIGITS) if pairs else 1.0

    def neighbours(self, names: Iterable[str], k: int) -> dict[str, Scored]:
        """For each of these records the k that are nearest to it in its folder, itself apart (k-NN)."""
        found: dict[str, Scored] = {name: [] for name in names}
        for folder in {self._records[name].group for name in found} - {""}:
            names = [name for name in found if self._records[name].group == folder]
            for start in range(0, len(names), AT_ONCE):
                some = names[start : start + AT_ONCE]
                queries = self._rows.matrix[[self._place(name) for name in some]]
                for name, near in zip(some, self._near(folder, queries, k + 1 if k > 0 else 0), strict=True):
                    found[name] = _sorted(one for one in near if one[0] != name)[:k]
        return found

    def nearest(
        self, query: Matrix, k: int, folders: Iterable[str], *, without: Collection[str] = ()
    ) -> Scored:
        """The records of some folders nearest to a vector, best first; ties by creation (Eq. 4)."""
        room = k + len(without) if k > 0 else 0
        near = (one for folder in folders for one in self._near(folder, query[None], room)[0])
        return _sorted(one for one in near if one[0] not in without)[: max(k, 0)]

    def _near(self, folder: str, queries: Matrix, k: int) -> list[Scored]:
        """The records of a folder nearest to each vector and all that tie with the last, in no order."""
        slots = np.flatnonzero(self._groups == self._codes.get(folder, -1))
        return [
            [(self._names[slot], cosine) for slot, cosine in zip(slots[near].tolist(), cosines, strict=True)]
            for near, cosines in nearest(self._rows.matrix, queries, k, self._places[slots])
        ]


def _sorted(found: Iterable[tuple[str, float]]) -> Scored:
    return sorted(found, key=lambda one: (-one[1], number_of(one[0]), one[0]))


class Loaded:
    """The index of the view that was asked for last, for one thread at a time."""

    def __init__(self, load: Callable[..., RecordStore] = RecordStore.load) -> None:
        self._load = load
        self._lock = threading.RLock()
        self._known: tuple[object, VectorIndex] | None = None

    @contextmanager
    def at(self, view: View) -> Iterator[tuple[RecordStore, VectorIndex]]:
        """The records as a view shows them, and where they lie.

        The store may be copied and is never edited; the index may follow a copy, and is set right next
        time.
        """
        store, where = view.derived(self._load), (view.root, view.stored is None, view.embedder.name)
        with self._lock:
            if self._known is None or self._known[0] != where:
                self._known = where, VectorIndex(vectors_of(view))
            index = self._known[1]
            index.stored = view.stored
            index.sync(store)
            yield store, index
