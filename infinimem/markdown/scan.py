"""What each line of a document's body is: heading, entry, a person's list item, prose. One linear pass.

Knows Markdown just far enough: headings, fences, comments, list items at column 0. Knows nothing of headers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infinimem.markdown.characters import clean_text, one_line, sound
from infinimem.markdown.signature import forgotten_in, looks_signed, parse_entry
from infinimem.model import CURRENT, Located
from infinimem.spec import folders

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


@dataclass(frozen=True)
class Heading:
    """A heading; `line` counts from 1, and an underline makes `rows` 2."""

    line: int
    level: int
    title: str
    rows: int = 1


@dataclass(frozen=True)
class ListItem:
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


@dataclass(frozen=True)
class Scan:
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
    """Return where the text of the list item at column 0 begins in `line`; 0 if it is none.

    A task (`- [ ] call Bo`) is none: a signature would take its checkbox away.
    """
    match = _ITEM.match(line)
    if match is None or _TASK.match(line, match.end()):
        return 0
    return 0 if line[match.end()] == line[0] and _RULE.match(line) else match.end()


def is_signed(doc_id: str) -> bool:
    """Tell whether lines of this document may be entries: the program writes it, no person or model."""
    return doc_id == CURRENT or doc_id.startswith(folders().owned)


def scan(
    doc_id: str, lines: Sequence[str], start: int, parts: Outline, before: Sequence[Located] = ()
) -> Scan:
    """Read a body.

    Args:
        doc_id: evidence documents alone have continuation lines; in whole files, which are records or a
            model's own, what looks like an entry or a person's item is neither; in notes no line is an entry.
        lines: all physical lines of the document, without line ends.
        start: number of lines of the header, which are passed over.
        parts: their `outline`.
        before: what stood in the document before an edit; such lines need not be parsed again.
    """
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


def outline(doc_id: str, lines: Sequence[str], start: int) -> Outline:
    """Return the outline of a body; arguments as for `scan`."""
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
    """Return the closed fences, the closing line by the opening one: a stray ``` hides nothing.

    Args:
        lines: all lines of a document.
        start: how many of them to pass over.
        indented: whether a fence may be indented, by up to three spaces.
    """
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
