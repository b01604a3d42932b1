"""What each line of a document's body is: heading, entry, a person's list item, prose. One linear pass.

Knows Markdown just far enough: ATX headings, fences, list items at column 0. Knows nothing of headers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from infinimem.markdown.characters import sound
from infinimem.markdown.signature import looks_signed, parse_entry
from infinimem.model import Located

MAX_ORIGINS = 1_000_000
"""Most origin seqs that the entries of one document may name together; what goes beyond is malformed."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]++(.*))?\Z", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)\Z", re.DOTALL)
_ITEM = re.compile(r"[-*+][ \t]++(?=[^ \t])")
_RULE = re.compile(r"([-*])(?:[ \t]*+\1){2,}+[ \t]*+\Z")  # a thematic break such as `* * *`


@dataclass(frozen=True)
class Heading:
    """An ATX heading; `line` counts from 1."""

    line: int
    level: int
    title: str


@dataclass(frozen=True)
class Item:
    """A list item at column 0 without a signature: a person's."""

    line: int
    text: str


@dataclass(frozen=True)
class Scan:
    """What stands in a body, each in order of lines."""

    entries: tuple[Located, ...]
    unsigned: tuple[Item, ...]
    malformed: tuple[int, ...]
    headings: tuple[Heading, ...]
    prose: tuple[int, ...]
    """Lines that are none of these and not blank."""


def heading_title(line: str) -> tuple[int, str] | None:
    """Level and title of an ATX heading line, or None."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = (match[2] or "").strip(" \t")
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare.rstrip(" \t")
    return len(match[1]), sound(title)


def item_start(line: str) -> int:
    """Where the text of the list item at column 0 begins in `line`; 0 if it is none."""
    match = _ITEM.match(line)
    return 0 if match is None or _RULE.match(line) else match.end()


def scan(doc_id: str, lines: Sequence[str], start: int) -> Scan:
    """Read a body.

    Args:
        doc_id: evidence documents alone have continuation lines.
        lines: all physical lines of the document, without line ends.
        start: number of lines of the header, which are passed over.
    """
    continued = doc_id.startswith("evidence/")
    fences = _fences(lines, start, indented=not continued)
    entries: list[Located] = []
    unsigned: list[Item] = []
    malformed: list[int] = []
    headings: list[Heading] = []
    prose: list[int] = []
    levels: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    origins = 0
    at = start
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        if at - 1 in fences:
            prose.extend(range(number, fences[at - 1] + 1))
            at = fences[at - 1]
            continue
        if not line or line.isspace():
            continue
        if line[0] in "-*+":
            if looks_signed(line):
                end = _end_of_entry(lines, at) if continued else at
                entry = parse_entry("\n".join(lines[at - 1 : end])) if origins < MAX_ORIGINS else None
                if entry is None:
                    malformed.append(number)
                else:
                    origins += len(entry.origin)
                    entries.append(Located(entry, doc_id, number, end, path))
                    at = end
                continue
            if text_at := item_start(line):
                unsigned.append(Item(number, sound(line[text_at:])))
                continue
            if line.rstrip(" \t") in ("-", "*", "+"):
                continue  # an empty item: nothing to sign, nothing to lose
        elif line[0] in "# " and (heading := heading_title(line)):
            level, title = heading
            while levels and levels[-1][0] >= level:
                levels.pop()
            levels.append(heading)
            path = tuple(name for _, name in levels)
            headings.append(Heading(number, level, title))
            continue
        prose.append(number)
    return Scan(tuple(entries), tuple(unsigned), tuple(malformed), tuple(headings), tuple(prose))


def _end_of_entry(lines: Sequence[str], at: int) -> int:
    """Index after the last continuation; blank lines count when an indented line follows."""
    end = at
    while at < len(lines):
        if lines[at].startswith("  "):
            end = at + 1
        elif lines[at] and not lines[at].isspace():
            break
        at += 1
    return end


def _fences(lines: Sequence[str], start: int, indented: bool) -> dict[int, int]:
    """Closed fences: index of the opening line to the index after the closing one.

    A fence that nothing closes is no fence, so a stray ``` cannot hide what follows.
    """
    marks: list[tuple[int, str, str]] = []
    for at in range(start, len(lines)):
        line = lines[at]
        if "```" not in line and "~~~" not in line:
            continue
        if (match := _FENCE.match(line)) and (indented or line[0] != " "):
            marks.append((at, match[1], match[2]))
    # The longest closing run at or after each mark, so that an opening which nothing closes costs one look.
    longest: list[dict[str, int]] = [{"`": 0, "~": 0}]
    for _, run, info in reversed(marks):
        best = longest[-1]
        if not info.strip() and len(run) > best[run[0]]:
            best = {**best, run[0]: len(run)}
        longest.append(best)
    longest.reverse()
    fences: dict[int, int] = {}
    i = 0
    while i < len(marks):
        at, run, info = marks[i]
        i += 1
        if (run[0] == "`" and "`" in info) or longest[i][run[0]] < len(run):
            continue
        while not (marks[i][1][0] == run[0] and len(marks[i][1]) >= len(run) and not marks[i][2].strip()):
            i += 1
        fences[at] = marks[i][0] + 1
        i += 1
    return fences
