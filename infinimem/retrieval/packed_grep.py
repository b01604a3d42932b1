"""grep over a whole view: the packed text of a large library, the documents themselves of a small one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import TYPE_CHECKING

from infinimem.retrieval.cache import is_large
from infinimem.retrieval.grep import Found, Match, Pattern, find, first_matches
from infinimem.retrieval.packed import FEW, Snapshot, packed_text
from infinimem.retrieval.scan import Scanner
from infinimem.store.view import Scope, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 20
SAMPLE = 1 << 17
"""Bytes at the beginning and in the middle, by which the way of searching is chosen."""
MOST_THREADS = 4
WORTH_A_THREAD = 4 << 20
"""Bytes; for less, another thread costs more than it saves. RE2 runs without Python's lock."""


@dataclass(frozen=True)
class _Chunk:
    """Whole lines of documents that stand one behind another."""

    segment: int
    start: int
    end: int
    other: bool
    """Whether letters may stand there in other forms."""


def search(view: View, scope: Scope, pattern: Pattern, most: int) -> Found:
    """Search all documents of a scope.

    Args:
        view: the library.
        scope: which documents.
        pattern: what is looked for.
        most: how many matches are wanted; all are counted.
    """
    snapshot = None if pattern.is_rationed else packed_text(view)
    if snapshot is not None:
        return _Search(view, snapshot, scope, pattern, most).run()
    ids = view.ids(scope)
    return first_matches(view.each(ids) if is_large(view) else map(view.document, ids), pattern, most)


class _Search:
    def __init__(self, view: View, snapshot: Snapshot, scope: Scope, pattern: Pattern, most: int) -> None:
        self.view, self.snapshot, self.pattern, self.most = view, snapshot, pattern, most
        self.chosen = _chosen(view, snapshot, scope)
        self.rows = [self._rows_of(segment) for segment in range(len(snapshot.segments))]

    def run(self) -> Found:
        chunks = [chunk for segment, rows in enumerate(self.rows) for chunk in self._chunks(segment, rows)]
        total, places = self._scan(chunks)
        found = self._packed_matches(places)
        for at, match in self._pending_matches():
            total += 1
            found.append((at, match))
        found.sort(key=lambda item: (item[0], item[1].line))
        matches = [match for _, match in found[: self.most]]
        return Found(max(total, len(matches)), matches)

    # ── packed documents ────────────────────────────────────────────────────────────────────────

    def _rows_of(self, segment: int) -> NDArray[np.intp]:
        """The documents of a segment that are searched, as they stand in it."""
        rows = self.snapshot.rows
        found: NDArray[np.bool_] = (rows[0] == segment) & (rows[2] > 0) & self.chosen
        return found.nonzero()[0]

    def _chunks(self, segment: int, documents: NDArray[np.intp]) -> Iterator[_Chunk]:
        _, starts, lengths, other = self.snapshot.rows[:4, documents]
        ends = starts + lengths
        apart = ((starts[1:] != ends[:-1]) | (other[1:] != other[:-1])).nonzero()[0]
        firsts, lasts = [0, *(apart + 1).tolist()], [*apart.tolist(), len(starts) - 1]
        text, size = self.snapshot.segments[segment].text, max(1, min(CHUNK, self.pattern.reach))
        for first, last in zip(firsts, lasts, strict=True) if len(starts) else ():
            at, end = int(starts[first]), int(ends[last])
            while at < end:
                cut = end if end - at <= size else text.find(b"\n", at + size - 1, end) + 1 or end
                yield _Chunk(segment, at, cut, bool(other[first]))
                at = cut

    def _scan(self, chunks: Sequence[_Chunk]) -> tuple[int, list[tuple[int, int]]]:
        """The number of matching lines, and (segment, place) of the first ones of each segment."""
        if not chunks:
            return 0, []
        scanner = Scanner(self.pattern, self._sample(chunks))
        size = sum(chunk.end - chunk.start for chunk in chunks)
        trial = max(chunks[len(chunks) // 2 :][:8], key=lambda chunk: chunk.end - chunk.start)
        scanner.settle(self.snapshot.segments[trial.segment], trial.start, trial.end)
        many = max(1, min(MOST_THREADS, os.cpu_count() or 1, size // WORTH_A_THREAD))
        cuts = [len(chunks) * part // many for part in range(many + 1)]
        parts = [chunks[start:end] for start, end in pairwise(cuts)]
        done: list[tuple[int, list[tuple[int, int]]] | BaseException] = [(0, [])] * len(parts)

        def work(number: int) -> None:
            try:
                done[number] = self._scan_part(scanner, parts[number])
            except BaseException as error:
                done[number] = error

        threads = [threading.Thread(target=work, args=[number]) for number in range(1, len(parts))]
        for thread in threads:
            thread.start()
        work(0)
        for thread in threads:
            thread.join()
        total, places = 0, list[tuple[int, int]]()
        for part in done:
            if isinstance(part, BaseException):
                raise part
            total += part[0]
            places += part[1]
        return total, places

    def _scan_part(self, scanner: Scanner, chunks: Sequence[_Chunk]) -> tuple[int, list[tuple[int, int]]]:
        total, places = 0, list[tuple[int, int]]()
        for segment, group in groupby(chunks, key=lambda chunk: chunk.segment):
            kept: list[int] = []
            for chunk in group:
                part = self.snapshot.segments[segment]
                count, found = scanner.lines(part, chunk.start, chunk.end, chunk.other, self.most - len(kept))
                total += count
                kept += found
            places += ((segment, place) for place in kept)
        return total, places

    def _sample(self, chunks: Sequence[_Chunk]) -> bytes:
        parts = (chunks[0], chunks[len(chunks) // 2])
        return b"".join(
            self.snapshot.segments[part.segment].text[part.start : min(part.end, part.start + SAMPLE)]
            for part in parts
        )

    def _packed_matches(self, places: Sequence[tuple[int, int]]) -> list[tuple[int, Match]]:
        """The first matches, each with its document's number; told by the document as the view has it."""
        starts = [self.snapshot.rows[1, rows] for rows in self.rows]
        found: list[tuple[int, int, int]] = []
        for segment, place in places:
            row = int(starts[segment].searchsorted(place, "right")) - 1
            found.append((int(self.rows[segment][row]), place, segment))
        found = sorted(found)[: self.most]
        matches: list[tuple[int, Match]] = []
        for number, group in groupby(found, key=lambda item: item[0]):
            document = self.view.document(self.snapshot.ids[number])
            lines = [self._line(number, segment, place) for _, place, segment in group]
            if all(
                line <= len(document.lines) and document.text_line(line).encode() == text
                for line, text in lines
            ):
                matches += ((number, Match(document, line)) for line, _ in lines)
            else:  # saved since the view was made
                matches += ((number, match) for match in islice(find([document], self.pattern), self.most))
        return matches

    def _line(self, number: int, segment: int, place: int) -> tuple[int, bytes]:
        """Which line of a document a place is in, and its text."""
        part, start = self.snapshot.segments[segment], int(self.snapshot.rows[1, number])
        before = part.text[start:place]
        first, end = start + before.rfind(b"\n") + 1, part.text.find(b"\n", place) % len(part.text)
        return before.count(b"\n") + 1, part.original(first, end)

    # ── documents that changed since ────────────────────────────────────────────────────────────

    def _pending_matches(self) -> Iterator[tuple[int, Match]]:
        numbers = ((self.snapshot.rows[0] < 0) & self.chosen).nonzero()[0].tolist()
        ids = [self.snapshot.ids[number] for number in numbers]
        documents = map(self.view.document, ids) if len(ids) <= FEW else self.view.each(ids)
        for number, document in zip(numbers, documents, strict=True):
            for match in find([document], self.pattern):
                yield number, match


def _chosen(view: View, snapshot: Snapshot, scope: Scope) -> NDArray[np.bool_]:
    """Which of the documents are in a scope."""
    import numpy as np

    asked = (view.spec.name, scope)
    if asked not in snapshot.chosen:
        wanted = view.ids(scope)
        if len(wanted) == len(snapshot.ids):
            chosen = np.ones(len(snapshot.ids), bool)
        else:
            known = frozenset(wanted)
            chosen = np.array([doc_id in known for doc_id in snapshot.ids], bool)
        snapshot.chosen[asked] = chosen
    return snapshot.chosen[asked]
