"""Pattern search over the lines of documents, in time linear in the text whatever the pattern.

Patterns come from models and clients: they run in RE2 or as literals, never in `re`. It knows lines,
nothing of entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from infinimem.markdown.document import Document

MAX_PATTERN = 1000
MAX_WORK = 200_000_000
"""Instructions of a pattern times bytes of text: where RE2 runs out of states it takes that many steps."""
LARGE = 500
"""Instructions; beyond it a pattern is counted on to run out of states, and its steps are rationed."""


@dataclass(frozen=True)
class Match:
    """A line in which the pattern occurs; lines count from 1."""

    document: Document
    line: int


@dataclass
class Pattern:
    """A pattern ready for one search; `notes` says where it is not used as it was written."""

    line: Any
    """Compiled for a line."""
    text: Any
    """Compiled for a whole text, where that means the same: spares looking at each line."""
    notes: list[str] = field(default_factory=list)
    left: int = MAX_WORK
    """Steps that a large pattern may still take in this search."""

    def may_match(self, text: bytes) -> bool:
        """Whether any line of a whole text can match."""
        if self.text is None or self._reach() < len(text):
            return True
        self._spend(len(text))
        return self.text.search(text) is not None

    def matches(self, line: bytes) -> bool:
        """Whether the pattern occurs in a line; of an endless one only a part is looked at."""
        reach = self._reach()
        if reach < len(line) and not self.notes:
            self.notes.append("the pattern is too large for so much text; a part was searched")
        self._spend(min(len(line), reach))
        return self.line.search(line[:reach]) is not None

    def says(self, text: str) -> bool:
        """As `matches`, of text."""
        return self.matches(text.encode("utf-8", "surrogateescape"))

    def _reach(self) -> int:
        reach: int = self.left // max(self.line.programsize, 1)
        return reach

    def _spend(self, size: int) -> None:
        if self.line.programsize > LARGE:
            self.left -= size * self.line.programsize


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
    note = None
    literal = len(pattern) > MAX_PATTERN
    if literal:
        note = f"the pattern is longer than {MAX_PATTERN} characters; it was searched for literally"
    else:
        try:
            re2.compile(pattern, options)
        except re2.error as error:
            literal = True
            reason = error.args[0] if error.args else error
            reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            note = f"not a pattern that RE2 knows ({reason}); it was searched for literally"
    options.literal = literal
    one_line = re2.compile(pattern, options)
    many_lines: Any = one_line
    if not literal:  # what means something else in a whole text is looked for line by line
        apart = any(anchor in pattern for anchor in (r"\A", r"\z", r"\C", "(?"))
        many_lines = None if apart else re2.compile(f"(?m){pattern}", options)
    return Pattern(one_line, many_lines, [note] if note else [])


def find(documents: Iterable[Document], pattern: Pattern) -> Iterator[Match]:
    """All matching lines, header lines included, by document and line."""
    for document in documents:
        lines = [
            document.text_line(number).encode("utf-8", "surrogateescape")
            for number in range(1, len(document.lines) + 1)
        ]
        if not pattern.may_match(b"\n".join(lines)):
            continue
        for number, line in enumerate(lines, start=1):
            if pattern.matches(line):
                yield Match(document, number)
