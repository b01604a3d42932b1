"""Partitions: the heading blocks that a document is searched and shown in.

Derived from a `Document`; knows nothing of ranking.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from infinimem.markdown.document import Document, Heading
from infinimem.tokens import estimate

PARTITION_TOKENS = 400  # of one, by estimate, so that the blocks of a document hang on nothing else


class Partition(NamedTuple):
    """A run of lines under one path of headings; lines count from 1, both ends included."""

    headings: tuple[str, ...]
    start_line: int
    end_line: int
    text: str


def partitions(document: Document) -> tuple[Partition, ...]:
    """Return the heading blocks of a document, in order; every line of its body that is not blank is in one.

    The H1 sections, or the H2 sections where there is one H1 (the shallowest there are if there is none);
    what stands before the first is a block too. A longer block, by estimate, is cut where a paragraph, an
    entry or a list item begins; one that is longer by itself stays whole. A title with nothing under it
    opens the block that follows. A document whose header does not parse is a plain note, read from line 1.
    """
    cut: list[Partition] = []
    starts: list[int] | None = None
    for block in _blocks(document):
        # No token is shorter than a byte, so most blocks need no counting.
        if len(block.text.encode()) <= PARTITION_TOKENS or estimate(block.text) <= PARTITION_TOKENS:
            cut.append(block)
            continue
        starts = _starts(document) if starts is None else starts
        for start, end in _cut(document, block, starts):
            path = block.headings if start == block.start_line else document.path_at(start)
            cut.append(Partition(path, start, end, document.text(start, end)))
    return tuple(cut)


def _blocks(document: Document) -> Iterator[Partition]:
    """Yield each heading block, without the blank lines around it."""
    headings = document.headings
    levels = [heading.level for heading in headings]
    level = 2 if levels.count(1) == 1 else min(levels, default=1)
    bounds = [heading for heading in headings if heading.level <= level]
    first = 1 if document.header.problem else document.header.end + 1
    here: Heading | None = None
    for bound in (*bounds, None):
        last = bound.line - 1 if bound else len(document.lines)
        while last >= first and _blank(document, last):
            last -= 1
        if not (here and bound and last < here.line + here.rows and bound.level > here.level):
            while first < last and _blank(document, first):
                first += 1
            if first <= last:
                path = document.path_at(here.line if here else first)
                yield Partition(path, first, last, document.text(first, last))
            first = bound.line if bound else 0
        here = bound


def _starts(document: Document) -> list[int]:
    """Return the lines at which a cut may fall: paragraphs, entries, list items, with headings above them."""
    entries = {located.start_line: located.end_line for located in document.entries}
    alone = {item.line for item in document.unsigned} | set(document.malformed)
    headings = {heading.line for heading in document.headings}
    starts: list[int] = []
    line, fresh = 1, True
    held = False  # whether a heading waits for what stands under it
    while line <= len(document.lines):
        end = entries.get(line, line)
        if _blank(document, line) and end == line:
            fresh = True
        else:
            if (fresh or line in entries or line in alone or line in headings) and not held:
                starts.append(line)
            held = line in headings
            fresh = line in entries or held
        line = end + 1
    return starts


def _cut(document: Document, block: Partition, starts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the lines of a block in runs that are short enough, as far as the starts allow."""
    first, last = block.start_line, block.end_line
    inside = starts[bisect_right(starts, first) : bisect_right(starts, last)]
    begin, size = first, 0
    for start, after in zip([first, *inside], [*inside, last + 1], strict=True):
        tokens = estimate(document.text(start, after - 1)) + 1
        if size and size + tokens > PARTITION_TOKENS:
            end = start - 1
            while end > begin and _blank(document, end):
                end -= 1
            yield begin, end
            begin, size = start, 0
        size += tokens
    yield begin, last


def _blank(document: Document, number: int) -> bool:
    return not document.lines[number - 1].strip()
