"""How near the rows of a library are to what a query means, by the vectors of their texts.

Vectors are made of texts alone, without speaker or date, and kept under the hash of the text (vectors.py), so
that a search embeds only what is new. It ranks nothing by itself: search.py does.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence, Set
from itertools import compress
from typing import Any

import numpy as np

from infinimem.index.pieces import WHOLE, Row, cut, plain
from infinimem.index.questions import nameless
from infinimem.index.tables import SAID_PART, TAIL, Reading, Tables
from infinimem.index.vectors import DIGITS, Rows, nearest, unchanged, vectors_of
from infinimem.store.lines import SPEAKER
from infinimem.store.view import View

Array = np.ndarray[Any, np.dtype[Any]]

NEAREST = 256
"""Texts that join the candidates, the nearest ones; fewer than 64 change the best ten."""
BESIDE_WEIGHT = 0.75
"""What the turns before and after count beside the text itself: an answer is near to its question."""
KEY = 16
"""Bytes of a text's key."""


class Columns:
    """Of all rows what is looked through, kept as long as tantivy's folder stands; new ones come behind."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ids = self.parts = self.seqs = np.zeros(0, np.int64)
        self.keys: list[bytes] = []
        self.at = np.zeros(0, np.int64)
        """Where the vector of each stands; -1 for those that nobody looked for."""
        self.vectors: Rows | None = None
        self.texts: tuple[object, Array] = (None, self.at)
        """What was asked last, and where the vectors of the rows stand that may be found, each once."""
        self.query: tuple[str, Any] = ("", None)
        """What was asked last, and its vector."""

    def read(self, reading: Reading) -> None:
        """Take in the rows that are new, and let those go that are gone where they are many."""
        last = int(self.ids[-1]) if len(self.ids) else 0
        query = f"select id, part, seq, key from row where id > ? and line != {WHOLE} order by id"
        if rows := reading.db.execute(query, (last,)).fetchall():
            ids, parts, seqs, keys = zip(*rows, strict=True)
            self.ids, self.parts = np.append(self.ids, ids), np.append(self.parts, parts)
            self.seqs, self.at = np.append(self.seqs, seqs), np.append(self.at, np.full(len(ids), -1))
            self.keys += keys
        count = f"select count(*) - (select count(*) from row where line = {WHOLE}) from row"
        if len(self.ids) > reading.db.execute(count).fetchone()[0] + TAIL:
            there = np.isin(self.ids, [row[0] for row in reading.db.execute("select id from row")])
            self.ids, self.parts = self.ids[there], self.parts[there]
            self.seqs, self.at = self.seqs[there], self.at[there]
            self.keys, self.texts = [*compress(self.keys, there)], (None, self.at)


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
            self._compare(columns, query, parts, turns)

    def _compare(self, columns: Columns, query: str, parts: Set[int], turns: Set[int]) -> None:
        view, reading = self._view, self._reading
        columns.read(reading)
        said = (columns.parts == SAID_PART) & (columns.seqs > 0)
        chosen = np.isin(columns.parts, list(parts)) | (said & np.isin(columns.seqs, list(turns)))
        self._vectors = self._embedded(columns, np.flatnonzero(chosen | said))
        asked = nameless(query, view.lines.names(SPEAKER))
        if columns.query[0] != asked:  # a search may ask twice
            columns.query = (asked, view.embedder.embed([asked], "query")[0])
        vector = columns.query[1]
        self._query = vector.astype(np.float64)
        here = chosen & (columns.at >= 0)
        scope = (frozenset(parts), turns, len(columns.ids), self._vectors)
        if columns.texts[0] != scope:
            columns.texts = (scope, np.unique(columns.at[here]))
        texts = columns.texts[1]
        ((near, cosines),) = nearest(self._vectors.matrix, vector[None], NEAREST, texts)
        near = texts[near[np.array(cosines) > 0]]
        self.nearest: list[int] = columns.ids[here & np.isin(columns.at, near)].tolist()
        """The ids of the nearest rows."""

    def shares(self, rows: Sequence[Row], most: float) -> list[float]:
        """Return what rows get for their nearness, the nearest `most`; 0 where nothing is alike.

        The text's own cosine, and `BESIDE_WEIGHT` of the mean of the turns beside it; where there are none,
        it stands in for them.
        """
        keys = [[row.beside[at : at + KEY] for at in range(0, len(row.beside), KEY)] for row in rows]
        names = list(
            dict.fromkeys(key for row, some in zip(rows, keys, strict=True) for key in (row.key, *some))
        )
        at = np.array(self._vectors.places(names), np.int64)
        # Row by row, so that a sum does not hang on what else is asked.
        products = np.einsum("ij,j->i", self._vectors.matrix[at[at >= 0]], self._query)
        near = dict.fromkeys(names, 0.0)
        there = (name for name, place in zip(names, at, strict=True) if place >= 0)
        near.update(zip(there, np.round(products, DIGITS).tolist(), strict=True))
        sums = []
        for row, some in zip(rows, keys, strict=True):
            around = sum(near[key] for key in some) / len(some) if some else near[row.key]
            sums.append(max(near[row.key] + BESIDE_WEIGHT * around, 0.0))
        nearest = max(sums, default=0.0) or 1.0
        return [most * one / nearest for one in sums]

    def _embedded(self, columns: Columns, wanted: Array) -> Rows:
        """Return the vectors of the library, with those of some rows, and note where they stand."""
        vectors = vectors_of(self._view)
        rows = vectors.rows
        missing = self._missing(columns, rows, wanted)
        if len(missing):
            rows = vectors.add(*self._texts(columns.ids[missing].tolist()))
            self._missing(columns, rows, wanted)
        return rows

    def _missing(self, columns: Columns, rows: Rows, wanted: Array) -> Array:
        """Note where the vectors of some rows stand; return those that have none."""
        if columns.vectors is not rows:  # in other vectors no place of before holds
            columns.vectors, columns.at = rows, np.full_like(columns.at, -1)
        left = wanted[columns.at[wanted] < 0]
        columns.at[left] = rows.places([columns.keys[at] for at in left])
        return left[columns.at[left] < 0]

    def _texts(self, ids: Sequence[int]) -> tuple[list[str], Any]:
        """Return the texts of rows as their documents have them, and whether they do still."""
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
