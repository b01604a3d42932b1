"""The moves that lie between two versions of a document, and the same moves made on a person's version.

A transaction is made from the files as they were. Where a person saves one in between, their version is the
document, and what the transaction does to it are these moves. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from infinimem.law import Line, conserved
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote


@dataclass(frozen=True)
class Arrival:
    """A line that comes to a section; level 0 is a document's preamble, or its end."""

    seq: int
    line: str
    level: int = 0
    title: str = ""


@dataclass(frozen=True)
class Moves:
    """Lines that leave a document, and lines that come to it."""

    gone: tuple[Line, ...] = ()
    come: tuple[Arrival, ...] = ()

    @classmethod
    def between(cls, old: Document | None, new: Document | None) -> Moves:
        """What was moved to make `new` of `old`; None where there is no file."""
        before, after = old.entries if old else (), new.entries if new else ()
        headings = new.headings if new else ()
        had, has = {place.seq for place in before}, {place.seq for place in after}
        lines = [heading.line for heading in headings]
        come = []
        for place in (place for place in after if place.seq not in had):
            above = bisect_left(lines, place.start_line)
            section = (h.level, h.title) if above and (h := headings[above - 1]) else (0, "")
            come.append(Arrival(place.seq, place.entry.line, *section))
        gone = ((place.seq, place.entry.line) for place in before if place.seq not in has)
        return cls(tuple(gone), tuple(come))

    def without(self, seqs: Collection[int]) -> Moves:
        """The moves of the other lines."""
        return Moves(
            tuple(line for line in self.gone if line[0] not in seqs),
            tuple(arrival for arrival in self.come if arrival.seq not in seqs),
        )

    def to_json(self) -> dict[str, Any]:
        """For a manifest."""
        return {"gone": self.gone, "come": [(a.seq, a.line, a.level, a.title) for a in self.come]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Moves:
        """The inverse of `to_json`."""
        return cls(
            tuple((seq, line) for seq, line in data.get("gone", ())),
            tuple(Arrival(*arrival) for arrival in data.get("come", ())),
        )


def replay(moves: Moves, theirs: Document) -> Document:
    """Make the moves on another version of the document.

    A line that a person edited stays as they left it, and one that is there already does not come again, so
    that doing it twice changes nothing.

    Args:
        moves: what was to happen.
        theirs: the version that a person saved; an empty document where they removed it.

    Raises:
        ValueError: the lines cannot be read in it, be it that an open fence swallows them.
    """
    there = {place.seq: place.entry.line for place in theirs.entries}
    gone = [seq for seq, line in moves.gone if there.get(seq) == line]
    document = theirs.without(gone)
    coming = [arrival for arrival in moves.come if arrival.seq not in there]
    if coming and not theirs.lines:
        document = document.with_header({"id": quote(theirs.id)})
    document = document.insert_all(_by_section(document, coming))
    lines = [(place.seq, place.entry.line) for place in document.entries]
    before = [(place.seq, place.entry.line) for place in theirs.entries]
    arrived = [(arrival.seq, arrival.line) for arrival in coming]
    if conserved(before, lines, arrived, [line for line in moves.gone if line[0] in gone]):
        raise ValueError(f"{theirs.id} has no room for the lines that come")
    return document


def _by_section(document: Document, coming: Iterable[Arrival]) -> list[tuple[str, list[str]]]:
    """Lines for `insert_all`, under headings of their own level where the document has none of that title."""
    known = {heading.title.casefold() for heading in document.headings}
    sections = []
    for (level, title), group in groupby(coming, key=lambda arrival: (arrival.level, arrival.title)):
        lines = [arrival.line for arrival in group]
        if level and title.casefold() not in known:
            known.add(title.casefold())
            sections.append(("", ["", f"{'#' * level} {title}", *lines]))
        else:
            sections.append((title, lines))
    return sections
