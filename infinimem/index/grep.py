"""Pattern search over the lines of documents, in time linear in the text whatever the pattern.

Patterns come from models and clients: they run in RE2 or as literals, never in `re`. It knows lines,
nothing of entries. text.py does the same over the text of a large library.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from infinimem.errors import UsageError
from infinimem.markdown.characters import sound
from infinimem.markdown.document import Document

MAX_PATTERN = 1000
MAX_PROGRAM = 10_000
"""Instructions of a compiled pattern; counted repeats within each other multiply."""
MAX_SECONDS, PACE, PER_LINE = 2, 10, 2000
"""CPU time that one search may take beyond so many nanoseconds a byte and a line that matches, which no
ordinary pattern needs."""
MAX_STEPS = 250_000_000
"""Instructions times bytes of text that are searched at once, for RE2 cannot be stopped: about a second where
it runs out of states."""

AS_IT_STANDS = "nothing matches it as a pattern; it was searched for literally"
SMALLER = "smaller counts in {…}, fewer of them within each other, or plain text"
TOO_LARGE = f"the pattern is too large (over {MAX_PROGRAM} instructions); use {SMALLER}"
_APART = re.compile(r"\\[AzC]|\(\?[a-zA-Z]*-")
"""What means something else in a whole text, or may: such a pattern is looked for line by line."""

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
    left: int = MAX_SECONDS * 10**9
    """Nanoseconds that this search may still take."""

    def lines(self, text: bytes) -> Iterator[int]:
        """The offset of each matching line, or of a place in it; every line of `text` ends with "\n".

        Raises:
            UsageError: the search takes too long.
        """
        search, at = spans(self.text or self.line), 0
        reach = self.reach if self.text else 1
        while at < len(text):
            end = text.rfind(b"\n", at, at + reach) + 1 or text.find(b"\n", at) + 1 or len(text)
            began = self._begin(end - at)
            for place in _in_lines(search, text[at : end - 1]):
                yield at + place
                self.left += PER_LINE
            self._spend(began, end - at)
            at = end

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where in a line of text it matches: begin and end of each place, in order.

        Raises:
            UsageError: the search takes too long.
        """
        data = text.encode("utf-8", "surrogateescape")
        began, read, at = self._begin(len(data)), 0, 0
        for place in self.line.finditer(data):
            span = []
            for end in place.span():
                at, read = at + len(data[read:end].decode("utf-8", "surrogateescape")), end
                span.append(at)
            yield span[0], span[1]
            began = self._spend(began, 0)
        self._spend(began, len(data))

    def found(self, text: str) -> list[str]:
        """What of a line of text it matches, in order."""
        return [text[start:end] for start, end in self.places(text)]

    @property
    def is_expression(self) -> bool:
        """Whether it means more than what stands there."""
        return self.literal is None and not self.notes and _META.search(self.line.pattern) is not None

    @property
    def reach(self) -> int:
        """Bytes that may be searched at once."""
        return 1 << 62 if self.literal else MAX_STEPS // max(int(self.line.programsize), 1)

    def _begin(self, size: int) -> int:
        """The time at which a search of so many bytes begins."""
        if size > self.reach:
            raise UsageError(f"the pattern is too large for a line of {size} bytes; use {SMALLER}")
        return time.thread_time_ns()

    def _spend(self, began: int, size: int) -> int:
        """Book the time since then; now."""
        now = time.thread_time_ns()
        self.left -= now - began - PACE * size
        if self.left < 0:
            raise UsageError(f"the pattern takes more than {MAX_SECONDS} s to search for; use {SMALLER}")
        return now


def _in_lines(search: Search, text: bytes) -> Iterator[int]:
    """A place in each line of a text that matches."""
    at = 0
    while at <= len(text) and (place := search(text, at, len(text)))[0] >= 0:
        yield place[0]
        at = text.find(b"\n", place[1]) + 1 or len(text) + 1


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


def compile_pattern(pattern: str, ignore_case: bool = True, literal: bool = False) -> Pattern:
    """Prepare a pattern.

    Args:
        pattern: RE2 syntax; what RE2 refuses is searched for as it stands.
        ignore_case: whether upper and lower case are the same.
        literal: search for it as it stands.

    Raises:
        UsageError: it is too large.
    """
    import re2

    pattern = pattern.encode("utf-8", "replace").decode()
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.never_capture = True
    notes = [AS_IT_STANDS] if literal else []
    if len(pattern) > MAX_PATTERN:
        literal = True
        notes = [f"the pattern is longer than {MAX_PATTERN} characters; it was searched for literally"]
    elif not literal:
        try:
            re2.compile(pattern, options)
        except re2.error as error:
            literal = True
            reason = error.args[0] if error.args else error
            reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            if "too large" in str(reason):
                raise UsageError(TOO_LARGE) from None
            notes = [f"not a pattern that RE2 knows ({reason}); it was searched for literally"]
    options.literal = literal
    line = re2.compile(pattern, options)
    if line.programsize > MAX_PROGRAM:
        raise UsageError(TOO_LARGE)
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
        text = text_of(document)
        places = [*pattern.lines(text)]
        total += len(places)
        number, before = 1, 0
        for at in places[: most - len(found)]:
            number += text.count(b"\n", before, at)
            before = at
            found.append(Match(document, number))
    return Found(total, found)
