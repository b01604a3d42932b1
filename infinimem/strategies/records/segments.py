"""Where the pieces of a text stand that a model copied out of it. Source: All-Mem, Appendix B.5 and C.3.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_PLACES = 100
"""Where in a text a segment is looked for; nobody repeats himself oftener."""


def spans_of(text: str, segments: Sequence[str]) -> list[tuple[int, int]] | str:
    """Where the segments stand, none over another; each after the one before it if it can.

    Returns:
        Characters from and to, a segment each; or what is wrong: EMPTY, OVERLAP or NOT_SUBSTRING.
    """
    spans: list[tuple[int, int]] = []
    for segment in segments:
        if not segment.strip():
            return "EMPTY"
        places = _places(text, segment, spans[-1][1] if spans else 0)
        free = (
            start
            for start in places
            if not any(start < last and first < start + len(segment) for first, last in spans)
        )
        start = next(free, None)
        if start is None:
            return "OVERLAP" if segment in text else "NOT_SUBSTRING"
        spans.append((start, start + len(segment)))
    return spans


def _places(text: str, segment: str, after: int) -> Iterator[int]:
    """Where a segment stands in a text: first behind a place, then anywhere."""
    for begin in (after, 0) if after else (0,):
        start = text.find(segment, begin)
        for _ in range(_PLACES):
            if start < 0:
                break
            yield start
            start = text.find(segment, start + 1)


def size(text: str) -> int:
    """Characters, white space apart."""
    return sum(map(len, text.split()))
