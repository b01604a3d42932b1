"""Searchable rows as arrays: which terms each holds, whose they are, and when. Written once, then only read.

A segment holds the rows of one shelf, each a piece of a document. Segments lie in memory or are mapped from a
file; rows of a document stand together, as a part. It knows terms and rows, nothing of files or ranking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ROW = np.dtype(
    [
        *(("start", "<u4"), ("end", "<u4"), ("path", "<u4"), ("whole", "<u4"), ("speaker", "<u4")),
        *(("seq", "<i8"), ("day", "<i4"), ("asking", "u1"), ("personal", "?"), ("text", "<u8", (2,))),
    ]
)
"""Lines, first and last; names of heading path, whole and speaker; seq or 0; yyyymmdd or 0; how far it only
asks, of 255; whether a person said it; the key of its text among vectors (vectors.text_key)."""
PART = np.dtype(
    [
        *(("uid", "<i8"), ("first", "<i8"), ("count", "<i8")),
        *(("mtime_ns", "<i8"), ("size", "<i8"), ("inode", "<u8")),
    ]
)
NONE = 0xFFFFFFFF
"""No name; as a whole, the document that the row is in."""
MOST_COUNTED = 255
"""Of one term in one row."""
FULL = 8 << 20
"""Items of a segment (a term of a row, once); beyond it the memory that building it takes grows too large."""
_BATCH = 1 << 20


@lru_cache(maxsize=1 << 12)
def term_hash(term: str) -> int:
    """64 bits by which segments know a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Field:
    """Which rows hold each term, and how often: an inverted index."""

    ends: Array
    """int64, one more than terms: term t has the items ends[t] to ends[t + 1]."""
    rows: Array
    """uint32: ascending for each term."""
    counts: Array
    """uint8; `MOST_COUNTED` stands for more."""
    lengths: Array
    """uint32: terms of each row, repeats counted."""

    def occurrences(self, rows: Array, terms: Sequence[int]) -> Array:
        """How often each row holds each term: float64, rows by terms.

        Args:
            rows: numbers of rows, in any order.
            terms: numbers of terms; -1 for one that no row holds.
        """
        found = np.zeros((len(rows), len(terms)))
        for column, held, counts in self._items(terms):
            at = np.searchsorted(held, rows)
            at[at == len(held)] = 0
            hits = np.flatnonzero(held[at] == rows)
            found[hits, column] = counts[at[hits]]
        return found

    def sums(self, first: Array, last: Array, terms: Sequence[int]) -> Array:
        """How often the rows from `first` up to, without, `last` hold each term: float64, ranges by terms."""
        found = np.zeros((len(first), len(terms)))
        for column, held, counts in self._items(terms):
            items, owner = spread(np.searchsorted(held, first), np.searchsorted(held, last))
            found[:, column] = np.bincount(owner, weights=counts[items], minlength=len(first))
        return found

    def frequency(self, terms: Sequence[int], dead: Array | None = None) -> Array:
        """How many rows hold each term; `dead` is a mask of rows that do not count."""
        found = np.zeros(len(terms))
        for column, held, _ in self._items(terms):
            found[column] = len(held) - (0 if dead is None else np.count_nonzero(dead[held]))
        return found

    def _items(self, terms: Sequence[int]) -> Iterator[tuple[int, Array, Array]]:
        for column, term in enumerate(terms):
            if term >= 0 and (first := self.ends[term]) < (last := self.ends[term + 1]):
                yield column, self.rows[first:last], self.counts[first:last]


def spread(starts: Array, ends: Array) -> tuple[Array, Array]:
    """All numbers of some ranges one after another, and for each which of the ranges it is of."""
    lengths = ends - starts
    owner = np.repeat(np.arange(len(starts)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(owner)) + (starts - before)[owner], owner


@dataclass(frozen=True)
class Names:
    """Strings by number, read when they are asked for."""

    data: Array
    """uint8: their UTF-8, one after another."""
    ends: Array

    def __getitem__(self, number: int) -> str:
        first, last = self.ends[number], self.ends[number + 1]
        return self.data[first:last].tobytes().decode("utf-8", "surrogateescape")

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """These, numbered from 0."""
        data = [name.encode("utf-8", "surrogateescape") for name in names]
        ends = np.cumsum([0, *map(len, data)])
        return cls(np.frombuffer(b"".join(data), dtype=np.uint8), ends)


@dataclass(frozen=True)
class Segment:
    """Rows of one shelf."""

    shelf: str
    vocabulary: Array
    """uint64: hashes of the terms, ascending; a term's number is its place here."""
    rows: Array
    own: Field
    around: Field
    parts: Array
    documents: Array
    """uint8: the id of each part's document, a line each."""
    names: Names
    """Ids of wholes, heading paths ("a\x1fb"), names of speakers."""
    cite_ends: Array
    cites: Array
    """int64: the seqs that each row was drawn from, as `ends` and items."""

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, terms: Sequence[str]) -> list[int]:
        """The numbers of these terms here; -1 for one that does not occur."""
        known: tuple[tuple[str, ...], list[int]] = self.__dict__.get("_asked", ((), []))
        if known[0] == tuple(terms):  # one query asks several times
            return known[1]
        wanted = np.array([term_hash(term) for term in terms], dtype=np.uint64)
        at = np.searchsorted(self.vocabulary, wanted)
        found = [
            int(place) if place < len(self.vocabulary) and self.vocabulary[place] == one else -1
            for place, one in zip(at, wanted, strict=True)
        ]
        self.__dict__["_asked"] = tuple(terms), found
        return found

    @cached_property
    def totals(self) -> tuple[int, int, int, int]:
        """Rows, terms of their own, terms around them, and parts."""
        return len(self.rows), int(self.own.lengths.sum()), int(self.around.lengths.sum()), len(self.parts)

    @cached_property
    def ids(self) -> list[str]:
        """The id of each part's document."""
        return self.documents.tobytes().decode("utf-8", "surrogateescape").split("\n")[:-1]

    @cached_property
    def of(self) -> dict[str, int]:
        """The part of each document."""
        return {doc_id: number for number, doc_id in enumerate(self.ids)}

    def parts_of(self, rows: Array) -> Array:
        """The part that each of these rows is in."""
        return np.searchsorted(self._part_ends, rows, side="right")

    @cached_property
    def _part_ends(self) -> Array:
        return np.asarray(self.parts["first"] + self.parts["count"])


@dataclass
class _Side:
    """One field under construction."""

    terms: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Distinct terms of each row that was not packed yet."""
    packed: list[tuple[Array, Array]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    first: int = 0
    items: int = 0

    def add(self, numbers: _Numbers, terms: Sequence[str]) -> None:
        """Add a row."""
        held = Counter(terms)
        self.terms.extend(map(numbers.__getitem__, held))
        self.counts.extend(held.values())
        self.sizes.append(len(held))
        self.lengths.append(len(terms))
        if len(self.terms) > _BATCH:
            self.pack()

    def pack(self) -> None:
        """Put what was added since in order, by term and row."""
        rows = np.repeat(np.arange(self.first, self.first + len(self.sizes)), self.sizes)
        often = np.minimum(np.fromiter(self.counts, np.int64, len(self.counts)), MOST_COUNTED)
        keys = np.sort(np.fromiter(self.terms, np.int64, len(self.terms)) << 40 | rows << 8 | often)
        self.packed.append((keys >> 8, (keys & 255).astype(np.uint8)))
        self.first += len(self.sizes)
        self.items += len(keys)
        self.terms, self.counts, self.sizes = [], [], []

    def field(self, places: Array) -> Field:
        """All of it; `places` gives the final number of each term. Batches ascend by row, so that they need
        only be dealt out by term."""
        self.pack()
        sizes = np.zeros(len(places), dtype=np.int64)
        for keys, _ in self.packed:
            sizes += np.bincount(keys >> 32, minlength=len(places))
        ordered = np.zeros(len(places), dtype=np.int64)
        ordered[places] = sizes
        ends = np.concatenate([[0], np.cumsum(ordered)])
        free = ends[:-1][places]
        rows, counts = np.empty(self.items, dtype=np.uint32), np.empty(self.items, dtype=np.uint8)
        for keys, often in self.packed:
            terms = keys >> 32
            here = np.bincount(terms, minlength=len(places))
            at = np.arange(len(terms)) + (free - (np.cumsum(here) - here))[terms]
            rows[at], counts[at] = keys & 0xFFFFFFFF, often
            free += here
        self.packed = []
        return Field(ends, rows, counts, np.array(self.lengths, dtype=np.uint32))


class _Numbers(dict[str, int]):
    """Numbers given in the order of first use."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class Builder:
    """Makes a segment, document by document.

    Args:
        shelf: of its rows.
    """

    def __init__(self, shelf: str) -> None:
        self.shelf = shelf
        self._vocabulary, self._names = _Numbers(), _Numbers()
        self._own, self._around = _Side(), _Side()
        self._rows: list[tuple[Any, ...]] = []
        self._parts: list[tuple[int, ...]] = []
        self._documents: list[str] = []
        self._cites: list[int] = []
        self._cite_ends = [0]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def full(self) -> bool:
        """Whether the next document belongs into another segment."""
        return self._own.items + self._around.items >= FULL

    def part(self, uid: int, doc_id: str, stamp: tuple[int, int, int]) -> None:
        """Begin the part of a document; its rows follow."""
        self._parts.append((uid, len(self._rows), 0, *stamp))
        self._documents.append(f"{doc_id}\n")

    def row(
        self,
        lines: tuple[int, int],
        own: Sequence[str],
        around: Sequence[str],
        *,
        whole: str | None = None,
        path: Sequence[str] = (),
        speaker: str | None = None,
        seq: int = 0,
        day: int = 0,
        asking: int = 0,
        personal: bool = False,
        cites: Sequence[int] = (),
        text: Sequence[int] = (0, 0),
    ) -> None:
        """Add a row to the part that was begun last; see `ROW` and `Segment`."""
        self._own.add(self._vocabulary, own)
        self._around.add(self._vocabulary, around)
        names = ("\x1f".join(path) or None, whole, speaker)
        numbers = (NONE if name is None else self._names[name] for name in names)
        self._rows.append((*lines, *numbers, seq, day, asking, personal, text))
        self._cites.extend(cites)
        self._cite_ends.append(len(self._cites))

    def build(self) -> Segment:
        """The segment."""
        hashes = np.array([term_hash(term) for term in self._vocabulary], dtype=np.uint64)
        order = np.argsort(hashes)
        places = np.empty(len(hashes), dtype=np.int64)
        places[order] = np.arange(len(hashes))
        parts = np.array(self._parts, dtype=PART)
        parts["count"] = np.diff(np.append(parts["first"], len(self._rows)))
        return Segment(
            self.shelf,
            hashes[order],
            np.array(self._rows, dtype=ROW),
            self._own.field(places),
            self._around.field(places),
            parts,
            np.frombuffer("".join(self._documents).encode("utf-8", "surrogateescape"), dtype=np.uint8),
            Names.of(self._names),
            np.array(self._cite_ends, dtype=np.int64),
            np.array(self._cites, dtype=np.int64),
        )
