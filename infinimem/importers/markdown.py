"""Markdown and plain text: a turn for each list item (with what is nested in it), paragraph and code block.

A heading is context: "peanuts" below "Allergies" becomes "Allergies: peanuts". docs/IMPORTS.md says more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from infinimem.importers.fields import ATTACHED, MARKS, ROLES, Skipped, as_name, day_of, day_of_header, is_day
from infinimem.markdown.document import fences, heading_title
from infinimem.markdown.header import read_header
from infinimem.model import Turn

_ITEM = re.compile(r" {0,3}(?:[-*+]|(\d{1,9})[.)])(?:\s+(.*)|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_RULE = re.compile(r" {0,3}([-*_=])(?:\s*\1){2,}\s*")
_MARK = re.compile(r"[*_]{0,2}([A-Za-z]+)(?:[*_]{0,2}:[*_]{0,2}|[*_]{2})\s*")
_BOLD = re.compile(r"(\*\*|__)(?=\S)([^\n*_.!?]{1,60}?):?\1:?")
_CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`)", re.DOTALL)
_EMBED = re.compile(r"!\[\[([^\[\]|\n]+)[^\[\]\n]*\]\]")
_LINK = re.compile(r"\[\[(?=\S)([^\[\]|\n]+)(?:\|([^\[\]\n]+))?\]\]")
_BLOCK_ID = re.compile(r"[ \t]\^[0-9a-f]{6}$", re.MULTILINE)
_NO_CONTEXT = ("observations", "relations")  # headings of basic-memory's notes that say nothing
_UNSAID = ("title", "permalink", "id", "cssclass", "cssclasses", "publish")  # keys of headers, so too


@dataclass
class _Block:
    """Lines that make one turn; `level` is 1-6 for a heading, `marked` an item of a list."""

    lines: list[str] = field(default_factory=list)
    level: int = 0
    marked: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n").rstrip()


def turns(
    text: str,
    stem: str,
    skipped: Skipped,
    title: str | None = None,
    time: str | None = None,
    role: str = "user",
) -> Iterator[Turn]:
    """Yield the turns of a document in session `stem`; `title` and `time` hold if it tells no other."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    header = read_header(lines)
    skipped["headers"] += bool(header.end and header.problem)
    values = {key: value for key, value in header.values.items() if key.casefold() not in _UNSAID}
    titles = (value for key, value in header.values.items() if key.casefold() == "title")
    title = as_name(next(titles, None)) or title
    in_name = day_of(stem.rpartition("/")[2]) or day_of(stem)
    in_header, key = day_of_header(values)
    values.pop(key or "", None)
    dated = in_name or in_header or day_of(title or "") or time
    blocks = [block for block in _blocks(lines, header.end, skipped) if block.text]
    times = _times(blocks, dated)
    if {"user", "assistant"} <= {_mark(block)[0] for block in blocks}:
        for block, time in zip(blocks, times, strict=True):
            marked, after = _mark(block)
            role = marked or role
            if (words := block.text[after:]).strip():
                yield Turn(words, role, time=time, session=stem)
        return
    above: list[tuple[int, str | None]] = [(0, title)]  # levels and words, the title of the note first
    if said := _said(values):
        yield Turn(_below(above, said), role, time=dated, session=stem)
    for block, following, time in zip(blocks, [*blocks, _Block(level=1)][1:], times, strict=True):
        words, level = _heading(block)
        if level:
            above = [one for one in above if one[0] < level]
            words = _plain(words, skipped)
            if 0 < _heading(following)[1] <= level:
                yield Turn(_below(above, words), role, time=time, session=stem)
            above.append((level, words))
        elif MARKS["obsidian query"].match(words):
            skipped["queries of notes"] += 1
        elif title and (relation := MARKS["basic-memory relation"].fullmatch(words)):
            words = f"{title} {relation[1].replace('_', ' ')} {_plain(relation[2], skipped)}"
            yield Turn(words, role, time=time, session=stem)
        elif words := _plain(words, skipped).strip("\n").rstrip():
            yield Turn(_below(above, words), role, time=time, session=stem)


def _times(blocks: list[_Block], dated: str | None) -> list[str | None]:
    """Return when each block was written: a heading's date holds until the next one that is as high."""
    times = []
    time, dated_at = dated, 0
    for block in blocks:
        words, level = _heading(block)
        if level and (date := day_of(words)):
            time, dated_at = date, level
        elif 0 < level <= dated_at:
            time, dated_at = dated, 0
        times.append(time)
    return times


def _below(above: list[tuple[int, str | None]], words: str) -> str:
    """Set what words are about before them; a block of lines starts on its own."""
    path: dict[str, str] = {}
    for _, title in above:
        if title and not is_day(title) and title.casefold() not in _NO_CONTEXT:
            path.setdefault(title.casefold(), title.rstrip(":"))
    if not path or not words:
        return words
    return " › ".join(path.values()) + (":\n" if words[0] in "`~|>" else ": ") + words


def _heading(block: _Block) -> tuple[str, int]:
    """Return the words and the level of a heading; a paragraph that is one bold phrase is one, too."""
    bold = None if block.level or block.marked else _BOLD.fullmatch(block.text)
    return (bold[2].rstrip(":"), 7) if bold else (block.text, block.level)


def _plain(text: str, skipped: Skipped) -> str:
    """Show links between notes as their words, and what is embedded by its name; code as it stands."""
    if "[[" not in text and " ^" not in text:
        return text
    parts = _CODE.split(text)
    if len(parts) == 1 and not _EMBED.sub("", text).strip():
        skipped[ATTACHED] += 1
        return ""
    for at in range(0, len(parts), 2):
        named = _EMBED.sub(lambda embed: f"[{embed[1]}]", _BLOCK_ID.sub("", parts[at]))
        parts[at] = _LINK.sub(_label, named)
    return "".join(parts)


def _label(link: re.Match[str]) -> str:
    return link[2] or link[1].strip("#").replace("#", " > ")


def _said(values: Mapping[str, object]) -> str:
    """Write a header as a line, "tags: work, rowing; born: 1990-03-02", of the keys that hold words."""
    said = {}
    for key, value in values.items():
        listed = value if isinstance(value, list) else [value]
        if not any(isinstance(one, dict | list) for one in listed):
            said[key] = ", ".join(_LINK.sub(_label, str(one)) for one in listed)
    if said.get("type") in ("note", "topic"):  # words for any note: basic-memory's, and infinimem's own
        del said["type"]
    return "; ".join(f"{key}: {value}" for key, value in said.items() if value.strip())


def _mark(block: _Block) -> tuple[str | None, int]:
    """Return the role that a block's first word names, and how many characters the mark takes."""
    if block.level and (role := ROLES.get(block.text.strip(":").lower())):
        return role, len(block.text)
    match = _MARK.match(block.text)
    role = ROLES.get(match[1].lower()) if match else None
    return (role, match.end()) if match and role else (None, 0)


def _blocks(lines: list[str], start: int, skipped: Skipped) -> Iterator[_Block]:
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
        if (under := _UNDERLINE.fullmatch(line)) and len(block.lines) == 1 and not (block.marked or blank):
            yield replace(block, level=1 if under[1][0] == "=" else 2)
            block = _Block()
            continue
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
            block.marked = True
            number = int(item[1] or number)
            inside = item.start(2) if item[2] else indent + 2
            line = item[2] or ""
        elif blank or at in closed:
            yield block
            block, inside = _Block(), 0
        fenced, blank = closed.get(at, 0), False
        if ":" in line and MARKS["logseq property"].fullmatch(line.strip()):
            skipped["properties of blocks"] += 1
        else:
            block.lines.append(line)
    yield block
