"""A document: its header, headings, entries and the rest, and edits of it.

In: any bytes. Out: the parts, read when first asked for, and documents with some lines changed. Promise:
`to_bytes` gives the same bytes back, and an edit touches only its own lines. No I/O. Of Markdown it knows
headings, fences, comments, and list items at column 0.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from infinimem.markdown.characters import clean_text, one_line, sound
from infinimem.markdown.header import Header, edit_header, header_end, read_header
from infinimem.markdown.signature import (
    block_id,
    forgotten_in,
    looks_signed,
    parse_entry,
    text_start,
    unsign,
    without_tombstones,
)
from infinimem.model import BUFFERS, Located
from infinimem.spec import folders

_BOM = b"\xef\xbb\xbf"
MAX_ORIGINS = 1_000_000
"""Most origin seqs that the entries of one document may name together; what goes beyond is malformed."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]++(.*))?\Z", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)\Z", re.DOTALL)
_MARK = re.compile(r" {0,3}(?:#|```|~~~|<!--|(?:=+|-{2,})[ \t]*\Z)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*\Z")
_UNDERLINED = re.compile(r"(?![>|#<]|[-*+](?:[ \t]|\Z)|\d{1,9}[.)][ \t]|```|~~~|[-=_*]{2,}[ \t]*\Z)\S")
"""How a paragraph begins, which an underline makes a heading."""
_COMMENT = re.compile(r" {0,3}(<!--)(.*)\Z", re.DOTALL)
_ITEM = re.compile(r"[-*+][ \t]++(?=[^ \t])")
_TASK = re.compile(r"\[[ xX]\](?:[ \t]|\Z)")
_RULE = re.compile(r"([-*])(?:[ \t]*+\1){2,}+[ \t]*+\Z")  # a thematic break such as `* * *`


class Heading(NamedTuple):
    """A heading; `line` counts from 1, and an underline makes `rows` 2."""

    line: int
    level: int
    title: str
    rows: int = 1


class ListItem(NamedTuple):
    """A list item at column 0 without a signature: a person's."""

    line: int
    text: str


@dataclass(frozen=True)
class Outline:
    """Headings in order of lines, and closed fences as `fences` gives them; had without reading entries."""

    headings: tuple[Heading, ...]
    fences: Mapping[int, int]

    @cached_property
    def paths(self) -> Sequence[tuple[str, ...]]:
        """For each heading the titles of those above it and its own, from the highest."""
        open_: list[Heading] = []
        paths = []
        for heading in self.headings:
            while open_ and open_[-1].level >= heading.level:
                open_.pop()
            open_.append(heading)
            paths.append(tuple([above.title for above in open_]))
        return paths


class Scan(NamedTuple):
    """What stands in a body besides its headings, each in order of lines."""

    entries: tuple[Located, ...]
    unsigned: tuple[ListItem, ...]
    malformed: tuple[int, ...]
    prose: tuple[int, ...]
    """Lines that are none of these and not blank."""


def heading_title(line: str) -> tuple[int, str] | None:
    """Return level and title of an ATX heading line, or None."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = (match[2] or "").strip(" \t")
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare.rstrip(" \t")
    return len(match[1]), sound(title)


def item_start(line: str) -> int:
    """Return where the text of the list item at column 0 begins in `line`; 0 if it is none, or a task
    (`- [ ] call Bo`): a signature would take its checkbox away."""
    match = _ITEM.match(line)
    if match is None or _TASK.match(line, match.end()):
        return 0
    return 0 if line[match.end()] == line[0] and _RULE.match(line) else match.end()


def is_signed(doc_id: str) -> bool:
    """Tell whether lines of this document may be entries: the program writes it, no person or model."""
    return doc_id in BUFFERS or doc_id.startswith(folders().owned)


def _scan(doc_id: str, lines: Sequence[str], start: int, parts: Outline, before: Sequence[Located]) -> Scan:
    """Read a body: evidence alone has continuation lines; in whole files, which are records or a model's own,
    what looks like an entry or a person's item is neither; in notes no line is an entry."""
    known = {place.entry.line: place.entry for place in before}
    continued, whole = doc_id.startswith("evidence/"), doc_id.startswith(folders().whole)
    signed = is_signed(doc_id)
    closed = parts.fences
    below = {heading.line: above for heading, above in zip(parts.headings, parts.paths, strict=True)}
    entries: list[Located] = []
    unsigned: list[ListItem] = []
    malformed: list[int] = []
    prose: list[int] = []
    path: tuple[str, ...] = ()
    origins = done = 0
    for number, line in enumerate(lines[start:], start + 1):
        if number <= done or not line or line.isspace():
            continue
        if number in closed:
            done = closed[number]
            prose.extend(range(number, done + 1))
        elif line[0] in "-*+" and not whole:
            if signed and line.startswith("- <") and origins < MAX_ORIGINS:
                done = _end_of_entry(lines, number) if continued else number
                text = "\n".join(lines[number - 1 : done]) if done > number else line
                entry = known.get(text) or parse_entry(text)
                if entry is not None:
                    origins += len(entry.origin)
                    entries.append(Located(entry, doc_id, number, done, path))
                    continue
                done = number
            if signed and "<" in line and looks_signed(line):
                malformed.append(number)
            elif text_at := item_start(line):
                unsigned.append(ListItem(number, sound(line[text_at:])))
            elif line.rstrip(" \t") not in ("-", "*", "+"):  # an empty item: nothing to sign, nothing to lose
                prose.append(number)
        elif number in below:
            path = below[number]
            if len(line.splitlines()) > 1:  # line ends that are none here: words of a person's follow
                prose.append(number)
        elif forgotten_in(line) is None:
            prose.append(number)
    return Scan(tuple(entries), tuple(unsigned), tuple(malformed), tuple(prose))


def _outline(doc_id: str, lines: Sequence[str], start: int) -> Outline:
    continued = doc_id.startswith("evidence/")
    marks = "#" if continued else "#= -"  # an indented line may be a continuation, so it is no heading there
    marked = _marked(lines, start)
    closed, comments = _closed(lines, marked, indented=not continued)
    spans = (*closed.items(), *comments.items())
    hidden = {number for first, last in spans for number in range(first, last + 1)}
    headings = [
        heading
        for number, line in marked
        if line[0] in marks and number not in hidden and (heading := _heading(lines, number, start, hidden))
    ]
    return Outline(tuple(headings), closed)


def _heading(lines: Sequence[str], number: int, start: int, hidden: Container[int]) -> Heading | None:
    """Return the heading that this line is, or underlines: a paragraph of one line."""
    line, title = lines[number - 1], lines[number - 2] if number > start + 1 else ""
    if own := heading_title(line):
        return Heading(number, *own)
    above = lines[number - 3] if number > start + 2 and number - 2 not in hidden else ""
    alone = not above.strip() or heading_title(above) or _UNDERLINE.match(above)
    if alone and number - 1 not in hidden and _UNDERLINE.match(line) and _UNDERLINED.match(title):
        return Heading(number - 1, 1 if "=" in line else 2, sound(title.strip()), 2)
    return None


def _marked(lines: Sequence[str], start: int) -> list[tuple[int, str]]:
    """Return the lines that may begin a heading or a fence, with their numbers: a few of many."""
    return [
        (number, line)
        for number, line in enumerate(lines[start:], start + 1)
        if line and line[0] in " #`~<=-" and _MARK.match(line)
    ]


def _end_of_entry(lines: Sequence[str], number: int) -> int:
    """Return the last continuation line of the entry at `number`; blank ones count if an indented follows."""
    for after in range(number + 1, len(lines) + 1):
        line = lines[after - 1]
        if line.startswith("  "):
            number = after
        elif line and not line.isspace():
            break
    return number


def fences(lines: Sequence[str], start: int, indented: bool) -> dict[int, int]:
    """Return the closed fences of all lines but the first `start`, the closing line by the opening one;
    `indented`: by up to three spaces. A stray ``` hides nothing."""
    return _closed(lines, _marked(lines, start), indented)[0]


def _closed(
    lines: Sequence[str], marked: Iterable[tuple[int, str]], indented: bool
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the closed fences, and the closed comments that begin a line, each from first line to last."""
    marks = [
        (number, match[1], match[2])
        for number, line in marked
        if (match := _FENCE.match(line) or _COMMENT.match(line)) and (indented or line[0] != " ")
    ]
    commented = any(run[0] == "<" for _, run, _ in marks)
    ends = [number for number, line in enumerate(lines, 1) if "-->" in line] if commented else []
    # The longest closing run at or after each mark, so that an opening which nothing closes costs one look.
    longest = [{"`": 0, "~": 0, "<": 0}]
    for _, run, info in reversed(marks):
        best = longest[-1]
        if len(run) > best[run[0]] and not info.strip():
            best = {**best, run[0]: len(run)}
        longest.append(best)
    longest.reverse()
    closed: dict[int, int] = {}
    comments: dict[int, int] = {}
    i = 0
    while i < len(marks):
        number, run, info = marks[i]
        i += 1
        if run[0] == "<":
            at = bisect_left(ends, number)
            if at < len(ends):
                comments[number] = ends[at]
                while i < len(marks) and marks[i][0] <= ends[at]:
                    i += 1
            continue
        if longest[i][run[0]] < len(run) or (run[0] == "`" and "`" in info):
            continue
        while not (marks[i][1].startswith(run) and not marks[i][2].strip()):
            i += 1
        closed[number] = marks[i][0]
        i += 1
    return closed, comments


def plain_title(heading: str) -> str:
    """Return the title that a heading has once it is written: "" if it says nothing."""
    titled = heading_title("# " + one_line(clean_text(heading)))
    return titled[1] if titled else ""


@dataclass(frozen=True)
class Document:
    """A Markdown file. Lines count from 1 and include the header, as in an editor."""

    id: str
    lines: tuple[str, ...] = field(repr=False)
    """Physical lines without "\\n"; a CRLF line keeps its "\\r", undecodable bytes are lone surrogates."""
    bom: bool = False
    final_newline: bool = True
    _before: Sequence[Located] = field(default=(), compare=False, repr=False)
    """Entries before an edit, which need not be read again where their line is the same."""

    @classmethod
    def parse(cls, doc_id: str, data: bytes) -> Document:
        """Read any bytes, UTF-8 or not."""
        bom = data.startswith(_BOM)
        text = data[len(_BOM) * bom :].decode("utf-8", "surrogateescape")
        final = text.endswith("\n")
        lines = text.split("\n")
        if final or not text:
            lines.pop()
        if is_signed(doc_id) and not doc_id.startswith("evidence/"):
            # what was last seen of an entry is the same object then
            lines = [intern(line) if line.startswith("- <") else line for line in lines]
        return cls(doc_id, tuple(lines), bom, final)

    @classmethod
    def empty(cls, doc_id: str) -> Document:
        return cls(doc_id, (), final_newline=False)

    def to_bytes(self) -> bytes:
        """Return the bytes it was parsed from, with its edits."""
        text = "\n".join(self.lines) + "\n" * self.final_newline
        return _BOM * self.bom + text.encode("utf-8", "surrogateescape")

    @cached_property
    def header(self) -> Header:
        return read_header(self.lines)

    @cached_property
    def header_end(self) -> int:
        """The last line of the header, found without reading it; 0 if there is none."""
        return header_end(self.lines)

    @cached_property
    def _bare(self) -> tuple[str, ...]:
        """Lines without their "\\r"; the very tuple of `lines` if there is none."""
        if "\r" in "".join(self.lines):
            return tuple(line.removesuffix("\r") for line in self.lines)
        return self.lines

    @cached_property
    def _shown(self) -> tuple[str, ...]:
        """Lines as they are shown; the very tuple of `_bare` where all bytes can be.

        A line that looks signed where no line is gets a backslash, so that nobody takes it for an entry; one
        that was forgotten is empty.
        """
        text = "\n".join(self._bare)
        shown = without_tombstones(sound(text))
        shown = shown if is_signed(self.id) else unsign(shown)
        return self._bare if shown == text else tuple(shown.split("\n"))

    @cached_property
    def _outline(self) -> Outline:
        return _outline(self.id, self._bare, self.header_end)

    @cached_property
    def _scan(self) -> Scan:
        before = vars(self).pop("_before", ())  # needed no more
        return _scan(self.id, self._bare, self.header_end, self._outline, before)

    @cached_property
    def _by_seq(self) -> dict[int, Located]:
        return {place.seq: place for place in self.entries}

    @property
    def title(self) -> str:
        return self._in_header("title")

    @property
    def summary(self) -> str:
        return self._in_header("summary")

    def _in_header(self, key: str) -> str:
        value = self.header.values.get(key, "")
        return one_line(clean_text(value)) if isinstance(value, str) else ""

    @property
    def body(self) -> str:
        """Text after the header, for showing: LF line ends, undecodable bytes as U+FFFD."""
        return self.text(self.header_end + 1, len(self.lines))

    @property
    def entries(self) -> tuple[Located, ...]:
        return self._scan.entries if is_signed(self.id) else ()

    def entry(self, seq: int) -> Located | None:
        """Return the entry with this seq, the last of several."""
        return self._by_seq.get(seq)

    def entries_in(self, start: int, end: int) -> tuple[Located, ...]:
        """Return the entries that have a line among lines `start` to `end`."""
        first = bisect_left(self.entries, start, key=attrgetter("end_line"))
        return self.entries[first : bisect_right(self.entries, end, key=attrgetter("start_line"))]

    @property
    def unsigned(self) -> tuple[ListItem, ...]:
        """List items without signature at column 0: a person's."""
        return self._scan.unsigned

    @property
    def malformed(self) -> tuple[int, ...]:
        return self._scan.malformed

    @property
    def headings(self) -> tuple[Heading, ...]:
        return self._outline.headings

    @property
    def has_prose(self) -> bool:
        """Whether it holds anything but headings, entries, list items at column 0 and blank lines, or has a
        malformed line, or a header that is not ours to edit."""
        return bool(self._scan.prose or self.malformed or not self.header.editable)

    def text_line(self, number: int) -> str:
        """Return line `number` (from 1) for showing, without its end, undecodable bytes as U+FFFD; IndexError
        if there is none."""
        if number < 1:
            raise IndexError(number)
        return self._shown[number - 1]

    def text(self, first: int, last: int) -> str:
        """Return lines `first` to `last` for showing, as `text_line` does."""
        return "\n".join(self._shown[first - 1 : last])

    def path_at(self, number: int) -> tuple[str, ...]:
        """Return the titles of the headings above a line, from the highest; a heading is under itself."""
        at = bisect_right(self.headings, number, key=lambda heading: heading.line)
        return self._outline.paths[at - 1] if at else ()

    @property
    def newline(self) -> str:
        crlf = sum(line.endswith("\r") for line in self.lines)
        return "\r\n" if crlf * 2 > len(self.lines) else "\n"

    def without(self, seqs: Collection[int]) -> Document:
        """Return it without these entries, and without a heading that this left with nothing under it."""
        return self.lacking([place for place in self.entries if place.seq in seqs])

    def lacking(self, places: Sequence[Located]) -> Document:
        """Return it without the lines at these places, and headings as for `without`."""
        gone = {number for place in places for number in range(place.start_line, place.end_line + 1)}
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
        eol, title, end = self.newline[:-1], plain_title(heading).casefold(), len(self.lines)
        new = [part + eol for line in lines for part in line.split("\n")]
        if self.final_newline and not title:
            added = "".join(f"{line}\n" for line in new).encode("utf-8", "surrogateescape")
            return self.grown(Document.parse(self.id, added))
        old, at, titles = list(self.lines), end, [one.title.casefold() for one in self.headings]
        if title in titles and title:
            after = titles.index(title) + 1
            at = self.headings[after].line - 1 if after < len(titles) else end
            while not old[at - 1].strip():
                at -= 1
            if at in self._scan.prose:
                new.insert(0, eol)
        elif title:
            own = (self.title or self.id.rsplit("/", 1)[-1].replace("-", " ")).casefold()
            below = [one.title.casefold() for one in self.headings if one.level == 1] == [own]
            new.insert(0, f"{'##' if below else '#'} {one_line(clean_text(heading))}{eol}")
            if end > self.header_end and old[-1].strip():
                new.insert(0, eol)
        if at == end and old and not self.final_newline:
            old[-1] += eol
        return self._with([*old[:at], *new, *old[at:]], self.final_newline or at == end)

    def grown(self, tail: Document) -> Document:
        """Return it as the file is after the bytes of `tail` were appended, on lines of their own.

        Where those are entries alone, what is known of the lines above them stays known.
        """
        if tail.bom or not self.lines:
            return Document.parse(self.id, self.to_bytes() + tail.to_bytes())
        document = replace(self, lines=self.lines + tail.lines, final_newline=tail.final_newline, _before=())
        added = tail.entries
        extent = sum(place.end_line - place.start_line + 1 for place in added)
        if extent == len(tail.lines) and "_scan" in vars(self):
            path, above = self.path_at(len(self.lines)), len(self.lines)
            moved = [
                replace(p, start_line=p.start_line + above, end_line=p.end_line + above, headings=path)
                for p in added
            ]
            known: dict[str, Any] = {
                "header": self.header,
                "header_end": self.header_end,
                "_outline": self._outline,
                "_scan": self._scan._replace(entries=(*self.entries, *moved)),
            }
            if "_by_seq" in vars(self):
                known["_by_seq"] = self._by_seq | {place.seq: place for place in moved}
            vars(document).update(known)
        return document

    def with_header(self, changes: Mapping[str, str | None]) -> Document:
        """Return it with header keys set to YAML text (`quote`, `flow`) or, with None, removed; a header that
        does not parse, or is another program's, stays. ValueError if a value is not the YAML of one key, or
        the header would pass its bounds."""
        if not self.header.editable:
            return self
        lines, header = edit_header(self.lines, self.header.end, changes, self.newline)
        if tuple(lines) == self.lines:
            return self
        document = self._with(lines, self.final_newline or not self.lines)
        vars(document).update(header=header)
        return document

    def sign(self, signatures: Mapping[int, str]) -> Document:
        """Put signatures on list items, or entries, whose text stays: by the number of a line the entry line
        whose signature it gets. ValueError if there is no list item, or what it gets is no entry."""
        lines = list(self.lines)
        for number, entry_line in signatures.items():
            line = self._bare[number - 1]
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
        start, bare, tail = self.header_end, self._bare, len(self.lines) + 1

        def holds(number: int) -> bool:
            line, is_gone = bare[number - 1], number in gone or number in empty
            return not is_gone and bool(line.strip()) and forgotten_in(line) is None

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
        new, before = tuple(lines), self.entries if "_scan" in vars(self) else ()
        return replace(self, lines=new, final_newline=final_newline and bool(new), _before=before)
