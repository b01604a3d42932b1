"""What the lines of a document come to: header, headings, entries, each read when first asked for.

In: lines. Out: their parts; and a cache of parts, which each library has of its own, so that memory holds the
lines of a large library once and what they come to only where it was asked for lately. No I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from immutables import Map

from infinimem.markdown.characters import sound
from infinimem.markdown.header import Header, header_end, read_header
from infinimem.markdown.scan import Outline, Scan, is_signed, outline, scan
from infinimem.markdown.signature import unsign
from infinimem.model import Located

HELD = 2000
"""Documents of a library whose parts are held."""


class Parts:
    """The parts of a document.

    Args:
        doc_id, lines: of the document.
        before: its entries before an edit: most of its lines are read already.
    """

    def __init__(self, doc_id: str, lines: tuple[str, ...], before: Sequence[Located] = ()) -> None:
        self.doc_id = doc_id
        self.lines = lines
        self._before = before

    @cached_property
    def header(self) -> Header:
        return read_header(self.lines)

    @cached_property
    def start(self) -> int:
        """Where the header ends, found without reading it."""
        return header_end(self.lines)

    @cached_property
    def bare(self) -> tuple[str, ...]:
        """Lines without their "\\r"; the very tuple of `lines` where there is none."""
        if "\r" in "".join(self.lines):
            return tuple(line.removesuffix("\r") for line in self.lines)
        return self.lines

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Lines as they are shown; the very tuple of `bare` where all bytes can be.

        A line that looks signed where no line is gets a backslash, so that nobody takes it for an entry.
        """
        text = "\n".join(self.bare)
        shown = sound(text) if is_signed(self.doc_id) else unsign(sound(text))
        return self.bare if shown == text else tuple(shown.split("\n"))

    @cached_property
    def outline(self) -> Outline:
        return outline(self.doc_id, self.bare, self.start)

    @cached_property
    def scan(self) -> Scan:
        before, self._before = self._before, ()
        return scan(self.doc_id, self.bare, self.start, self.outline, before)

    @property
    def scanned(self) -> bool:
        """Whether `scan` is known."""
        return "scan" in vars(self)

    @cached_property
    def by_seq(self) -> Map[int, Located]:
        return Map((place.seq, place) for place in self.scan.entries)

    @cached_property
    def extents(self) -> tuple[list[int], list[int]]:
        """The first line of each entry, and the last."""
        entries = self.scan.entries
        return [place.start_line for place in entries], [place.end_line for place in entries]

    def grown(self, lines: tuple[str, ...], added: Sequence[Located]) -> Parts:
        """The parts once entries were appended."""
        parts = Parts(self.doc_id, lines)
        entries = (*self.scan.entries, *added)
        vars(parts).update(header=self.header, start=self.start, outline=self.outline)
        vars(parts).update(scan=replace(self.scan, entries=entries))
        if "by_seq" in vars(self):
            vars(parts).update(by_seq=self.by_seq.update((place.seq, place) for place in added))
        return parts


class PartsCache:
    """The parts of the documents of one library that were asked last; those of others are read again."""

    def __init__(self) -> None:
        # By what cannot be another's while they are held. Each step on it is whole, whatever threads do.
        self._held: OrderedDict[tuple[str, int], Parts] = OrderedDict()

    def of(self, doc_id: str, lines: tuple[str, ...]) -> Parts:
        """The parts of a document, perhaps still to be read."""
        key = doc_id, id(lines)
        try:
            self._held.move_to_end(key)
            return self._held[key]
        except KeyError:
            return self.hold(Parts(doc_id, lines))

    def hold(self, parts: Parts) -> Parts:
        """Hold these, and let those go that were asked longest ago."""
        self._held[parts.doc_id, id(parts.lines)] = parts
        while len(self._held) > HELD:
            self._held.popitem(last=False)
        return parts
