"""How near the rows of a library are to what a query means, by the vectors of their texts.

Vectors are made of texts alone, without speaker or date, and kept under the hash of the text (vectors.py), so
that a search embeds only what is new. Rows carry that hash. It ranks nothing by itself: scoring.py does.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from infinimem.index.vectors import DIGITS, Rows, nearest, unchanged, vectors_of
from infinimem.retrieval.pieces import cut, plain
from infinimem.retrieval.priors import nameless
from infinimem.retrieval.rows import LINES, PIECES, SAID, Found, Kind
from infinimem.retrieval.tables import Tables
from infinimem.retrieval.tantivy_index import Table
from infinimem.store.view import View

Array = np.ndarray[Any, np.dtype[Any]]

NEAREST = 256
"""Texts that join the candidates, the nearest ones; fewer than 64 change the best ten."""
BESIDE_WEIGHT = 0.75
"""What the turns before and after count beside the text itself: an answer is near to its question."""


@dataclass(frozen=True)
class Near:
    """What a query means, compared with rows.

    Args:
        dense: that compares.
        query: its vector.
        numbers: of the nearest rows, ascending.
        known: where the vectors of rows stand.
    """

    dense: Dense
    query: Array
    numbers: list[int]
    known: _Known

    def similarity(self, numbers: Sequence[int]) -> list[float]:
        """How near rows are, with what was said before and after them; 0 where nothing is alike.

        The text's own cosine, and `BESIDE_WEIGHT` of the mean of the turns beside it; where there are none,
        it stands in for them.
        """
        matrix = self.known.rows.matrix
        if not len(matrix):  # all that was embedded was forgotten meanwhile
            return [0.0] * len(numbers)
        positions = self.dense.positions(numbers)
        asked = np.concatenate([positions[:, None], self.dense.beside(positions)], axis=1)
        at = np.where(asked < 0, -1, self.known.at[asked])
        wanted, places = np.unique(at, return_inverse=True)
        # Row by row, so that a sum does not hang on what else is asked.
        cosines = np.round(np.einsum("ij,j->i", matrix[wanted], self.query), DIGITS)
        cosines = np.where(wanted < 0, 0.0, cosines)[places.reshape(at.shape)]
        own, said = cosines[:, 0], asked[:, 1:] >= 0
        count = said.sum(axis=1)
        around = np.where(count, (cosines[:, 1:] * said).sum(axis=1) / np.maximum(count, 1), own)
        found: list[float] = np.maximum(own + BESIDE_WEIGHT * around, 0.0).tolist()
        return found


@dataclass(frozen=True)
class _Known:
    """The vectors of the rows that are looked through.

    Args:
        rows: the vectors.
        at: for each row of the snapshot where its vector stands; -1 for none, or a row of no concern.
        positions: of the rows that may be found.
        texts: where their vectors stand, each once.
    """

    rows: Rows
    at: Array
    positions: Array
    texts: Array


class Dense:
    """The vectors of one snapshot's rows of a kind; a position is a row's place in the order of numbers.

    Args:
        view: the snapshot.
        tables: its index.
        kind: of the rows.
        dead: uids of documents whose rows in the index do not count.
        over: rows beside the index.
    """

    def __init__(
        self, view: View, tables: Tables, kind: Kind, dead: Collection[int], over: Sequence[Found]
    ) -> None:
        self._view = view
        self._tables = tables
        columns = _columns(tables, kind)
        alive = ~np.isin(columns[0] >> LINES, list(dead)) if dead else np.ones(columns.shape[1], dtype=bool)
        beside = [_numbers(found) for found in over]
        rows = np.concatenate(
            [columns[:, alive], np.array(beside, np.uint64).reshape(-1, len(columns)).T], axis=1
        )
        rows = rows[:, np.argsort(rows[0])]
        self._rows, self._end, self._group, self._seq, self._cite = rows[:5].astype(np.int64)
        data = rows[5:].T.tobytes()
        self._keys = [data[at : at + 16] for at in range(0, len(data), 16)]
        self._vectors = vectors_of(view)
        self._over = {found.row.number >> LINES: found.row.doc_id for found in over}
        self._known: dict[tuple[frozenset[int], frozenset[int]], _Known] = {}
        self._vector = lru_cache(maxsize=1)(lambda text: view.embedder.embed([text], "query")[0])
        """Of a query: a search may ask twice."""
        self._turns = threading.Lock()

    def near(self, query: str, groups: frozenset[int], waiting: Collection[int]) -> Near:
        """What a query means.

        Args:
            query: as it was asked; names of speakers are left out, for they are in no text of theirs.
            groups: of the rows that may be found.
            waiting: seqs of the turns that may be found too.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder.
        """
        asked = groups, frozenset(waiting)
        with self._turns:
            known = self._known.get(asked) or self._learn(*asked)
            self._known[asked] = known
            vector = self._vector(nameless(query, self._tables.speakers))
        ((texts, cosines),) = nearest(known.rows.matrix, vector[None], NEAREST, known.texts)
        texts = known.texts[texts[np.array(cosines) > 0]]
        found = known.positions[np.isin(known.at[known.positions], texts)]
        return Near(self, vector.astype(np.float64), self._rows[found].tolist(), known)

    def positions(self, numbers: Sequence[int]) -> Array:
        """Where rows stand among all."""
        return np.searchsorted(self._rows, np.array(numbers, dtype=np.int64))

    def beside(self, positions: Array) -> Array:
        """Positions of the turns before and after those that rows were drawn from; -1 for none.

        A turn is its own; of several the first counts.
        """
        said, order = self._said
        seqs = np.where(self._group == SAID, self._seq, self._cite)[positions]
        if not len(said):
            return np.full((len(positions), 2), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._seq[order], seqs), len(order) - 1)
        turns = np.where((self._seq[order[place]] == seqs) & (seqs > 0), order[place], -1)
        turns = np.where((self._group[positions] == SAID) & (self._seq[positions] > 0), positions, turns)
        at = np.searchsorted(said, turns)
        near = np.clip(at[:, None] + np.array([-1, 1]), 0, len(said) - 1)
        documents = self._rows >> LINES
        same = (turns[:, None] >= 0) & (documents[said[near]] == documents[turns][:, None])
        return np.where(same & (said[near] != turns[:, None]), said[near], -1)

    @cached_property
    def _said(self) -> tuple[Array, Array]:
        """Positions of the turns that were said, and the same in the order of their seqs."""
        said = np.flatnonzero((self._group == SAID) & (self._seq > 0))
        return said, said[np.argsort(self._seq[said], kind="stable")]

    def _learn(self, groups: frozenset[int], waiting: frozenset[int]) -> _Known:
        """Where the vectors of rows stand, once all have one."""
        said = (self._group == SAID) & (self._seq > 0)
        chosen = np.isin(self._group, list(groups)) | (said & np.isin(self._seq, list(waiting)))
        looked_at = chosen | said
        vectors = self._embedded(np.flatnonzero(looked_at))
        at = np.where(looked_at, vectors.places(self._keys), -1)
        positions = np.flatnonzero(chosen & (at >= 0))
        return _Known(vectors, at, positions, np.unique(at[positions]))

    def _embedded(self, positions: Array) -> Rows:
        """The vectors of the library, with those of some rows."""
        stored, rows = self._view.stored, self._vectors.rows
        missing = [at for at in positions.tolist() if self._keys[at] not in rows.at]
        if not missing:
            return rows
        wanted: dict[str, list[tuple[int, int]]] = {}
        new: set[bytes] = set()
        for number, end, key in zip(
            self._rows[missing].tolist(),
            self._end[missing].tolist(),
            [self._keys[at] for at in missing],
            strict=True,
        ):
            if key not in new:
                new.add(key)
                doc_id = self._over.get(number >> LINES) or self._tables.ids[number >> LINES]
                wanted.setdefault(doc_id, []).append((number & (1 << LINES) - 1, end))
        texts = [
            text[slice(*cut(text, place & (1 << PIECES) - 1))]
            for document in self._view.each(sorted(wanted))
            for place, end in wanted[document.id]
            for text in (plain(document, place >> PIECES, end),)
            if end <= len(document.lines)  # a note may have been saved meanwhile
        ]
        return self._vectors.add(texts, lambda: stored is None or unchanged(stored, wanted))


_COLUMNS = ("row", "end", "group", "seq", "cites", "key", "key2")
_kept: WeakKeyDictionary[Table, Array] = WeakKeyDictionary()


def _columns(tables: Tables, kind: Kind) -> Array:
    """Numbers of all rows of a kind in an index, a column each; kept with the index."""
    table = tables.table(kind)
    if table not in _kept:
        addresses = table.all()
        columns = [table.values(name, addresses) for name in _COLUMNS]
        _kept[table] = np.array([[value or 0 for value in column] for column in columns], dtype=np.uint64)
    return _kept[table]


def _numbers(found: Found) -> list[int]:
    row, keys = found.row, np.frombuffer(found.key, np.uint64).tolist()
    return [row.number, row.end, row.group, row.seq, found.cites[0] if found.cites else 0, *keys]
