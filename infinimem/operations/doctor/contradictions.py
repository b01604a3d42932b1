"""Live lines that cannot both be so: two values of what has one at a time, and plain denials.

Only what the shape of English sentences tells is found. No line is quoted and no value: it may be what
nobody should read here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cmp_to_key

from infinimem import law
from infinimem.grounding import negation
from infinimem.grounding.duplicates import TODAY
from infinimem.grounding.values import LIKELY, Value, values
from infinimem.model import Finding
from infinimem.operations.doctor.lines import Line
from infinimem.terms import fold, tokens

ADVICE = "keep the line that holds; move the other to archive/ or delete it"
LISTED = 5
"""Lines that one finding names."""
LONGEST = 300
"""Characters of a line that may deny another; a longer one says more than that."""

_PLAIN = re.compile(r"[^\W\d_][^\W\d_'’. -]{0,19}(?:[' .-][^\W\d_'’. -]{0,19}){0,4}['’.]?\Z")
"""A word or name: letters alone, none of them long."""
_NEGATING = frozenset(
    """
    a an the do does did is are was were has have had can could will would should not no never any anymore
    don't doesn't didn't isn't aren't wasn't weren't hasn't haven't hadn't can't cannot couldn't won't
    wouldn't shouldn't longer
    """.split()
)
"""Words in which a line and its denial differ."""


def contradictions(lines: Iterable[Line]) -> Iterator[Finding]:
    """Errors where the values exclude each other, notes where there may be room for both; then denials."""
    lines = list(lines)
    told: dict[tuple[str, ...], list[tuple[Line, Value]]] = defaultdict(list)
    for line in lines:
        for value in values(line.said):
            told[value.of].append((line, value))
    for _, same in sorted(told.items()):
        yield from _differing(same)
    yield from _denials(lines)


def _differing(told: Sequence[tuple[Line, Value]]) -> Iterator[Finding]:
    """One finding a subject, at its newest line, with the older lines that say otherwise."""
    *older, (newest, value) = sorted(told, key=lambda one: _by_age(one[0]))
    others = {
        line.seq: (line, min(other.sure, value.sure))
        for line, other in older
        if line.seq != newest.seq and value.differs(other)
    }
    if others:
        named = _named([line for line, _ in others.values()])
        what = f"line {newest.seq} gives {_subject(value)} another value than {named}"
        sure = max(sure for _, sure in others.values()) >= LIKELY
        yield Finding("error" if sure else "note", what, newest.where, ADVICE)


@cmp_to_key
def _by_age(one: Line, two: Line) -> int:
    return 1 if law.is_newer(one.place.entry, two.place.entry) else -1


def _named(lines: Sequence[Line]) -> str:
    more = f" and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
    return ", ".join(f"{line.seq} ({line.where})" for line in lines[-LISTED:]) + more


def _subject(value: Value) -> str:
    """What a value is given to. Words that might be a key or a password are left out."""
    kind, *words = value.of
    if not all(_PLAIN.match(word) for word in words):
        return "the same thing"
    if kind == "own":
        return f"{words[0].title()}'s {words[1]}"
    if kind in ("home", "work"):
        return f"where {words[0].title()} {'lives' if kind == 'home' else 'works'}"
    return f'"{" ".join(words)}"'


def _denials(lines: Iterable[Line]) -> Iterator[Finding]:
    """Pairs in the same words of which one negates: "Eats meat", "Does not eat meat".

    Words that make a line true of its day only ("today", "just") leave room for both.
    """
    groups: dict[tuple[str, frozenset[str]], list[Line]] = defaultdict(list)
    for line in lines:
        said = line.said
        if len(said.text) <= LONGEST and not TODAY.search(said.text) and "?" not in said.text:
            plain = " ".join(word for word in fold(said.text).split() if word.strip(".,;!") not in _NEGATING)
            words = frozenset(tokens(plain))
            if len(words) > 1:
                groups[said.speaker, words].append(line)
    for group in groups.values():
        denying = [line for line in group if negation.governed(line.said.text)] if len(group) > 1 else []
        for line in denying:
            other = next((one for one in group if _denied(one, line)), None)
            if other is not None:
                yield Finding(
                    "note", f"line {line.seq} denies what {_named([other])} says", line.where, ADVICE
                )


def _denied(one: Line, by: Line) -> bool:
    return not negation.governed(one.said.text) and negation.lost(one.said.text, [by.said.text])
