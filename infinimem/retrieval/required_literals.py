"""What a line must hold for a pattern to occur in it: plain texts that are found faster than the pattern.

It reads the part of RE2's syntax that it is sure of, and says nothing where it is not. The idea is that of
R. Cox, "Regular Expression Matching with a Trigram Index" (2012), without the index.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Texts = frozenset[str]

SHORTEST = 3
"""Bytes; what is shorter stands nearly everywhere."""
MOST = 8
"""Texts of one set; more take longer than the pattern itself."""
LONGEST = 64

_REPEAT = re.compile(r"\{([0-9]+)(,[0-9]*)?\}")
_OPEN = re.compile(r"\((?:\?:|\?P?<\w+>|(?!\?))")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?[a-z]+:\]|\\[^\w]|\\[dwsDWS]|[^\\\[\]])*\]")
_EMPTY: Texts = frozenset([""])


class _Unsure(Exception):
    pass


@dataclass(frozen=True)
class _Part:
    """What is known of a part of a pattern."""

    exact: Texts | None = None
    """All that it can match."""
    needs: tuple[Texts, ...] = ()
    """Sets; of each, one stands in whatever it matches."""

    @property
    def sets(self) -> tuple[Texts, ...]:
        return self.needs if self.exact is None else (*self.needs, self.exact)


def required_literals(pattern: str, ignore_case: bool) -> list[frozenset[bytes]]:
    """Sets of texts: of each set, one stands in any line that matches. ASCII letters are lower-cased.

    With `ignore_case` that holds for lines without U+017F and U+212A, which are also an s and a k.

    Args:
        pattern: as RE2 takes it; the caller has tried.
        ignore_case: how it is looked for.
    """
    try:
        reader = _Reader(pattern, ignore_case)
        part = reader.alternatives()
        if reader.at < len(pattern):
            return []
    except (_Unsure, RecursionError):
        return []
    found = (frozenset(text.encode() for text in texts) for texts in part.sets)
    return [texts for texts in dict.fromkeys(found) if texts and min(map(len, texts)) >= SHORTEST]


def plain(text: str, ignore_case: bool) -> bytes | None:
    """A text itself as it is looked for; None where other letters are the same as one of it."""
    found = [_letter(char, ignore_case) for char in text]
    return None if None in found else "".join(char for char in found if char).encode()


def _letter(char: str, ignore_case: bool) -> str | None:
    """A character as the lower-cased text has it; None where that may be another one."""
    if char.isascii():
        return char.lower()
    cased = ignore_case and not char == char.lower() == char.upper() == char.casefold()
    return None if cased else char


class _Reader:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self.pattern = pattern
        self.ignore_case = ignore_case
        self.at = 0

    def alternatives(self) -> _Part:
        parts = [self.sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            parts.append(self.sequence())
        if len(parts) == 1:
            return parts[0]
        exact = [part.exact for part in parts if part.exact is not None]
        if len(exact) == len(parts):
            return _Part(_small(frozenset().union(*exact)))
        best = [max(part.sets, key=_worth, default=_EMPTY) for part in parts]
        union = _small(frozenset().union(*best))
        return _Part(None, () if union is None or "" in union else (union,))

    def sequence(self) -> _Part:
        run, exact, needs = _EMPTY, True, list[Texts]()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self.repeated(self.atom())
            needs += part.needs
            longer = None if part.exact is None else _joined(run, part.exact)
            if longer is None:
                exact = False
                needs.append(run)
                run = _EMPTY if part.exact is None else part.exact
            else:
                run = longer
        if exact:
            return _Part(run, tuple(needs))
        return _Part(None, tuple(texts for texts in [*needs, run] if "" not in texts))

    def repeated(self, part: _Part) -> _Part:
        char = self.pattern[self.at : self.at + 1]
        bounds = _REPEAT.match(self.pattern, self.at)
        if char and char in "*+?":
            least, most = char == "+", 1 if char == "?" else 2
            self.at += 1
        elif bounds:
            least, most = bounds[1].strip("0") != "", 2
            self.at = bounds.end()
        else:
            return part
        if self.pattern.startswith("?", self.at):
            self.at += 1
        if least:
            return _Part(None, tuple(texts for texts in part.sets if "" not in texts))
        return _Part(None if part.exact is None or most > 1 else _small(part.exact | _EMPTY))

    def atom(self) -> _Part:
        char = self.pattern[self.at]
        if char == "(":
            opening = _OPEN.match(self.pattern, self.at)
            if not opening:
                raise _Unsure
            self.at = opening.end()
            part = self.alternatives()
            if not self.pattern.startswith(")", self.at):
                raise _Unsure
            self.at += 1
            return part
        if char == "[":
            found = _CLASS.match(self.pattern, self.at)
            if not found:
                raise _Unsure
            self.at = found.end()
            return _Part()
        if char == "\\":
            char = self.pattern[self.at + 1 : self.at + 2]
            self.at += 2
            if char and char in "dwsDWS":
                return _Part()
            if char and char in "bBAz":
                return _Part(_EMPTY)
            if not char or not char.isascii() or char.isalnum() or char == "\n":
                raise _Unsure
        else:
            self.at += 1
            if char == ".":
                return _Part()
            if char in "^$":
                return _Part(_EMPTY)
            if char in "*+?":
                raise _Unsure
        letter = _letter(char, self.ignore_case)
        return _Part() if letter is None else _Part(frozenset([letter]))


def _small(texts: Texts) -> Texts | None:
    return texts if len(texts) <= MOST else None


def _joined(left: Texts, right: Texts) -> Texts | None:
    if len(left) * len(right) > MOST or max(map(len, left)) > LONGEST:
        return None
    return frozenset(one + other for one in left for other in right)


def _worth(texts: Texts) -> tuple[int, int]:
    return min(map(len, texts)), -len(texts)
