"""The index of a snapshot: its rows, and what gathers candidates among them; in memory for small libraries.

`Shelves` turns documents into rows: which shelf each piece is on, and what is known of it there. Ask for an
index through `searcher.indexed`. A large library's lies in the cache directory (disk.py), with what changed
since overlaid in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from infinimem.errors import LibraryError, ModelUnavailable
from infinimem.markdown.document import Document
from infinimem.retrieval.columns import Array, Builder, Segment
from infinimem.retrieval.dense import Dense, Near
from infinimem.retrieval.lexical import ASIDE, GROUPS, Kind, LexicalIndex, MemoryIndex, key, shelves_of
from infinimem.retrieval.origins import KnownLines, Lines, Origins, precedence
from infinimem.retrieval.pieces import Piece, Pieces, date_parts
from infinimem.retrieval.priors import asking
from infinimem.retrieval.rows import Place, Rows
from infinimem.retrieval.scoring import score
from infinimem.retrieval.segment_file import write_segment
from infinimem.retrieval.tantivy_index import TantivyIndex
from infinimem.retrieval.vectors import as_keys, text_key
from infinimem.store.files import Files
from infinimem.store.listing import Stamp
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
        waiting = np.array(self.view.unfiled(), dtype=np.int64)
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


Index = Callable[[str, int, Sequence[str]], object]
"""Told the shelf, the key and the terms of each row."""


def day_of(time: str | None) -> int:
    """The day of a time as yyyymmdd, months and days that it does not name as 00; 0 for none."""
    year, month, day = date_parts(time)
    return year * 10000 + month * 100 + day


class Shelves:
    """Segments under construction, one a shelf.

    Args:
        view: the snapshot that the documents are of.
        pieces: reads them.
        index: told of each row.
        uid: of the first part.
        full: given each segment that is as large as one should be.
    """

    def __init__(
        self,
        view: View,
        pieces: Pieces,
        index: Index,
        uid: int = 0,
        full: Callable[[Segment], None] | None = None,
    ) -> None:
        self.uid = uid
        self._view = view
        self._pieces = pieces
        self._index = index
        self._full = full
        self._builders: dict[str, Builder] = {}

    def add(self, document: Document, stamp: Stamp | None = None) -> None:
        """Add all rows of a document."""
        group = self._view.group(document.id)
        if group == "aside":
            self._part(ASIDE, document.id, stamp, ())
            return
        if document.entries:
            self._part(f"entries/{group}", document.id, stamp, self._pieces.entries(document))
            self._part(f"blocks/{group}", document.id, stamp, self._pieces.blocks(document))
        else:
            self._part(f"both/{group}", document.id, stamp, self._pieces.blocks(document))

    def finish(self) -> list[Segment]:
        """The segments that are left, by shelf."""
        builders, self._builders = self._builders, {}
        return [builder.build() for _, builder in sorted(builders.items())]

    def _part(self, shelf: str, doc_id: str, stamp: Stamp | None, pieces: Sequence[Piece]) -> None:
        if shelf not in self._builders:
            self._builders[shelf] = Builder(shelf)
        elif self._full and self._builders[shelf].full:
            self._full(self._builders[shelf].build())
            self._builders[shelf] = Builder(shelf)
        builder = self._builders[shelf]
        seen = (stamp.mtime_ns, stamp.size, stamp.inode) if stamp else (0, 0, 0)
        builder.part(self.uid, doc_id, seen)
        texts = as_keys([text_key(piece.text) for piece in pieces]).tolist()
        for ordinal, (piece, text) in enumerate(zip(pieces, texts, strict=True)):
            item = piece.item
            builder.row(
                (item.start_line, item.end_line),
                piece.own,
                piece.around,
                whole=None if piece.whole == doc_id else piece.whole,
                path=item.headings,
                speaker=item.speaker,
                seq=0 if item.physical or not item.seqs else item.seqs[0],
                day=day_of(item.time),
                asking=0 if item.physical else round(255 * asking(item.text)),
                personal=item.source in ("user", "human"),
                cites=() if item.physical else piece.cites,
                text=text,
            )
            self._index(shelf, key(self.uid, ordinal), [*piece.own, *piece.around])
        self.uid += 1


def write_index(
    folder: Path,
    lexical: str,
    view: View,
    pieces: Pieces,
    doc_ids: Iterable[str],
    uid: int,
    gone: Collection[int],
) -> tuple[list[dict[str, Any]], int]:
    """Write segments, and change tantivy's index. The caller holds the lock of the folder.

    Args:
        folder: of the index.
        lexical: name of tantivy's folder in it, made if missing.
        view: the snapshot that the documents are of.
        pieces: reads them.
        doc_ids: in the order in which they are to stand.
        uid: of the first part; what tantivy has from there on was never committed, and goes.
        gone: uids of parts that no commit names any more.

    Returns:
        Rows of the manifest, one a segment, and the first uid that no part has.

    Raises:
        OSError, ValueError: it cannot be written.
        LibraryError: the library's folder is gone.
    """
    stored = view.stored
    assert stored, "only what files show is written"
    files = Files(Path(stored.root))
    (folder / lexical).mkdir(mode=0o700, exist_ok=True)
    writer = TantivyIndex(folder / lexical).write()
    writer.delete_from(uid)
    writer.delete(gone)
    rows: list[dict[str, Any]] = []

    def keep(segment: Segment) -> None:
        rows.append(write_segment(folder, segment))

    shelves = Shelves(view, pieces, writer.add, uid, keep)
    for doc_id in doc_ids:
        document = as_stored(files, doc_id, stored.stamps[doc_id])
        if document is not None:  # else it counts as changed, and is looked at again
            shelves.add(document, stored.stamps[doc_id])
    for segment in shelves.finish():
        keep(segment)
    writer.commit()
    return rows, shelves.uid


def as_stored(files: Files, doc_id: str, stamp: Stamp) -> Document | None:
    """A document read from its file, if that can be read and is in the state that the snapshot says.

    What is held in memory may be of before a `forget`, and must not come back into the cache.
    """
    try:
        data, found = files.read_stamped(f"{doc_id}.md", stamp.size)
    except LibraryError:
        return None
    return Document.parse(doc_id, data) if found == stamp else None
