"""Where two lists of rows differ, in time that grows with their length.

difflib takes the square of it, so long lists are first cut at rows that stand once in both (patience diff,
Bram Cohen). Where a long run has no such row, all of it counts as changed.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

SHORT = 250_000
"""Rows of one list times rows of the other, up to which difflib compares them."""

LEVELS = 8
"""How often a list is cut again between its cuts: a row may stand once there, and more often in all of it."""

Change = tuple[int, int, int, int]
"""Rows `[0]:[1]` of the one list stand where rows `[2]:[3]` of the other do."""


def changes(one: Sequence[str], other: Sequence[str], levels: int = LEVELS) -> Iterator[Change]:
    """What is not equal, in order; there is an equal row between any two."""
    if len(one) * len(other) <= SHORT:
        matcher = difflib.SequenceMatcher(None, one, other)
        yield from (code[1:] for code in matcher.get_opcodes() if code[0] != "equal")
        return
    anchors = _anchors(one, other) if levels else []
    if not anchors:
        yield 0, len(one), 0, len(other)
        return
    i = j = 0
    for at, there in (*anchors, (len(one), len(other))):
        if at > i or there > j:
            between = changes(one[i:at], other[j:there], levels - 1)
            yield from ((i + i1, i + i2, j + j1, j + j2) for i1, i2, j1, j2 in between)
        i, j = at + 1, there + 1


def unified(one: Sequence[str], other: Sequence[str], name: str, other_name: str) -> Iterator[str]:
    """The lines of a unified diff without context; none where the lists are equal."""
    for number, (i1, i2, j1, j2) in enumerate(changes(one, other)):
        if not number:
            yield from (f"--- {name}", f"+++ {other_name}")
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@"
        yield from (f"-{row}" for row in one[i1:i2])
        yield from (f"+{row}" for row in other[j1:j2])


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return str(end)
    return f"{start + (end > start)},{end - start}"


def _anchors(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Places of rows that stand once in both lists, and at their ends of any rows that are equal: as many as
    can be had in one order."""
    shortest = min(len(one), len(other))
    head = next((n for n in range(shortest) if one[n] != other[n]), shortest)
    tail = next((n for n in range(shortest - head) if one[-1 - n] != other[-1 - n]), shortest - head)
    times, other_times = Counter(one), Counter(other)
    places = {row: at for at, row in enumerate(other) if other_times[row] == 1}
    pairs = [
        (at, places[row])
        for at, row in enumerate(one[head : len(one) - tail], head)
        if times[row] == 1 and head <= places.get(row, -1) < len(other) - tail
    ]
    return [
        *((n, n) for n in range(head)),
        *_longest_increasing(pairs),
        *((len(one) - n, len(other) - n) for n in range(tail, 0, -1)),
    ]


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs, by the first, in which the second increases too."""
    tops: list[int] = []
    ends: list[int] = []  # which pair each of `tops` is
    before: list[int] = []
    for number, (_, value) in enumerate(pairs):
        at = bisect_left(tops, value)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1] = [value]
        ends[at : at + 1] = [number]
    found = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]
