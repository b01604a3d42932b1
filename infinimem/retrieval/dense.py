"""How near the rows of a library are to what a query means, by the vectors of their texts.

Vectors are made of texts alone, without speaker or date, and kept under the hash of the text (vectors.py), so
that a search embeds only what is new. Rows carry that hash. It ranks nothing by itself: scoring.py does.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from infinimem.embedders.base import Embedder
from infinimem.retrieval.columns import NONE, Array
from infinimem.retrieval.lexical import Kind
from infinimem.retrieval.pieces import plain
from infinimem.retrieval.priors import nameless
from infinimem.retrieval.rows import SAID, Rows
from infinimem.retrieval.vectors import Held, top, unchanged, vectors_of
from infinimem.store.view import View

NEAREST = 256
"""Texts that join the candidates, the nearest ones; fewer than 64 change the best ten."""
BESIDE_WEIGHT = 0.75
"""What the turns before and after count beside the text itself: an answer is near to its question."""
_DIGITS = 6


@dataclass(frozen=True)
class Near:
    """What a query means, compared with rows.

    Args:
        dense: that compares.
        query: its vector.
        positions: of the nearest rows, ascending.
        known: where the vectors of rows stand.
    """

    dense: Dense
    query: Array
    positions: Array
    known: _Known

    def similarity(self, positions: Array) -> Array:
        """How near rows are, with what was said before and after them; 0 where nothing is alike.

        The text's own cosine, and `BESIDE_WEIGHT` of the mean of the turns beside it; where there are none,
        it stands in for them.
        """
        matrix = self.known.held.matrix
        if not len(matrix):  # all that was embedded was forgotten meanwhile
            return np.zeros(len(positions))
        beside = self.dense.beside(positions)
        asked = np.concatenate([positions[:, None], beside], axis=1)
        at = np.where(asked < 0, -1, self.known.at[asked])
        wanted, places = np.unique(at, return_inverse=True)
        # Row by row, so that a sum does not hang on what else is asked.
        cosines = np.round(np.einsum("ij,j->i", matrix[wanted], self.query), _DIGITS)
        cosines = np.where(wanted < 0, 0.0, cosines)[places.reshape(at.shape)]
        own, said = cosines[:, 0], asked[:, 1:] >= 0
        count = said.sum(axis=1)
        around = np.where(count, (cosines[:, 1:] * said).sum(axis=1) / np.maximum(count, 1), own)
        return np.maximum(own + BESIDE_WEIGHT * around, 0.0)


@dataclass(frozen=True)
class _Known:
    """The vectors of the rows that are looked through.

    Args:
        held: the vectors.
        at: for each row of the snapshot where its vector stands; -1 for none, or a row of no concern.
        positions: of the rows that may be found.
        texts: where their vectors stand, each once.
    """

    held: Held
    at: Array
    positions: Array
    texts: Array


class Dense:
    """The vectors of one snapshot's rows.

    Args:
        view: the snapshot.
        rows: all of it.
    """

    def __init__(self, view: View, rows: Rows) -> None:
        self._view = view
        self._rows = rows
        self._known: dict[tuple[Kind, tuple[str, ...]], _Known] = {}
        self._asked: tuple[str, Array] | None = None
        self._turns = threading.Lock()

    @property
    def counts(self) -> bool:
        """Whether vectors join the ranking: they are wanted, and know more than words."""
        return self._view.settings.search.vectors and self._embedder.semantic

    def near(self, kind: Kind, query: str, groups: Sequence[str], extra: Array) -> Near:
        """What a query means.

        Args:
            kind: "entries" or "blocks".
            query: as it was asked; names of speakers are left out, for they are in no text of theirs.
            groups: of the rows that may be found.
            extra: rows beside them.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder.
        """
        with self._turns:
            known = self._known.get((kind, tuple(groups))) or self._learn(kind, groups, extra)
            self._known[kind, tuple(groups)] = known
            vector = self._vector(nameless(query, self._speakers))
        texts, cosines = top(known.held.matrix, vector, NEAREST, known.texts)
        found = known.positions[np.isin(known.at[known.positions], texts[cosines > 0])]
        return Near(self, vector.astype(np.float64), found, known)

    def beside(self, positions: Array) -> Array:
        """Positions of the turns before and after those that rows were drawn from; -1 for none.

        A turn is its own; of several the first counts.
        """
        turns = np.full(len(positions), -1, dtype=np.int64)
        seqs, said = self._numbered
        for number, at, rows in self._rows.select(positions).groups:
            segment = self._rows.segments[number]
            if segment.shelf == SAID:
                turns[at] = positions[at]
            elif segment.shelf.startswith("entries/") and len(seqs):
                first = segment.cite_ends[rows]
                drawn = np.flatnonzero(segment.cite_ends[rows + 1] > first)
                cited = segment.cites[first[drawn]]
                place = np.minimum(np.searchsorted(seqs, cited), len(seqs) - 1)
                turns[at[drawn]] = np.where(seqs[place] == cited, said[place], -1)
        beside = turns[:, None] + np.array([-1, 1])
        sessions = self._sessions
        same = (turns[:, None] >= 0) & (sessions[beside] == sessions[turns][:, None])
        return np.where(same, beside, -1)

    def _vector(self, text: str) -> Array:
        """The vector of a query; the last one is kept, for a search may ask twice."""
        if self._asked is None or self._asked[0] != text:
            self._asked = text, self._embedder.embed([text])[0]
        return self._asked[1]

    @property
    def _embedder(self) -> Embedder:
        return self._view.embedder

    @cached_property
    def _numbered(self) -> tuple[Array, Array]:
        return self._rows.turns()

    @cached_property
    def _sessions(self) -> Array:
        """Which session each row was said in, and one place more; -1 for none."""
        found = np.full(int(self._rows.starts[-1]) + 1, -1, dtype=np.int64)
        for number, segment in enumerate(self._rows.segments):
            if segment.shelf == SAID and len(segment):
                parts = segment.parts_of(np.arange(len(segment)))
                found[self._rows.starts[number] : self._rows.starts[number + 1]] = number << 32 | parts
        return found

    @cached_property
    def _speakers(self) -> frozenset[str]:
        found: set[str] = set()
        for segment in self._rows.segments:
            numbers = np.unique(segment.rows["speaker"]).tolist()
            found.update(segment.names[number] for number in numbers if number != NONE)
        return frozenset(found)

    def _learn(self, kind: Kind, groups: Collection[str], extra: Array) -> _Known:
        """Where the vectors of rows stand, once all have one."""
        chosen = self._rows.segments_of(kind, groups)
        said = [number for number, one in enumerate(self._rows.segments) if one.shelf == SAID]
        looked_at = sorted({*chosen, *(said if kind == "entries" else ())})
        held = self._embedded(looked_at)
        at = np.full(int(self._rows.starts[-1]), -1, dtype=np.int64)
        for number in looked_at:
            start = self._rows.starts[number]
            at[start : start + len(self._rows.segments[number])] = held.rows(self._keys(number))
        alive = [self._rows.starts[number] + np.flatnonzero(self._rows.alive(number)) for number in chosen]
        positions = np.union1d(np.concatenate([np.zeros(0, dtype=np.int64), *alive]), extra)
        positions = positions[at[positions] >= 0]
        return _Known(held, at, positions, np.unique(at[positions]))

    def _embedded(self, numbers: Collection[int]) -> Held:
        """The vectors of the library, with those of all rows of some segments."""
        stored, vectors = self._view.stored, vectors_of(self._view.root, self._embedder)
        held = vectors.held
        wanted: dict[str, list[tuple[int, int]]] = {}
        new: set[bytes] = set()
        for number in numbers:
            segment, alive = self._rows.segments[number], np.flatnonzero(self._rows.alive(number))
            keys = self._keys(number)[alive]
            missing = np.flatnonzero(held.rows(keys) < 0)
            parts = segment.parts_of(alive[missing])
            for at, part in zip(missing.tolist(), parts.tolist(), strict=True):
                if (key := keys[at].tobytes()) not in new:
                    new.add(key)
                    row = segment.rows[alive[at]]
                    wanted.setdefault(segment.ids[part], []).append((int(row["start"]), int(row["end"])))
        if not wanted:
            return held
        texts = [
            plain(document, start, end)
            for document in self._view.each(sorted(wanted))
            for start, end in wanted[document.id]
            if end <= len(document.lines)  # a note may have been saved meanwhile
        ]
        # Of what no file says vectors are used and not kept.
        return vectors.add(texts, partial(unchanged, stored, wanted) if stored else lambda: False)

    def _keys(self, number: int) -> Array:
        return np.ascontiguousarray(self._rows.segments[number].rows["text"])
