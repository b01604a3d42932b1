"""Markdown and plain text: a turn for each heading, list item (with what is nested in it) and paragraph.

Text is kept as it stands, without the list marker ("1986. A good year" begins no list and keeps its year).
A heading is a turn too, because "peanuts" means little without the "Allergies" above it; a date in a
heading or in the file's name dates what stands below. Where paragraphs begin with `User:` and `Assistant:`
the file is read as a transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from infinimem.importers.fields import ROLES, Skipped, iso
from infinimem.markdown.header import header_end
from infinimem.markdown.scan import fences, heading_title
from infinimem.model import Turn

_ITEM = re.compile(r" {0,3}(?:[-*+]|(\d{1,9})[.)])(?:\s+(.*)|$)")
_RULE = re.compile(r" {0,3}([-*_=])(?:\s*\1){2,}\s*")
_DATE = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
_MARK = re.compile(r"[*_]{0,2}([A-Za-z]+)(?:[*_]{0,2}:[*_]{0,2}|[*_]{2})\s*")


@dataclass
class _Block:
    """Lines that make one turn. `level`: 1-6 for a heading, 0 otherwise."""

    lines: list[str] = field(default_factory=list)
    level: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n").rstrip()


def turns(text: str, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The turns of a document.

    Args:
        text: the whole of it.
        stem: name of the file, which becomes the session.
        skipped: counts what is left out.
    """
    blocks = [block for block in _blocks(text, skipped) if block.text]
    is_transcript = {"user", "assistant"} <= {_mark(block)[0] for block in blocks}
    role, time, dated_at = "user", _date(stem), 0
    for block in blocks:
        words = block.text
        if block.level:
            if date := _date(words):
                time, dated_at = date, block.level
            elif block.level <= dated_at:
                time, dated_at = _date(stem), 0
        if is_transcript:
            marked, after = _mark(block)
            role = marked or role
            words = words[after:]
        if words.strip():
            yield Turn(text=words, role=role, time=time, session=stem)


def _date(text: str) -> str | None:
    match = _DATE.search(text)
    return iso(match[0]) if match else None


def _mark(block: _Block) -> tuple[str | None, int]:
    """The role that a block's first word names, and how many characters the mark takes."""
    text = block.text
    if block.level and text.strip(":").lower() in ROLES:
        return ROLES[text.strip(":").lower()], len(text)
    match = _MARK.match(text)
    role = ROLES.get(match[1].lower()) if match else None
    return (role, match.end()) if match and role else (None, 0)


def _blocks(text: str, skipped: Skipped) -> Iterator[_Block]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    start = header_end(lines)
    skipped["headers"] += bool(start)
    closed = fences(lines, start, indented=True)
    block, blank = _Block(), False
    number = 0  # of the last numbered item
    inside = 0  # column where the text of the open list item starts; 0 outside of lists
    fenced = 0  # last line of the open code block
    for at, line in enumerate(lines[start:], start + 1):
        if at <= fenced or not line.strip():
            blank = at > fenced
            block.lines.append(line if at <= fenced else "")
            continue
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        heading, item, rule = heading_title(line), _ITEM.fullmatch(line), _RULE.fullmatch(line)
        if item and item[1] and int(item[1]) not in (0, 1, number, number + 1):
            item = None
        if inside and indent >= inside:
            pass
        elif at not in closed and (heading or rule or item):
            yield block
            if heading:
                yield _Block([heading[1]], level=heading[0])
            block, inside = _Block(), 0
            if rule or heading or item is None:
                blank = False
                continue
            number = int(item[1] or number)
            inside = item.start(2) if item[2] else indent + 2
            line = item[2] or ""
        elif blank or at in closed:
            yield block
            block, inside = _Block(), 0
        fenced, blank = closed.get(at, 0), False
        block.lines.append(line)
    yield block
