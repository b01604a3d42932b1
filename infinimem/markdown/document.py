"""A document: its header, blocks and entries, and edits of it.

In: any bytes. Out: the parts, read when first asked for, and documents with some lines changed. Promise:
`to_bytes` gives the same bytes back, and an edit touches only its own lines. No I/O.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from sys import intern

from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.header import Header, edit_header
from infinimem.markdown.parts import Parts, PartsCache
from infinimem.markdown.scan import (
    Heading,
    ListItem,
    Sections,
    item_start,
    plain_title,
)
from infinimem.markdown.signature import block_id, forgotten_in, parse_entry, text_start
from infinimem.model import Located

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Document:
    """A Markdown file. Lines count from 1 and include the header, as in an editor."""

    id: str
    lines: tuple[str, ...] = field(repr=False)
    """Physical lines without "\\n"; a CRLF line keeps its "\\r", undecodable bytes are lone surrogates."""
    bom: bool = False
    final_newline: bool = True
    cache: PartsCache | None = field(default=None, compare=False, repr=False)
    """Holds what the lines come to; without one the document does, as long as it lives."""

    @classmethod
    def parse(cls, doc_id: str, data: bytes) -> Document:
        """Any bytes, UTF-8 or not."""
        bom = data.startswith(_BOM)
        text = data[len(_BOM) * bom :].decode("utf-8", "surrogateescape")
        final = text.endswith("\n")
        lines = text.split("\n")
        if final or not text:
            lines.pop()
        if not doc_id.startswith("evidence/"):  # what was last seen of an entry is the same object then
            lines = [intern(line) if line.startswith("- <") else line for line in lines]
        return cls(doc_id, tuple(lines), bom, final)

    @classmethod
    def empty(cls, doc_id: str) -> Document:
        return cls(doc_id, (), final_newline=False)

    def to_bytes(self) -> bytes:
        """The bytes it was parsed from, where it was not edited."""
        text = "\n".join(self.lines) + "\n" * self.final_newline
        return _BOM * self.bom + text.encode("utf-8", "surrogateescape")

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    @property
    def _parts(self) -> Parts:
        return self.cache.of(self.id, self.lines) if self.cache else self._own

    @cached_property
    def _own(self) -> Parts:
        return Parts(self.id, self.lines)

    def cached(self, cache: PartsCache) -> Document:
        """The same document; the cache holds what is known of it."""
        cache.hold(self._parts)
        return replace(self, cache=cache)

    @property
    def header(self) -> Header:
        return self._parts.header

    @property
    def title(self) -> str:
        """The header's title on one line; "" where there is none."""
        return self._told("title")

    @property
    def summary(self) -> str:
        """The header's summary on one line; "" where there is none."""
        return self._told("summary")

    def _told(self, key: str) -> str:
        value = self.header.values.get(key, "")
        return one_line(clean_text(value)) if isinstance(value, str) else ""

    @property
    def header_end(self) -> int:
        """The last line of the header, found without reading it; 0 where there is none."""
        return self._parts.start

    @property
    def body(self) -> str:
        """Text after the header, for showing: LF line ends, undecodable bytes as U+FFFD."""
        return self.text(self._parts.start + 1, len(self.lines))

    @property
    def entries(self) -> tuple[Located, ...]:
        return self._parts.scan.entries

    def entry(self, seq: int) -> Located | None:
        """The entry with this seq, the last of several."""
        return self._parts.by_seq.get(seq)

    def entries_in(self, start: int, end: int) -> tuple[Located, ...]:
        """The entries that have a line among lines `start` to `end`."""
        begins, ends = self._parts.extents
        return self.entries[bisect_left(ends, start) : bisect_right(begins, end)]

    @property
    def unsigned(self) -> tuple[ListItem, ...]:
        """List items without signature at column 0: a person's."""
        return self._parts.scan.unsigned

    @property
    def malformed(self) -> tuple[int, ...]:
        """Numbers of the lines that begin like a signature but are no entry."""
        return self._parts.scan.malformed

    @property
    def headings(self) -> tuple[Heading, ...]:
        """Headings outside closed fences and comments."""
        return self._parts.outline.headings

    @property
    def has_prose(self) -> bool:
        """Whether it holds anything but headings, entries, list items at column 0 and blank lines.

        A malformed line counts, and so does a header that is not ours to edit.
        """
        return bool(self._parts.scan.prose or self.malformed or not self.header.editable)

    def text_line(self, number: int) -> str:
        """Line `number` (from 1) for showing: no line end, undecodable bytes as U+FFFD.

        Raises:
            IndexError: there is no such line.
        """
        if number < 1:
            raise IndexError(number)
        return self._parts.shown[number - 1]

    def text(self, first: int, last: int) -> str:
        """Lines `first` to `last` for showing, as `text_line` gives them."""
        return "\n".join(self._parts.shown[first - 1 : last])

    def path_at(self, number: int) -> tuple[str, ...]:
        """Titles of the headings above line `number`, from the highest; a heading is under itself."""
        at = bisect_right(self.headings, number, key=lambda heading: heading.line)
        return self._parts.outline.paths[at - 1] if at else ()

    # ── editing ─────────────────────────────────────────────────────────────────────────────────

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        crlf = sum(line.endswith("\r") for line in self.lines)
        return "\r\n" if crlf * 2 > len(self.lines) else "\n"

    def without(self, seqs: Collection[int]) -> Document:
        """Without these entries, and without a heading that this left with nothing under it."""
        gone = {
            number
            for located in self.entries
            if located.entry.seq in seqs
            for number in range(located.start_line, located.end_line + 1)
        }
        if not gone:
            return self
        return self.without_lines(gone | self._emptied(gone))

    def without_lines(self, numbers: Collection[int]) -> Document:
        """Without these lines, whatever they are."""
        kept = [line for number, line in enumerate(self.lines, 1) if number not in numbers]
        return self._with(kept, self.final_newline or len(self.lines) in numbers)

    def insert(self, lines: Sequence[str], heading: str = "") -> Document:
        """With these lines (`Entry.line`, which may span several) at the end of a section.

        Args:
            heading: title of the section; its text ends where the next heading begins. Without such a
                section `# heading` is created at the end, `## heading` where the document's own title is
                its only H1. "" appends at the end of the file, whose bytes
                stay a prefix of the new ones.
        """
        return self.insert_all([(heading, lines)])

    def insert_all(self, arrivals: Sequence[tuple[str, Sequence[str]]]) -> Document:
        """As `insert` for each of these headings and lines in turn, in one pass over the document."""
        if not arrivals:
            return self
        eol = self.newline[:-1]
        if self.final_newline and not any(plain_title(heading) for heading, _ in arrivals):
            new = (part for _, lines in arrivals for line in lines for part in line.split("\n"))
            added = "".join(f"{line}{eol}\n" for line in new).encode("utf-8", "surrogateescape")
            return self.grown(Document.parse(self.id, added))
        sections = Sections(
            self.id,
            self.lines,
            self.headings,
            self._parts.scan.prose,
            self._parts.start,
            self.final_newline,
            eol,
            self.title,
        )
        for heading, lines in arrivals:
            sections.insert(lines, heading)
        return self._with(sections.lines, sections.final_newline)

    def grown(self, tail: Document) -> Document:
        """As the file is after the bytes of `tail` were appended, on lines of their own.

        Where those are entries alone, what is known of the lines above them stays known.
        """
        if tail.bom or not self.lines:
            return Document.parse(self.id, self.to_bytes() + tail.to_bytes())
        lines = self.lines + tail.lines
        document = replace(self, lines=lines, final_newline=tail.final_newline, cache=None)
        added = tail._parts.scan
        extent = sum(place.end_line - place.start_line + 1 for place in added.entries)
        if extent == len(tail.lines) and self._parts.scanned:
            path = self.path_at(len(self.lines))
            moved = tuple(
                replace(
                    place,
                    start_line=place.start_line + len(self.lines),
                    end_line=place.end_line + len(self.lines),
                    headings=path,
                )
                for place in added.entries
            )
            vars(document).update(_own=self._parts.grown(lines, moved))
        return document

    def with_header(self, changes: Mapping[str, str | None]) -> Document:
        """With header keys set to YAML text (`quote`, `flow`) or, with None, removed.

        A header that does not parse, or is another program's, is left as it is.

        Raises:
            ValueError: a value is not the YAML of one key, or the header would pass its bounds.
        """
        if not self.header.editable:
            return self
        lines, header = edit_header(self.lines, self.header.end, changes, self.newline)
        if tuple(lines) == self.lines:
            return self
        document = self._with(lines, self.final_newline or not self.lines)
        vars(document._parts).update(header=header)
        return document

    def sign(self, signatures: Mapping[int, str]) -> Document:
        """With signatures on list items, or entries; their text stays.

        Args:
            signatures: by the number of a line the entry line whose signature it gets.

        Raises:
            ValueError: there is no list item, or what it gets is no entry.
        """
        lines = list(self.lines)
        for number, entry_line in signatures.items():
            line = self._parts.bare[number - 1]
            start, new, old = text_start(line) or item_start(line), parse_entry(entry_line), parse_entry(line)
            if not start or new is None:
                raise ValueError(f"{self.id}:{number} cannot be signed")
            text, end = line[start:], lines[number - 1][len(line) :]
            if old and text.endswith(block_id(old.seq)):
                text = text.removesuffix(block_id(old.seq)) + block_id(new.seq)
            gap = "" if line[:start].endswith(">") else " "  # what was signed and empty may end there
            lines[number - 1] = f"{entry_line[: text_start(entry_line)].rstrip(' ')}{gap}{text}{end}"
        return self._with(lines, self.final_newline)

    def _emptied(self, gone: Set[int]) -> set[int]:
        """Lines of the sections that `gone` leaves with blank lines alone, emptied subsections included."""
        empty: set[int] = set()
        # Level and line of each heading below, whether it still holds text, whether it lost any.
        below: list[tuple[int, int, bool, bool]] = []
        end = tail = len(self.lines) + 1
        start, bare = self._parts.start, self._parts.bare
        for heading in reversed(self.headings):
            block = range(heading.line + 1, end)
            lost = any(number in gone for number in block)
            holds = len(bare[heading.line - 1].splitlines()) > 1 or any(
                number not in gone and bare[number - 1].strip() and forgotten_in(bare[number - 1]) is None
                for number in block
            )
            while below and below[-1][0] > heading.level:
                _, _, holds_more, lost_more = below.pop()
                holds, lost = holds or holds_more, lost or lost_more
            if lost and not holds:
                last = below[-1][1] if below else len(self.lines) + 1
                empty.update(range(heading.line, last))
                if last >= tail:  # nothing stands after it, so the blank line before it goes too
                    tail = heading.line
                    if tail - 1 > start and not bare[tail - 2].strip():
                        tail -= 1
                        empty.add(tail)
            else:
                holds = True
            below.append((heading.level, heading.line, holds, lost))
            end = heading.line
        return empty

    def blanked(self, numbers: Collection[int]) -> Document:
        """With these lines empty; the others keep their numbers."""
        lines = ["" if n in numbers else line for n, line in enumerate(self.lines, 1)]
        return self._with(lines, self.final_newline)

    def _with(self, lines: Sequence[str], final_newline: bool) -> Document:
        new, before = tuple(lines), self.entries if self._parts.scanned else ()
        document = replace(self, lines=new, final_newline=final_newline and bool(new), cache=None)
        vars(document).update(_own=Parts(self.id, new, before))
        return document
