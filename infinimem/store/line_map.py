"""A document's line map, and the way back from one version of it to the one before.

A line map has a row a line: `@41` for the entry with that seq or its tombstone, `>text` for any other line.
A diff of two leads back and restores every byte; docs/FORMAT.md has its form (`## Before`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from infinimem.law import Line
from infinimem.markdown.document import Document
from infinimem.markdown.signature import forgotten_in, tombstone

LARGEST_DIFF = 4_000_000
"""Rows of one line map times rows of the other, up to which difflib compares them, for it takes the square.
Of longer line maps all between the first and the last difference counts as changed."""

MARK = "(forgotten)"
"""What stands in a receipt for derived text that could quote what was forgotten."""

_BOM, _UNENDED = "\\bom", "\\no newline"
_NOTHING, _LOST = "nothing", "forgotten"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True)
class Hunk:
    """At row `start` (from 0) of the newer line map: rows that came, and what stood there before."""

    start: int
    came: tuple[str, ...]
    before: tuple[str, ...]


@dataclass(frozen=True)
class Reverse:
    """How a document was before a change. `is_new`: there was none. `is_lost`: a `forget` dropped it."""

    doc_id: str
    is_new: bool
    is_lost: bool
    hunks: tuple[Hunk, ...]


def line_map(document: Document | None, changed: Collection[Line] = ()) -> list[str]:
    """Return the rows; none for no file. Lines that will read otherwise, `changed`, stand in full."""
    if document is None:
        return []
    rows = [f"@{seq}" if (seq := forgotten_in(line)) else f">{line}" for line in document.lines]
    for place in reversed(document.entries):
        if (place.seq, place.entry.line) not in changed:
            end = "\r" * rows[place.end_line - 1].endswith("\r")
            rows[place.start_line - 1 : place.end_line] = [f"@{place.seq}{end}"]
    if document.bom:
        rows.insert(0, _BOM)
    if rows and not document.final_newline:
        rows.append(_UNENDED)
    return rows


def from_line_map(doc_id: str, rows: Iterable[str], lines: Mapping[int, str]) -> Document:
    """Return the document that a line map stands for; raise KeyError if there is no line for a seq."""
    rows = list(rows)
    text = []
    for row in rows:
        if row.startswith("@"):
            seq, end = row[1:].removesuffix("\r"), "\r" * row.endswith("\r")
            text.append(lines[int(seq)] + end)
        elif row.startswith(">"):
            text.append(row[1:])
    data = "\n".join(text) + "\n" * bool(text and _UNENDED not in rows)
    return Document.parse(doc_id, b"\xef\xbb\xbf" * (_BOM in rows) + data.encode("utf-8", "surrogateescape"))


def reading(document: Document, instead: Mapping[int, str]) -> Document:
    """Return the document with other lines in place of those with these seqs."""
    known = {seq: tombstone(seq) for line in document.lines if (seq := forgotten_in(line))}
    known |= {place.seq: place.entry.line for place in document.entries} | dict(instead)
    return from_line_map(document.id, line_map(document), known)


def reverse_diff(
    doc_id: str, old: Document | None, new: Document | None, changed: Collection[Line] = ()
) -> list[str]:
    """Return the lines of a diff from `new` back to `old`, of which `changed` lines read otherwise."""
    if old is None:
        return [f"--- {doc_id} (after)", f"+++ {_NOTHING}"]
    now, then = f"{doc_id} (after)" if new else _NOTHING, f"{doc_id} (before)"
    rows, before = line_map(new), line_map(old, changed)
    diff: list[str] = []
    for i1, i2, j1, j2 in _changes(rows, before):
        diff.append(f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@")
        diff += [*(f"-{row}" for row in rows[i1:i2]), *(f"+{row}" for row in before[j1:j2])]
    return [f"--- {now}", f"+++ {then}", *diff] if diff or not new else []  # of an empty file only its name


def _range(start: int, end: int) -> str:
    return str(end) if end - start == 1 else f"{start + (end > start)},{end - start}"


def _changes(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Give which rows `[0]:[1]` of the one list stand where rows `[2]:[3]` of the other do, in order."""
    shortest = min(len(one), len(other))
    head = next((n for n in range(shortest) if one[n] != other[n]), shortest)
    tail = next((n for n in range(shortest - head) if one[-1 - n] != other[-1 - n]), shortest - head)
    end, other_end = len(one) - tail, len(other) - tail
    if (end - head) * (other_end - head) > LARGEST_DIFF:
        yield head, end, head, other_end
        return
    matcher = difflib.SequenceMatcher(None, one[head:end], other[head:other_end])
    for kind, *bounds in matcher.get_opcodes():
        if kind != "equal":
            i1, i2, j1, j2 = (head + bound for bound in bounds)
            yield i1, i2, j1, j2


def lost(doc_id: str) -> list[str]:
    """Return what stands in place of a diff that a `forget` dropped."""
    return [f"--- {doc_id} (after)", f"+++ {_LOST}"]


def parts(lines: Sequence[str]) -> list[Sequence[str]]:
    """Return the lines of several diffs, those of each document apart."""
    heads = [
        number
        for number, (line, after) in enumerate(pairwise(lines))
        if line.startswith("--- ") and after.startswith("+++ ")
    ]
    return [lines[start:end] for start, end in pairwise([*heads, len(lines)])]


def name_of(part: Sequence[str]) -> str:
    now, then = part[0][4:], part[1][4:]
    return (then if now == _NOTHING else now).rpartition(" (")[0]


def parse_reverse(part: Sequence[str]) -> Reverse:
    """Read the diff of a document back; pass over what is none."""
    then = part[1][4:]
    hunks: list[tuple[int, list[str]]] = []  # where each starts, and its rows
    inside = False
    for line in part:
        if match := _HUNK.match(line):
            hunks.append((int(match[1]) - (int(match[2] or 1) > 0), []))
            inside = True
        elif inside and line[:2] in ("->", "+>", "-@", "+@", "-\\", "+\\"):
            hunks[-1][1].append(line)
        else:
            inside = False

    def side(mark: str, rows: Iterable[str]) -> tuple[str, ...]:
        return tuple(row[1:] for row in rows if row[0] == mark)

    parsed = tuple(Hunk(start, side("-", rows), side("+", rows)) for start, rows in hunks)
    return Reverse(name_of(part), then == _NOTHING, then == _LOST, parsed)


def reverted(reverse: Reverse, rows: Sequence[str]) -> list[str] | None:
    """Return the line map before a change; None if someone changed those very rows since."""
    left = list(rows)
    shift = 0
    for hunk in reverse.hunks:
        at = _place(left, hunk, hunk.start + shift)
        if at is None:
            return None
        left[at : at + len(hunk.came)] = hunk.before
        shift = at - hunk.start + len(hunk.before) - len(hunk.came)
    return left


def _place(rows: Sequence[str], hunk: Hunk, at: int) -> int | None:
    """Return where the rows that came stand: where they should, or in the one other place."""
    size = len(hunk.came)
    if _alike(rows[at : at + size], hunk.came):
        return min(at, len(rows))
    places = [n for n in range(len(rows) - size + 1) if _alike(rows[n : n + size], hunk.came)]
    return places[0] if len(places) == 1 else None


def _alike(rows: Sequence[str], came: Sequence[str]) -> bool:
    """Return whether these are the rows that came; what a `forget` took out may read as it likes."""
    return len(rows) == len(came) and all(
        row == one or (one.endswith(MARK) and row.startswith(one.removesuffix(MARK)))
        for row, one in zip(rows, came, strict=True)
    )
