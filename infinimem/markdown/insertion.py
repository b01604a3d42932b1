"""Lines put at the ends of a document's sections: any number of them in one pass over the document.

Works on lines and on what a scan found in them; knows nothing of documents. Text that is not inserted stays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain

from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.scan import Heading, Scan, heading_title, scan


def plain_title(heading: str) -> str:
    """The title that a heading has once it is written: "" where it says nothing."""
    found = heading_title("# " + one_line(clean_text(heading)))
    return found[1] if found else ""


class Sections:
    """The lines of a document in blocks: what stands before the first heading, then a block a heading.

    Args:
        doc_id: id of the document.
        lines: its physical lines, each with its "\\r" where it has one.
        found: what stands in them.
        start: number of lines of the header.
        final_newline: whether the last line is ended.
        eol: what new lines end in before "\\n": "\\r" or nothing.
    """

    def __init__(
        self, doc_id: str, lines: Sequence[str], found: Scan, start: int, final_newline: bool, eol: str
    ) -> None:
        self.final_newline = final_newline
        self._id = doc_id
        self._header = start
        self._eol = eol
        self._prose = found.prose
        self._starts = [0, *(heading.line - 1 for heading in found.headings)]
        self._blocks = _blocks(lines, found.headings)
        self._by_title: dict[str, int] = {}
        self._grown: set[int] = set()  # blocks that end in what was inserted
        for number, heading in enumerate(found.headings, 1):
            self._name(heading, number)

    @property
    def lines(self) -> list[str]:
        """All lines as they are now."""
        return list(chain.from_iterable(self._blocks))

    def insert(self, lines: Sequence[str], heading: str) -> None:
        """As `Document.insert`."""
        new = [part + self._eol for line in lines for part in line.split("\n")]
        title = plain_title(heading)
        known = self._by_title.get(title.casefold()) if title else None
        if known is not None:
            self._extend(known, new)
            return
        if title:
            new.insert(0, f"# {one_line(clean_text(heading))}{self._eol}")
            if self._needs_a_gap():
                new.insert(0, self._eol)
        self._append(new)

    def _extend(self, number: int, new: list[str]) -> None:
        """At the end of a block, before the blank lines that end it."""
        block = self._blocks[number]
        at = len(block)
        while not block[at - 1].strip():
            at -= 1
        if number not in self._grown and self._is_prose(self._starts[number] + at):
            new.insert(0, self._eol)
        if at == len(block) and number == len(self._blocks) - 1:
            self._end()
        block[at:at] = new
        self._grown.add(number)

    def _append(self, new: list[str]) -> None:
        """At the end of the document; headings among these lines begin blocks of their own."""
        self._end()
        bare = [line.removesuffix("\r") for line in new]
        found = () if all(line.startswith("- <") for line in bare) else scan(self._id, bare, 0).headings
        first, *others = _blocks(new, found)
        self._blocks[-1] += first
        for block, heading in zip(others, found, strict=True):
            self._grown.add(len(self._blocks))
            self._name(heading, len(self._blocks))
            self._blocks.append(block)

    def _end(self) -> None:
        """End the last line, where it is not ended yet."""
        if not self.final_newline and self._blocks[-1]:
            self._blocks[-1][-1] += self._eol
        self.final_newline = True

    def _needs_a_gap(self) -> bool:
        """Whether a blank line goes before a heading at the end."""
        last = self._blocks[-1]
        return (len(self._blocks) > 1 or len(last) > self._header) and bool(last[-1].strip())

    def _is_prose(self, number: int) -> bool:
        at = bisect_left(self._prose, number)
        return at < len(self._prose) and self._prose[at] == number

    def _name(self, heading: Heading, number: int) -> None:
        self._by_title.setdefault(heading.title.casefold(), number)


def _blocks(lines: Sequence[str], headings: Sequence[Heading]) -> list[list[str]]:
    """The lines before the first heading, then those from each heading to the next."""
    starts = [0, *(heading.line - 1 for heading in headings)]
    return [list(lines[first:end]) for first, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
