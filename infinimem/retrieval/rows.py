"""All rows that one snapshot is ranked by: segments put together, without the rows that were replaced.

A position is a row of one of the segments; positions are of this snapshot only. It knows columns, nothing of
files or of how the candidates among the rows were found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from infinimem.retrieval.columns import NONE, ROW, Array, Field, Segment, spread
from infinimem.retrieval.lexical import GROUPS, KINDS, ORDINALS, Kind, shelves_of


@dataclass(frozen=True)
class Statistics:
    """What a ranking must know of all rows together."""

    count: int
    """How many rows there are."""
    frequency: Array
    """How many of them hold each term in their own text."""
    own_length: float
    """Mean number of terms of their own text."""
    around_length: float
    whole_length: float
    """The same of what each belongs to."""


SAID = "entries/evidence"
"""The shelf of what was said."""


class Place(NamedTuple):
    """Where a row stands."""

    doc_id: str
    start: int
    end: int
    headings: tuple[str, ...]
    seq: int


class Rows:
    """The rows of some segments.

    Args:
        segments: in a fixed order.
        dead: for each segment the numbers of its parts that count no more.
        overlaid: how many of the last segments no engine knows; all their rows are looked at.
    """

    def __init__(
        self, segments: Sequence[Segment], dead: Sequence[Collection[int]], overlaid: int = 0
    ) -> None:
        self.overlaid = range(len(segments) - overlaid, len(segments))
        self.segments = tuple(segments)
        self.dead = tuple(frozenset(gone) for gone in dead)
        self.starts = np.cumsum([0, *map(len, segments)])
        self._totals: dict[int, tuple[int, int, int, int]] = {}
        self._of_kind = {kind: self.segments_of(kind) for kind in KINDS}

    # ── which rows ──────────────────────────────────────────────────────────────────────────────

    def segments_of(self, kind: Kind, groups: Collection[str] = GROUPS) -> list[int]:
        """Numbers of the segments that hold rows of a kind."""
        shelves = shelves_of(kind, groups)
        return [number for number, segment in enumerate(self.segments) if segment.shelf in shelves]

    def alive(self, number: int) -> Array:
        """A mask of the rows of a segment that count."""
        segment = self.segments[number]
        mask = np.ones(len(segment), dtype=bool)
        for part in self.dead[number]:
            first = int(segment.parts[part]["first"])
            mask[first : first + int(segment.parts[part]["count"])] = False
        return mask

    def place(self, position: int) -> Place:
        """Where a row stands."""
        number, row = self._locate(position)
        segment = self.segments[number]
        line, part = segment.rows[row], int(segment.parts_of(np.array([row]))[0])
        path = "" if line["path"] == NONE else segment.names[line["path"]]
        return Place(
            segment.ids[part],
            int(line["start"]),
            int(line["end"]),
            tuple(path.split("\x1f")) if path else (),
            int(line["seq"]),
        )

    def positions(self, keys: Sequence[int]) -> Array:
        """The positions of rows that count, of those with these keys; an engine may know others too."""
        wanted = np.array(keys, dtype=np.int64)
        uids, first = self._uids
        if not len(uids):
            return np.zeros(0, dtype=np.int64)
        uid, ordinal = wanted >> ORDINALS, wanted & (1 << ORDINALS) - 1
        at = np.minimum(np.searchsorted(uids, uid), len(uids) - 1)
        known = uids[at] == uid
        return np.sort(first[at[known]] + ordinal[known])

    @cached_property
    def _uids(self) -> tuple[Array, Array]:
        """The parts that count and an engine knows: uids, ascending, and first positions."""
        found = [np.zeros((2, 0), dtype=np.int64)]
        for number in range(self.overlaid.start):
            parts = self.segments[number].parts
            kept = np.ones(len(parts), dtype=bool)
            kept[list(self.dead[number])] = False
            columns = (parts["uid"], parts["first"] + self.starts[number])
            found.append(np.array([column[kept] for column in columns]))
        every = np.concatenate(found, axis=1)
        uids, first = every[:, np.argsort(every[0])]
        return uids, first

    def select(self, positions: Array) -> Selection:
        """Some rows, to be asked what they hold."""
        numbers = np.searchsorted(self.starts, positions, side="right") - 1
        groups = []
        for number in np.unique(numbers).tolist():
            at = np.flatnonzero(numbers == number)
            groups.append((number, at, positions[at] - self.starts[number]))
        return Selection(self, positions, groups)

    def _locate(self, position: int) -> tuple[int, int]:
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        return number, int(position - self.starts[number])

    # ── what they hold ──────────────────────────────────────────────────────────────────────────

    def statistics(
        self, kind: Kind, groups: Collection[str], extra: Array, terms: Sequence[str]
    ) -> Statistics:
        """Of the rows of a kind in some groups, and of `extra` positions."""
        chosen = self.segments_of(kind, groups)
        frequency = np.zeros(len(terms))
        for number in chosen:
            segment = self.segments[number]
            gone = ~self.alive(number) if self.dead[number] else None
            frequency += segment.own.frequency(segment.numbers(terms), gone)
        more = self.select(extra)
        frequency += (more.occurrences("own", terms) > 0).sum(axis=0)
        sizes = [self._sizes(number) for number in chosen]
        count = sum(size[0] for size in sizes) + len(extra)
        own = sum(size[1] for size in sizes) + int(more.lengths("own").sum())
        around = sum(size[2] for size in sizes) + int(more.lengths("around").sum())
        wholes = [self._sizes(number) for number in self._of_kind[kind]]
        documents = sum(size[3] for size in wholes)
        return Statistics(
            count,
            frequency,
            own / max(count, 1),
            around / max(count, 1),
            sum(size[1] for size in wholes) / max(documents, 1),
        )

    def documents(self, kind: Kind, doc_ids: Iterable[str]) -> Array:
        """Documents as `Selection.wholes` names them."""
        return np.array([self.whole(kind, doc_id) for doc_id in doc_ids], dtype=np.int64)

    def texts(self, wholes: Array, terms: Sequence[str]) -> tuple[Array, Array]:
        """How often wholes hold terms in all their rows, and how many terms they have."""
        occurrences, lengths = np.zeros((len(wholes), len(terms))), np.zeros(len(wholes))
        for number in np.unique(wholes[wholes >= 0] >> 32):
            at = np.flatnonzero(wholes >> 32 == number)
            segment = self.segments[number]
            parts = segment.parts[wholes[at] & 0xFFFFFFFF]
            first, last = parts["first"], parts["first"] + parts["count"]
            occurrences[at] = segment.own.sums(first, last, segment.numbers(terms))
            rows, owner = spread(first, last)
            lengths[at] = np.bincount(owner, weights=segment.own.lengths[rows], minlength=len(at))
        return occurrences, lengths

    def whole(self, kind: Kind, doc_id: str) -> int:
        """A document as `Selection.wholes` names it; -1 for one that has no such rows."""
        for number in self._of_kind[kind]:
            part = self.segments[number].of.get(doc_id)
            if part is not None and part not in self.dead[number]:
                return number << 32 | part
        return -1

    def turns(self) -> tuple[Array, Array]:
        """The seqs of the turns that were said, ascending, and the position of each."""
        return self._numbered(lambda shelf: shelf == SAID)

    def entries(self, passed_over: Callable[[str], bool]) -> tuple[Array, Array]:
        """The same of all other entries, but for those of some documents."""
        return self._numbered(lambda shelf: shelf.startswith("entries/") and shelf != SAID, passed_over)

    def _numbered(
        self, wanted: Callable[[str], bool], passed_over: Callable[[str], bool] = lambda _: False
    ) -> tuple[Array, Array]:
        seqs, positions = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for number, segment in enumerate(self.segments):
            if wanted(segment.shelf):
                rows = self._kept(number, passed_over)
                rows = rows[segment.rows["seq"][rows] > 0]
                seqs.append(segment.rows["seq"][rows])
                positions.append(rows + self.starts[number])
        every = np.concatenate(seqs)
        order = np.argsort(every, kind="stable")
        return every[order], np.concatenate(positions)[order]

    def cites(self, position: int) -> tuple[int, ...]:
        """What an entry was drawn from."""
        number, row = self._locate(position)
        segment = self.segments[number]
        first, last = segment.cite_ends[row], segment.cite_ends[row + 1]
        return tuple(segment.cites[first:last].tolist())

    def cited(self, passed_over: Callable[[str], bool]) -> Array:
        """All that entries were drawn from, but for those of some documents."""
        found = [np.zeros(0, dtype=np.int64)]
        for number, segment in enumerate(self.segments):
            if segment.shelf.startswith("entries/") and segment.shelf != SAID:
                rows = self._kept(number, passed_over)
                items, _ = spread(segment.cite_ends[rows], segment.cite_ends[rows + 1])
                found.append(segment.cites[items])
        return np.concatenate(found)

    def _kept(self, number: int, passed_over: Callable[[str], bool]) -> Array:
        """The rows of a segment that count, but for those of some documents."""
        segment, rows = self.segments[number], np.flatnonzero(self.alive(number))
        kept = np.array([not passed_over(doc_id) for doc_id in segment.ids], dtype=bool)
        return rows[kept[segment.parts_of(rows)]] if len(rows) else rows

    # ── what is known of segments ───────────────────────────────────────────────────────────────

    def _dead_rows(self, number: int) -> Array:
        return np.flatnonzero(~self.alive(number)) if self.dead[number] else np.zeros(0, dtype=np.int64)

    def _sizes(self, number: int) -> tuple[int, int, int, int]:
        """Rows, terms of their own, terms around them, and documents of a segment."""
        if number not in self._totals:
            segment, gone = self.segments[number], self._dead_rows(number)
            rows, own, around, parts = segment.totals
            self._totals[number] = (
                rows - len(gone),
                own - int(segment.own.lengths[gone].sum()),
                around - int(segment.around.lengths[gone].sum()),
                parts - len(self.dead[number]),
            )
        return self._totals[number]


@dataclass(frozen=True, eq=False)
class Selection:
    """Some rows, and which segments they are in."""

    rows: Rows
    positions: Array
    groups: Sequence[tuple[int, Array, Array]]
    """The number of a segment, places among the positions, and the rows of the segment that stand there."""

    def occurrences(self, name: str, terms: Sequence[str]) -> Array:
        """How often rows hold terms in a field ("own", "around"): float64, rows by terms."""
        found = np.zeros((len(self.positions), len(terms)))
        for segment, at, rows in self._groups():
            found[at] = _field(segment, name).occurrences(rows, segment.numbers(terms))
        return found

    def lengths(self, name: str) -> Array:
        """Terms of a field of each row: float64."""
        found = np.zeros(len(self.positions))
        for segment, at, rows in self._groups():
            found[at] = _field(segment, name).lengths[rows]
        return found

    def attributes(self) -> Array:
        """What `columns.ROW` says of each row."""
        found = np.zeros(len(self.positions), dtype=ROW)
        for segment, at, rows in self._groups():
            found[at] = segment.rows[rows]
        return found

    def speakers(self) -> list[str | None]:
        """Who said each row."""
        found = np.full(len(self.positions), None, dtype=object)
        for segment, at, rows in self._groups():
            numbers, which = np.unique(segment.rows["speaker"][rows], return_inverse=True)
            names = [None if number == NONE else segment.names[number] for number in numbers]
            found[at] = np.array(names, dtype=object)[which]
        speakers: list[str | None] = found.tolist()
        return speakers

    def wholes(self, kind: Kind) -> tuple[Array, Array]:
        """What rows belong to: wholes, and for each row the number of its whole among them.

        A whole is a segment's number times 2 ** 32 and a part's number in it; -1 is one that is not there.
        """
        found = np.zeros(len(self.positions), dtype=np.int64)
        for number, at, rows in self.groups:
            segment = self.rows.segments[number]
            names = segment.rows["whole"][rows]
            own = names == NONE
            found[at[own]] = number << 32 | segment.parts_of(rows[own])
            for name in np.unique(names[~own]):
                found[at[names == name]] = self.rows.whole(kind, segment.names[name])
        return np.unique(found, return_inverse=True)

    def _groups(self) -> Iterator[tuple[Segment, Array, Array]]:
        return ((self.rows.segments[number], at, rows) for number, at, rows in self.groups)


def _field(segment: Segment, name: str) -> Field:
    return segment.own if name == "own" else segment.around
