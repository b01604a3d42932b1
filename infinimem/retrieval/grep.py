"""Pattern search over the lines of documents, in time linear in the text whatever the pattern.

Patterns come from models and clients: they run in RE2 or as literals, never in `re`. It knows lines,
nothing of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from infinimem.markdown.document import Document

MAX_PATTERN = 1000
MAX_WORK = 200_000_000
"""Instructions of a pattern times bytes of a line: where RE2 runs out of states it takes that many steps."""


@dataclass(frozen=True)
class Match:
    """A line in which the pattern occurs; lines count from 1."""

    document: Document
    line: int


@dataclass(frozen=True)
class Pattern:
    """A pattern ready to search; `note` says where it is not used as it was written."""

    find: Callable[[bytes], Any]
    """Searches one line; of an endless one no more than `MAX_WORK` allows."""
    rules_out: Callable[[bytes], bool]
    """Whether no line of a whole text can match: spares looking at each."""
    note: str | None = None


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
    reach = MAX_WORK // max(one_line.programsize, 1)

    def search(line: bytes) -> Any:
        return one_line.search(line[:reach])

    if not literal and any(anchor in pattern for anchor in (r"\A", r"\z", r"\C", "(?")):
        return Pattern(search, lambda text: False, note)  # means something else in a whole text
    many_lines = one_line if literal else re2.compile(f"(?m){pattern}", options)
    return Pattern(search, lambda text: len(text) <= reach and many_lines.search(text) is None, note)


def find(documents: Iterable[Document], pattern: Pattern) -> Iterator[Match]:
    """All matching lines, header lines included, by document and line."""
    for document in documents:
        lines = [
            document.text_line(number).encode("utf-8", "surrogateescape")
            for number in range(1, len(document.lines) + 1)
        ]
        if pattern.rules_out(b"\n".join(lines)):
            continue
        for number, line in enumerate(lines, start=1):
            if pattern.find(line):
                yield Match(document, number)
