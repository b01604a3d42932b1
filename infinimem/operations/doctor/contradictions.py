"""Live lines that contradict each other: two values of what has one at a time, and plain denials.

Only what the shape of English sentences shows is found. No line or value is quoted: it may be private.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cmp_to_key

from infinimem import chronology
from infinimem.grounding import negation
from infinimem.grounding.claims import TODAY
from infinimem.grounding.sentences import Said
from infinimem.grounding.values import LIKELY, Value, values
from infinimem.model import Finding, Located
from infinimem.operations.doctor.inspection import Inspection
from infinimem.operations.provenance import at
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


def contradictions(inspection: Inspection) -> Iterator[Finding]:
    """Errors where values exclude each other, notes where there may be room for both; then denials."""
    values_of: dict[tuple[str, ...], list[tuple[Located, Value]]] = defaultdict(list)
    for line in inspection.live:
        for value in values(_said(line)):
            values_of[value.of].append((line, value))
    for _, same in sorted(values_of.items()):
        yield from _differing(same, inspection.view.entry)
    yield from _denials(inspection.live)


def _said(line: Located) -> Said:
    """A line and who says it: the speaker, else the kind of source."""
    return Said(line.entry.fields.get("speaker", line.entry.source), line.text)


def _differing(same: Sequence[tuple[Located, Value]], lookup: chronology.Lookup) -> Iterator[Finding]:
    """One finding a subject, at its newest line, with the older lines that say otherwise."""

    def by_age(one: tuple[Located, Value], two: tuple[Located, Value]) -> int:
        return 1 if chronology.is_newer(one[0].entry, two[0].entry, lookup) else -1

    *older, (newest, value) = sorted(same, key=cmp_to_key(by_age))
    others = {
        line.seq: (line, min(other.sure, value.sure))
        for line, other in older
        if line.seq != newest.seq and value.differs(other)
    }
    if others:
        lines = [line for line, _ in others.values()]
        more = f" and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
        named = ", ".join(f"{line.seq} ({at(line)})" for line in lines[-LISTED:]) + more
        what = f"line {newest.seq} gives {_subject(value)} another value than {named}"
        sure = max(sure for _, sure in others.values()) >= LIKELY
        yield Finding("error" if sure else "note", what, at(newest), ADVICE)


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


def _denials(lines: Iterable[Located]) -> Iterator[Finding]:
    """Pairs in the same words of which one negates: "Eats meat", "Does not eat meat".

    Words that make a line true of its day only ("today", "just") leave room for both.
    """
    groups: dict[tuple[str, frozenset[str]], list[Located]] = defaultdict(list)
    for line in lines:
        if len(line.text) <= LONGEST and not TODAY.search(line.text) and "?" not in line.text:
            plain = " ".join(word for word in fold(line.text).split() if word.strip(".,;!") not in _NEGATING)
            words = frozenset(tokens(plain))
            if len(words) > 1:
                groups[_said(line).speaker, words].append(line)
    for group in (group for group in groups.values() if len(group) > 1):
        stating = [line for line in group if not negation.governed(line.text)]
        for line in (line for line in group if negation.governed(line.text)):
            other = next((one for one in stating if negation.lost(one.text, [line.text])), None)
            if other is not None:
                what = f"line {line.seq} denies what {other.seq} ({at(other)}) says"
                yield Finding("note", what, at(line), ADVICE)
