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
from infinimem.markdown.scan import heading_title
from infinimem.model import Turn

_ITEM = re.compile(r" {0,3}(?:[-*+]|(\d{1,9})[.)])(?:\s+(.*)|$)")
_RULE = re.compile(r" {0,3}([-*_=])(?:\s*\1){2,}\s*")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_CLOSER = re.compile(r"\s*(?:```+|~~~+)\s*")
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
    at = _header_end(lines)
    if at:
        skipped["headers"] += 1
    closers = _last_closers(lines)
    block, fence, blank = _Block(), "", False
    number = 0  # of the last numbered item
    inside = 0  # column where the text of the open list item starts; 0 outside of lists
    while at < len(lines):
        line, at = lines[at], at + 1
        if not line.strip() and not fence:
            blank = True
            block.lines.append("")
            continue
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        opener = _FENCE.match(line)
        opens = opener[1] if opener and not fence else ""
        if opens and not any(last >= at and _ends(closer, opens) for closer, last in closers.items()):
            opens = ""  # a fence that nothing closes hides nothing
        heading, item, rule = heading_title(line), _ITEM.fullmatch(line), _RULE.fullmatch(line)
        if item and item[1] and int(item[1]) not in (0, 1, number, number + 1):
            item = None
        if fence or (inside and indent >= inside):
            pass
        elif opens:
            yield block
            block, inside = _Block(), 0
        elif heading or rule or item:
            yield block
            if heading:
                yield _Block([heading[1]], level=heading[0])
            if rule or heading or item is None:
                block, inside, blank = _Block(), 0, False
                continue
            number = int(item[1] or number)
            block, inside = _Block(), item.start(2) if item[2] else indent + 2
            line = item[2] or ""
        elif blank:
            yield block
            block, inside = _Block(), 0
        closed = bool(fence) and _ends(line, fence)
        fence = "" if closed else fence or opens
        block.lines.append(line)
        blank = False
    yield block


def _last_closers(lines: list[str]) -> dict[str, int]:
    """Every fence that could close a code block, and the last line where it stands."""
    return {line.strip(): at for at, line in enumerate(lines) if _CLOSER.fullmatch(line)}


def _ends(fence: str, opened: str) -> bool:
    return fence.strip().startswith(opened) and not fence.strip().strip(opened[0])


def _header_end(lines: list[str]) -> int:
    """How many lines a `---` header at the top takes."""
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() in ("---", "...")), 0)
