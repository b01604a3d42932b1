"""Pattern search over the lines of documents, in time linear in the text whatever the pattern.

Patterns come from models and clients: they run in RE2 or as literals, never in `re`. It knows lines,
nothing of entries. packed_grep.py does the same over the packed text of a large library.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from infinimem.markdown.characters import sound
from infinimem.markdown.document import Document

MAX_PATTERN = 1000
MAX_STEPS = 200_000_000
"""Instructions of a pattern times bytes of text that are searched at once: where RE2 runs out of states it
takes that many steps."""
MAX_WORK = 3_000_000_000
"""Nanoseconds that a large pattern may take in one search."""
LARGE = 500
"""Instructions; beyond it a pattern may run out of states, and its time is rationed."""

_APART = re.compile(r"\\[AzC]|\(\?[a-zA-Z]*-")
"""What means something else in a whole text, or may: such a pattern is looked for line by line."""

_PART = "the pattern is too large for so much text; a part was searched"

_OTHER_FORMS = ("\u017f".encode(), "\u212a".encode())
"""A long s and a Kelvin sign: without case they are an s and a k."""
_DENSE = 200
"""Lines of a chunk that are found one by one before the others are counted."""

_META = re.compile(r"[\\.^$|?*+()\[{]")

Search = Callable[[Any, int, int], tuple[int, int]]
"""From a text and two offsets in it, where a match begins and ends; -1 where there is none."""


@dataclass(frozen=True)
class Match:
    """A line in which the pattern occurs; lines count from 1."""

    document: Document
    line: int


@dataclass(frozen=True)
class Found:
    """How many lines match, and the first of them by document and line."""

    total: int
    first: list[Match]


@dataclass
class Pattern:
    """A pattern ready for one search; `notes` says where it is not used as it was written."""

    line: Any
    """Compiled for a line."""
    text: Any
    """Compiled for a whole text, where it finds no line end; None where that would mean something else."""
    notes: list[str] = field(default_factory=list)
    ignore_case: bool = True
    literal: bytes | None = None
    """What the pattern is, if it is plain ASCII; lower-cased where case does not count."""
    left: int = MAX_WORK
    """Nanoseconds that a large pattern may still take in this search."""

    @property
    def is_rationed(self) -> bool:
        """Whether its time is counted; plain text never runs out of states."""
        return self.literal is None and bool(self.line.programsize > LARGE)

    @property
    def reach(self) -> int:
        """Bytes that may be searched at once."""
        reach: int = min(self.left, MAX_STEPS) // max(self.line.programsize, 1)
        return reach

    @property
    def is_spent(self) -> bool:
        """Whether a rationed pattern has no more time."""
        if self.is_rationed and self.reach < 1:
            self._say_part()
            return True
        return False

    def lines(self, text: bytes) -> Iterator[int]:
        """The offset of each matching line, or of a place in it; every line of `text` ends with "\\n"."""
        if self.text is None or (self.is_rationed and self.reach < len(text)):
            yield from self._one_by_one(text, 0, len(text))
            return
        search, at = spans(self.text), 0
        while at < len(text):
            end = len(text) if len(text) - at <= self.reach else text.rfind(b"\n", at, at + self.reach) + 1
            if end:
                yield from self._in_lines(search, text, at, end)
            else:
                end = text.find(b"\n", at) + 1 or len(text)
                yield from self._one_by_one(text, at, end)
            at = end

    def scan(self, text: bytes, most: int) -> tuple[int, list[int]]:
        """How many lines match, and where the first `most` of them do; as `lines`."""
        found = self.lines(text)
        first = list(islice(found, max(most, _DENSE)))
        if len(first) < max(most, _DENSE):
            return len(first), first[:most]
        if self.literal is None or (self.ignore_case and any(form in text for form in _OTHER_FORMS)):
            return len(first) + sum(1 for _ in found), first[:most]
        # A word in every other line is counted faster than RE2 finds it.
        count, at = len(first), text.find(b"\n", first[-1])
        text = text.lower() if self.ignore_case else text
        while (at := text.find(self.literal, at)) >= 0:
            count, at = count + 1, text.find(b"\n", at)
        return count, first[:most]

    def _in_lines(self, search: Search, text: bytes, at: int, end: int) -> Iterator[int]:
        while at < end:
            began = self._now()
            start, stop = search(text, at, end - 1)
            done = end if start < 0 else text.find(b"\n", stop) + 1 or end
            self._spend(began)
            if start < 0:
                return
            yield start
            at = done

    def _one_by_one(self, text: bytes, at: int, end: int) -> Iterator[int]:
        while at < end and not self.is_spent:
            done = text.find(b"\n", at) + 1 or end
            if self.matches(text[at : done - 1]):
                yield at
            at = done

    def matches(self, line: bytes) -> bool:
        """Whether the pattern occurs in a line; of an endless one only a part is looked at."""
        reach = self.reach
        if reach < len(line):
            self._say_part()
        began = self._now()
        found = self.line.search(line[:reach]) is not None
        self._spend(began)
        return found

    def found(self, text: str) -> list[str]:
        """What of a line of text it matches, in order; of an endless one only a part is looked at."""
        data = text.encode("utf-8", "surrogateescape")
        if not self.matches(data):
            return []
        places = self.line.finditer(data[: self.reach])
        return [place.group().decode("utf-8", "surrogateescape") for place in places]

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the text was searched."""
        return _PART in self.notes

    def _say_part(self) -> None:
        if not self.is_partial:
            self.notes.append(_PART)

    def _now(self) -> int:
        return time.thread_time_ns() if self.is_rationed else 0

    def _spend(self, began: int) -> None:
        if self.is_rationed:
            self.left -= time.thread_time_ns() - began


def spans(expression: Any) -> Search:
    """A search with an expression.

    It asks what the package's `search` asks, which takes three times as long to tell of it.
    """
    import re2

    try:
        match, anywhere = expression._regexp.Match, re2._Anchor.UNANCHORED
    except AttributeError:  # another version of the package

        def slower(text: Any, start: int, end: int) -> tuple[int, int]:
            found = expression.search(text, start, end)
            return (-1, -1) if found is None else found.span()

        return slower
    return lambda text, start, end: match(anywhere, text, start, end)[0]


def compile_pattern(pattern: str, ignore_case: bool = True) -> Pattern:
    """Prepare a pattern.

    Args:
        pattern: RE2 syntax; what RE2 refuses is searched for as it stands.
        ignore_case: whether upper and lower case are the same.
    """
    import re2

    pattern = pattern.encode("utf-8", "replace").decode()
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.never_capture = True
    notes = []
    literal = len(pattern) > MAX_PATTERN
    if literal:
        notes = [f"the pattern is longer than {MAX_PATTERN} characters; it was searched for literally"]
    else:
        try:
            re2.compile(pattern, options)
        except re2.error as error:
            literal = True
            reason = error.args[0] if error.args else error
            reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            notes = [f"not a pattern that RE2 knows ({reason}); it was searched for literally"]
    options.literal = literal
    line = re2.compile(pattern, options)
    options.never_nl = True
    text = None if not literal and _APART.search(pattern) else pattern if literal else f"(?m){pattern}"
    text = None if text is None else re2.compile(text, options)
    whole = pattern if (literal or not _META.search(pattern)) and "\n" not in pattern else ""
    plain = (whole.lower() if ignore_case else whole).encode() if whole.isascii() else b""
    return Pattern(line, text, notes, ignore_case, plain or None)


def text_of(document: Document) -> bytes:
    """The lines of a document as they are shown (`Document.text_line`), each ended by "\\n"."""
    if not document.lines:
        return b""
    joined = "\n".join((*document.lines, ""))
    try:
        text = joined.encode()
    except UnicodeEncodeError:
        text = sound(joined).encode()
    return text.replace(b"\r\n", b"\n") if b"\r" in text else text


def first_matches(documents: Iterable[Document], pattern: Pattern, most: int) -> Found:
    """The first lines that match, header lines included, by document and line, and the number of all.

    Args:
        documents: in the order in which they are searched.
        pattern: what is looked for.
        most: how many are wanted; all are counted.
    """
    total, found = 0, list[Match]()
    for document in documents:
        if pattern.is_spent:
            break
        text = text_of(document)
        count, places = pattern.scan(text, most - len(found))
        total += count
        number, before = 1, 0
        for at in places:
            number += text.count(b"\n", before, at)
            before = at
            found.append(Match(document, number))
    return Found(total, found)
