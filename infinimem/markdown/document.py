"""A document: its header, blocks and entries, and edits of it.

In: any bytes. Out: the parts, read when first asked for, and documents with some lines changed. Promise:
`to_bytes` gives the same bytes back, and an edit touches only its own lines. No I/O.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from sys import intern

from immutables import Map

from infinimem.markdown.characters import clean_text, one_line, sound
from infinimem.markdown.header import Header, edit_header, header_end, read_header
from infinimem.markdown.scan import (
    Heading,
    ListItem,
    Outline,
    Scan,
    is_signed,
    item_start,
    outline,
    plain_title,
    scan,
)
from infinimem.markdown.signature import block_id, forgotten_in, parse_entry, text_start, unsign
from infinimem.model import Located

_BOM = b"\xef\xbb\xbf"
HELD = 2000
"""Documents of a library whose parts are held."""


class Parts:
    """What the lines of a document come to, each read when first asked for; `before`, its entries before an
    edit, spares reading most lines again."""

    def __init__(self, doc_id: str, lines: tuple[str, ...], before: Sequence[Located] = ()) -> None:
        self.doc_id = doc_id
        self.lines = lines
        self._before = before

    @cached_property
    def header(self) -> Header:
        return read_header(self.lines)

    @cached_property
    def start(self) -> int:
        """The last line of the header, found without reading it; 0 if there is none."""
        return header_end(self.lines)

    @cached_property
    def bare(self) -> tuple[str, ...]:
        """Lines without their "\\r"; the very tuple of `lines` if there is none."""
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

    def grown(self, lines: tuple[str, ...], added: Sequence[Located]) -> Parts:
        """Return the parts once entries were appended."""
        parts = Parts(self.doc_id, lines)
        entries = (*self.scan.entries, *added)
        vars(parts).update(header=self.header, start=self.start, outline=self.outline)
        vars(parts).update(scan=replace(self.scan, entries=entries))
        if "by_seq" in vars(self):
            vars(parts).update(by_seq=self.by_seq.update((place.seq, place) for place in added))
        return parts


class PartsCache:
    """The parts of the documents of one library that were asked last; those of others are read again. Memory
    holds the lines of a large library once, and what they come to only if it was asked for lately."""

    def __init__(self) -> None:
        # By what cannot be another's while they are held. Each step on it is whole, whatever threads do.
        self._held: OrderedDict[tuple[str, int], Parts] = OrderedDict()

    def of(self, doc_id: str, lines: tuple[str, ...]) -> Parts:
        """Return the parts of a document, perhaps still to be read."""
        key = doc_id, id(lines)
        try:
            self._held.move_to_end(key)
            return self._held[key]
        except KeyError:
            return self.hold(Parts(doc_id, lines))

    def hold(self, parts: Parts) -> Parts:
        """Hold these, and let go those that were asked longest ago."""
        self._held[parts.doc_id, id(parts.lines)] = parts
        while len(self._held) > HELD:
            self._held.popitem(last=False)
        return parts


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
        """Read any bytes, UTF-8 or not."""
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
        """Return the bytes it was parsed from, with its edits."""
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
        """Return the same document; the cache holds what is known of it."""
        cache.hold(self._parts)
        return replace(self, cache=cache)

    @property
    def header(self) -> Header:
        return self._parts.header

    @property
    def title(self) -> str:
        """The header's title on one line; "" if there is none."""
        return self._in_header("title")

    @property
    def summary(self) -> str:
        """The header's summary on one line; "" if there is none."""
        return self._in_header("summary")

    def _in_header(self, key: str) -> str:
        value = self.header.values.get(key, "")
        return one_line(clean_text(value)) if isinstance(value, str) else ""

    @property
    def header_end(self) -> int:
        """The last line of the header, found without reading it; 0 if there is none."""
        return self._parts.start

    @property
    def body(self) -> str:
        """Text after the header, for showing: LF line ends, undecodable bytes as U+FFFD."""
        return self.text(self._parts.start + 1, len(self.lines))

    @property
    def entries(self) -> tuple[Located, ...]:
        return self._parts.scan.entries

    def entry(self, seq: int) -> Located | None:
        """Return the entry with this seq, the last of several."""
        return self._parts.by_seq.get(seq)

    def entries_in(self, start: int, end: int) -> tuple[Located, ...]:
        """Return the entries that have a line among lines `start` to `end`."""
        first = bisect_left(self.entries, start, key=attrgetter("end_line"))
        return self.entries[first : bisect_right(self.entries, end, key=attrgetter("start_line"))]

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
        """Return line `number` (from 1) for showing: no line end, undecodable bytes as U+FFFD.

        Raises:
            IndexError: there is no such line.
        """
        if number < 1:
            raise IndexError(number)
        return self._parts.shown[number - 1]

    def text(self, first: int, last: int) -> str:
        """Return lines `first` to `last` for showing, as `text_line` does."""
        return "\n".join(self._parts.shown[first - 1 : last])

    def path_at(self, number: int) -> tuple[str, ...]:
        """Return the titles of the headings above a line, from the highest; a heading is under itself."""
        at = bisect_right(self.headings, number, key=lambda heading: heading.line)
        return self._parts.outline.paths[at - 1] if at else ()

    # ── editing ─────────────────────────────────────────────────────────────────────────────────

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        crlf = sum(line.endswith("\r") for line in self.lines)
        return "\r\n" if crlf * 2 > len(self.lines) else "\n"

    def without(self, seqs: Collection[int]) -> Document:
        """Return it without these entries, and without a heading that this left with nothing under it."""
        gone = {
            number
            for located in self.entries
            if located.entry.seq in seqs
            for number in range(located.start_line, located.end_line + 1)
        }
        return self.without_lines(gone | self._emptied(gone)) if gone else self

    def without_lines(self, numbers: Collection[int]) -> Document:
        """Return it without these lines, whatever they are."""
        kept = [line for number, line in enumerate(self.lines, 1) if number not in numbers]
        return self._with(kept, self.final_newline or len(self.lines) in numbers)

    def insert(self, lines: Sequence[str], heading: str = "") -> Document:
        """Return it with these lines (`Entry.line`, which may span several) at the end of a section.

        Args:
            heading: title of the section; its text ends where the next heading begins. Without such a section
                `# heading` is created at the end, `## heading` if the document's own title is its only H1. ""
                appends at the end of the file, whose bytes stay a prefix of the new ones.
        """
        return self.insert_all([(heading, lines)])

    def insert_all(self, arrivals: Sequence[tuple[str, Sequence[str]]]) -> Document:
        """Insert lines at the end of each of these sections in turn, in one pass over the document."""
        if not arrivals:
            return self
        eol = self.newline[:-1]
        if self.final_newline and not any(plain_title(heading) for heading, _ in arrivals):
            new = (part for _, lines in arrivals for line in lines for part in line.split("\n"))
            added = "".join(f"{line}{eol}\n" for line in new).encode("utf-8", "surrogateescape")
            return self.grown(Document.parse(self.id, added))
        blocks = _Blocks(self)
        for heading, lines in arrivals:
            blocks.insert(lines, heading)
        return self._with([*chain.from_iterable(blocks.blocks)], blocks.final_newline)

    def grown(self, tail: Document) -> Document:
        """Return it as the file is after the bytes of `tail` were appended, on lines of their own.

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
        """Return it with header keys set to YAML text (`quote`, `flow`) or, with None, removed.

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
        """Put signatures on list items, or entries; their text stays.

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
        """Return the lines of sections that `gone` leaves with blank lines alone, with their subsections."""
        empty: set[int] = set()
        below: list[Heading] = []  # those behind, at which a section may end
        start, bare, tail = self._parts.start, self._parts.bare, len(self.lines) + 1

        def holds(number: int) -> bool:
            line = bare[number - 1]
            return (
                number not in gone
                and number not in empty
                and bool(line.strip())
                and forgotten_in(line) is None
            )

        for heading in reversed(self.headings):
            while below and below[-1].level > heading.level:
                below.pop()
            end = below[-1].line if below else len(self.lines) + 1
            below.append(heading)
            section, title = range(heading.line + 1, end), bare[heading.line - 1]
            if gone.isdisjoint(section) or any(map(holds, section)) or len(title.splitlines()) > 1:
                continue
            empty.update(range(heading.line, end))
            if end >= tail:  # nothing stands after it, so the blank line before it goes too
                tail = heading.line
                if tail - 1 > start and not bare[tail - 2].strip():
                    tail -= 1
                    empty.add(tail)
        return empty

    def blanked(self, numbers: Collection[int]) -> Document:
        """Return it with these lines empty; the others keep their numbers."""
        lines = ["" if n in numbers else line for n, line in enumerate(self.lines, 1)]
        return self._with(lines, self.final_newline)

    def _with(self, lines: Sequence[str], final_newline: bool) -> Document:
        new, before = tuple(lines), self.entries if self._parts.scanned else ()
        document = replace(self, lines=new, final_newline=final_newline and bool(new), cache=None)
        vars(document).update(_own=Parts(self.id, new, before))
        return document


class _Blocks:
    """The lines of a document: what stands before the first heading, then a block a heading."""

    def __init__(self, document: Document) -> None:
        headings = document.headings
        self.final_newline = document.final_newline
        self._id = document.id
        self.blocks = _split(document.lines, headings)
        self._header = document.header_end
        self._eol = document.newline[:-1]
        self._title = (document.title or document.id.rsplit("/", 1)[-1].replace("-", " ")).casefold()
        self._tops = [heading.title.casefold() for heading in headings if heading.level == 1]
        self._prose = frozenset(document._parts.scan.prose)
        self._starts = [0, *(heading.line - 1 for heading in headings)]
        self._by_title: dict[str, int] = {}
        self._grown: set[int] = set()  # blocks that end in what was inserted
        for number, heading in enumerate(headings, 1):
            self._by_title.setdefault(heading.title.casefold(), number)

    def insert(self, lines: Sequence[str], heading: str) -> None:
        """Insert as `Document.insert` does."""
        new = [part + self._eol for line in lines for part in line.split("\n")]
        title = plain_title(heading)
        if title and (known := self._by_title.get(title.casefold())) is not None:
            self._extend(known, new)
            return
        if title:
            below = self._tops == [self._title]  # of the document's own title
            new.insert(0, f"{'##' if below else '#'} {one_line(clean_text(heading))}{self._eol}")
            self._tops += [] if below else [title.casefold()]
            last = self.blocks[-1]
            if (len(self.blocks) > 1 or len(last) > self._header) and last[-1].strip():
                new.insert(0, self._eol)
        self._append(new)

    def _extend(self, number: int, new: list[str]) -> None:
        """Put lines at the end of a block, before the blank lines that end it."""
        block = self.blocks[number]
        at = len(block)
        while not block[at - 1].strip():
            at -= 1
        if number not in self._grown and self._starts[number] + at in self._prose:
            new.insert(0, self._eol)
        if at == len(block) and number == len(self.blocks) - 1:
            self._end()
        block[at:at] = new
        self._grown.add(number)

    def _append(self, new: list[str]) -> None:
        """Put lines at the end of the document; headings among them begin blocks of their own."""
        self._end()
        bare = [line.removesuffix("\r") for line in new]
        headings = () if all(line.startswith("- <") for line in bare) else outline(self._id, bare, 0).headings
        first, *others = _split(new, headings)
        self.blocks[-1] += first
        for block, heading in zip(others, headings, strict=True):
            self._grown.add(len(self.blocks))
            self._by_title.setdefault(heading.title.casefold(), len(self.blocks))
            self.blocks.append(block)

    def _end(self) -> None:
        """End the last line, if it is not ended yet."""
        if not self.final_newline and self.blocks[-1]:
            self.blocks[-1][-1] += self._eol
        self.final_newline = True


def _split(lines: Sequence[str], headings: Sequence[Heading]) -> list[list[str]]:
    """Return the lines before the first heading, then those from each heading to the next."""
    starts = [0, *(heading.line - 1 for heading in headings)]
    return [list(lines[first:end]) for first, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
