"""grep over a whole view: the packed text of a large library, the documents themselves of a small one."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, pairwise
from mmap import mmap

from infinimem.retrieval.cache import is_large
from infinimem.retrieval.grep import Found, Match, Pattern, first_matches
from infinimem.retrieval.packed import FEW, Snapshot, packed_text
from infinimem.store.view import Scope, View

CHUNK = 1 << 20
MOST_THREADS = 4
WORTH_A_THREAD = 4 << 20
"""Bytes; for less, another thread costs more than it saves. RE2 runs without Python's lock."""

Chunk = tuple[int, int, int]
"""Whole lines of documents that stand one behind another: segment, begin and end."""
Run = tuple[int, int, str]
"""A document in a segment: begin, end and id."""


def search(view: View, scope: Scope, pattern: Pattern, most: int) -> Found:
    """Search all documents of a scope.

    Args:
        view: the library.
        scope: which documents.
        pattern: what is looked for.
        most: how many matches are wanted; all are counted.
    """
    snapshot = packed_text(view)
    ids = view.ids(scope)
    if snapshot is None:
        return first_matches(view.each(ids) if is_large(view) else map(view.document, ids), pattern, most)
    runs = _chosen(view, snapshot, scope)
    total, places = _scan(
        snapshot, pattern, most, [chunk for at in range(len(runs)) for chunk in _chunks(at, runs[at])]
    )
    found = _matches(view, snapshot, pattern, runs, places, most)
    wanted = frozenset(ids)
    pending = [doc_id for doc_id in snapshot.pending if doc_id in wanted]
    documents = map(view.document, pending) if len(pending) <= FEW else view.each(pending)
    beside = first_matches(documents, pattern, most)
    found = sorted([*found, *beside.first], key=lambda match: (match.document.id, match.line))[:most]
    return Found(max(total + beside.total, len(found)), found)


def _chosen(view: View, snapshot: Snapshot, scope: Scope) -> tuple[list[Run], ...]:
    """For each segment the documents of a scope, in the order in which they stand there."""
    asked = (view.spec.name, scope)
    if asked not in snapshot.chosen:
        runs: tuple[list[Run], ...] = tuple([] for _ in snapshot.segments)
        for doc_id in view.ids(scope):
            if (place := snapshot.places.get(doc_id)) and place[2]:
                runs[place[0]].append((place[1], place[1] + place[2], doc_id))
        snapshot.chosen[asked] = tuple(sorted(segment) for segment in runs)
    return snapshot.chosen[asked]


def _chunks(segment: int, runs: Sequence[Run]) -> Iterator[Chunk]:
    """Runs that touch as chunks of about `CHUNK` bytes; a document is in one chunk."""
    start = end = 0
    for first, last, _ in runs:
        if first != end or end - start >= CHUNK:
            if end > start:
                yield segment, start, end
            start = first
        end = last
    if end > start:
        yield segment, start, end


def _scan(
    snapshot: Snapshot, pattern: Pattern, most: int, chunks: Sequence[Chunk]
) -> tuple[int, list[tuple[int, int]]]:
    """The number of matching lines, and (segment, place) of the first ones of each segment."""
    size = sum(end - start for _, start, end in chunks)
    many = max(1, min(MOST_THREADS, os.cpu_count() or 1, size // WORTH_A_THREAD))
    cuts = [len(chunks) * part // many for part in range(many + 1)]

    def work(cut: tuple[int, int]) -> tuple[int, list[tuple[int, int]]]:
        total, places = 0, list[tuple[int, int]]()
        for segment, group in groupby(chunks[cut[0] : cut[1]], key=lambda chunk: chunk[0]):
            left = most
            for _, start, end in group:
                count, found = pattern.scan(snapshot.segments[segment][start:end], left)
                total, left = total + count, left - len(found)
                places += ((segment, start + at) for at in found)
        return total, places

    if many == 1:
        return work((0, len(chunks)))
    with ThreadPoolExecutor(many) as threads:
        done = list(threads.map(work, pairwise(cuts)))
    return sum(total for total, _ in done), [place for _, places in done for place in places]


def _matches(
    view: View,
    snapshot: Snapshot,
    pattern: Pattern,
    runs: Sequence[Sequence[Run]],
    places: Sequence[tuple[int, int]],
    most: int,
) -> list[Match]:
    """The first matches, told by the documents as the view has them."""
    located = (
        (runs[at][bisect_right(runs[at], place, key=lambda run: run[0]) - 1], at, place)
        for at, place in places
    )
    found = sorted((doc_id, place, start, at) for (start, _, doc_id), at, place in located)[:most]
    matches: list[Match] = []
    for doc_id, group in groupby(found, key=lambda item: item[0]):
        document = view.document(doc_id)
        lines = [_line(snapshot.segments[at], start, place) for _, place, start, at in group]
        if all(
            line <= len(document.lines) and document.text_line(line).encode() == text for line, text in lines
        ):
            matches += (Match(document, line) for line, _ in lines)
        else:  # saved since the view was made
            matches += first_matches([document], pattern, most).first
    return matches


def _line(text: mmap | bytes, start: int, place: int) -> tuple[int, bytes]:
    """Which line of a document a place is in, and its text.

    Args:
        text: of a segment.
        start: of the document in it.
        place: in the document.
    """
    before = text[start:place]
    first = start + before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, text[first : text.find(b"\n", place)]
