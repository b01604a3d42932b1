"""The index of a snapshot: its rows, and what gathers candidates among them; in memory for small libraries.

Ask it through `indexed`. A large library's lies in the cache directory (disk.py), with what changed since
overlaid in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np

from infinimem.errors import ModelUnavailable
from infinimem.retrieval.building import Shelves
from infinimem.retrieval.columns import Array
from infinimem.retrieval.dense import Dense, Near
from infinimem.retrieval.lexical import GROUPS, Kind, LexicalIndex, MemoryIndex, shelves_of
from infinimem.retrieval.origins import KnownLines, Lines, Origins, precedence
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.rows import Place, Rows
from infinimem.retrieval.scoring import score
from infinimem.store.view import Scope, View

GROUPS_OF: Mapping[Scope, tuple[str, ...]] = {
    "default": ("live",),
    "archive": ("archive",),
    "evidence": ("evidence",),
    "all": GROUPS,
}

log = logging.getLogger("infinimem")

_NONE: Array = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Indexed:
    """What can be found in a snapshot.

    Args:
        view: the snapshot.
        rows: all of it.
        engine: gathers candidates among the rows that it knows; the others are few, and all looked at.
        lines: where each numbered line stands.
    """

    view: View
    rows: Rows
    engine: LexicalIndex
    lines: Lines

    def best(
        self,
        kind: Kind,
        query: str,
        terms: Sequence[str],
        scope: Scope,
        limit: int,
        candidates: int,
        words_only: bool = False,
    ) -> list[tuple[Place, float]]:
        """Where the best rows stand and their scores, higher first; of equal ones the newer, then by place.

        Args:
            kind: "entries" or "blocks".
            query: as it was asked.
            terms: that are looked for.
            scope: which documents; with entries the default one holds evidence that is not drawn from yet.
            limit: at most so many.
            candidates: how many rows are scored, where more hold a term.
            words_only: leave out what a query means beside its words.

        Raises:
            ModelNotConfigured: the embedder lacks a package, a model's files or a key.
        """
        groups, settings = GROUPS_OF[scope], self.view.settings.search
        extra = self._pending if kind == "entries" and scope == "default" else _NONE
        found = np.union1d(self._candidates(kind, terms, groups, candidates), extra)
        near = None if words_only else self._near(kind, query, groups, extra)
        if near:
            found = np.union1d(found, near.positions)
        known = self.rows.statistics(kind, groups, extra, terms)
        scored = score(self.rows, kind, found, query, terms, known, settings, near)
        days, seqs = scored.days * settings.newest, scored.seqs * settings.newest
        order = np.lexsort((-seqs, -days, -scored.scores))
        columns = (column[order].tolist() for column in (scored.scores, days, seqs, scored.positions))
        best: list[tuple[Place, float]] = []
        for (value, _, _), tied in groupby(zip(*columns, strict=True), key=itemgetter(0, 1, 2)):
            if len(best) >= limit:
                break
            best += [(place, value) for place in sorted(self.rows.place(row[-1]) for row in tied)]
        return best[:limit]

    def _candidates(self, kind: Kind, terms: Sequence[str], groups: Collection[str], limit: int) -> Array:
        shelves = shelves_of(kind, groups) & {segment.shelf for segment in self.rows.segments}
        asked = limit
        while True:
            keys = self.engine.candidates(terms, asked, shelves)
            found = self.rows.positions(keys)
            if len(found) >= limit or len(keys) < asked:
                break
            asked *= 4  # it still knows rows that count no more
        over = [
            self.rows.starts[number] + np.flatnonzero(self.rows.alive(number))
            for number in self.rows.overlaid
            if self.rows.segments[number].shelf in shelves
        ]
        return np.concatenate([found, *over])

    def _near(self, kind: Kind, query: str, groups: tuple[str, ...], extra: Array) -> Near | None:
        """What the query means; None where vectors do not count, or cannot be had just now."""
        if not self._dense.counts or not query.strip():
            return None
        try:
            return self._dense.near(kind, query, groups, extra)
        except ModelUnavailable as error:
            log.warning("ranked by words alone: %s", error)
            return None

    @cached_property
    def _dense(self) -> Dense:
        return Dense(self.view, self.rows)

    @cached_property
    def pieces(self) -> Pieces:
        """Reads documents."""
        return Pieces(self.view, Origins(self.view, self.lines))

    @cached_property
    def _pending(self) -> Array:
        """Positions of the evidence that is still to be drawn from."""
        if not self.view.initialised:
            return _NONE
        said, positions = self.rows.turns()
        if self.view.drawn is None or not self.view.spec.has_entries:
            waiting = np.array([place.entry.seq for place in self.view.uncited()], dtype=np.int64)
        else:
            done = np.fromiter(self.view.drawn, np.int64, len(self.view.drawn))
            cited = self.rows.cited(self.view.is_note)
            waiting = np.setdiff1d(said, np.concatenate([done, cited]))
        return np.sort(positions[np.isin(said, waiting)])


class RowLines:
    """Where each numbered line of some rows stands.

    Args:
        rows: of a library.
        is_note: tells the documents whose lines do not count: people's own.
    """

    def __init__(self, rows: Rows, is_note: Callable[[str], bool]) -> None:
        self._rows = rows
        self._is_note = is_note

    def evidence(self, seq: int) -> str | None:
        position = self._at(self._turns, seq)
        return None if position is None else self._rows.place(position).doc_id

    def cites(self, seq: int) -> tuple[int, ...]:
        position = self._at(self._entries, seq)
        return () if position is None else self._rows.cites(position)

    @cached_property
    def _turns(self) -> tuple[Array, Array]:
        return self._rows.turns()

    @cached_property
    def _entries(self) -> tuple[Array, Array]:
        return self._rows.entries(self._is_note)

    def _at(self, numbered: tuple[Array, Array], seq: int) -> int | None:
        """The position of a seq; of a doubled one as the snapshot chooses."""
        seqs, positions = numbered
        first, last = (int(np.searchsorted(seqs, seq, side)) for side in ("left", "right"))
        found = positions[first:last].tolist()
        return max(found, key=lambda at: precedence(self._rows.place(at).doc_id), default=None)


def in_memory(view: View) -> Indexed:
    """The index of a small library, or of a snapshot that no files show: nothing is written."""
    engine = MemoryIndex()
    owned = sorted((doc_id for doc_id in view.ids("all") if not view.is_note(doc_id)), key=precedence)
    lines = KnownLines(place for doc_id in owned for place in view.document(doc_id).entries)
    shelves = Shelves(view, Pieces(view, Origins(view, lines)), engine.add)
    for doc_id in view.ids("all"):
        shelves.add(view.document(doc_id))
    segments = shelves.finish()
    return Indexed(view, Rows(segments, [()] * len(segments)), engine, lines)
