"""One commit of an index on disk, and how a snapshot differs from it."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from infinimem.retrieval.columns import Segment
from infinimem.retrieval.lexical import LexicalIndex
from infinimem.store.listing import Stamp
from infinimem.store.view import View

OVERLAY_DOCUMENTS, OVERLAY_BYTES = 64, 4 << 20
"""How much may have changed before it is committed."""
SMALL, MANY = 1024, 8
"""Rows of a small segment, and how many such of one shelf are written anew as one."""
WASTE = 3
"""A segment is written anew when one part in so many is dead."""


@dataclass(frozen=True, eq=False)
class Committed:
    """What the cache directory holds: immutable, whatever is committed later.

    Args:
        manifest: as it was read.
        segments: mapped.
        engine: opened at this commit or at a later one, which knows more rows and may lack dead ones.
    """

    manifest: Mapping[str, Any]
    segments: tuple[Segment, ...]
    engine: LexicalIndex

    @cached_property
    def dead(self) -> tuple[frozenset[int], ...]:
        """The parts of each segment that count no more."""
        return tuple(frozenset(row["dead"]) for row in self.manifest["segments"])

    @property
    def alive(self) -> int:
        """How many rows count."""
        pairs = zip(self.segments, self.dead, strict=True)
        gone = sum(int(segment.parts["count"][sorted(dead)].sum()) for segment, dead in pairs if dead)
        return sum(map(len, self.segments)) - gone

    @cached_property
    def stamps(self) -> Mapping[str, tuple[int, int, int]]:
        """The state in which each document was indexed."""
        found: dict[str, tuple[int, int, int]] = {}
        for segment, dead in zip(self.segments, self.dead, strict=True):
            columns = (segment.parts[name].tolist() for name in ("mtime_ns", "size", "inode"))
            states = zip(segment.ids, zip(*columns, strict=True), strict=True)
            found.update(pair for number, pair in enumerate(states) if number not in dead)
        return found

    def dead_without(self, doc_ids: Collection[str]) -> list[frozenset[int]]:
        """The parts of each segment that count no more once these documents are gone."""
        return [
            dead | {segment.of[doc_id] for doc_id in doc_ids if doc_id in segment.of}
            for segment, dead in zip(self.segments, self.dead, strict=True)
        ]

    def citing(self, doc_ids: Collection[str], seqs: Iterable[int]) -> set[str]:
        """The documents with an entry drawn from a line of these documents, or from one with such a seq.

        Or from an entry that was: what was said around it may be new.
        """
        wanted = {*seqs}
        for segment in self.segments:
            if segment.shelf.startswith("entries/"):
                for part in (segment.of[doc_id] for doc_id in doc_ids if doc_id in segment.of):
                    first, count = segment.parts[part]["first"], segment.parts[part]["count"]
                    wanted.update(segment.rows["seq"][first : first + count].tolist())
        found: set[str] = set()
        known: set[int] = set()
        while wanted := wanted - known - {0}:
            known |= wanted
            asked, wanted = np.fromiter(wanted, np.int64, len(wanted)), set()
            for segment in self.segments:
                items = np.flatnonzero(np.isin(segment.cites, asked))
                rows = np.unique(np.searchsorted(segment.cite_ends, items, side="right") - 1)
                found.update(segment.ids[part] for part in np.unique(segment.parts_of(rows)))
                wanted.update(segment.rows["seq"][rows].tolist())
        return found

    def stale(self, dead: Sequence[frozenset[int]]) -> set[str]:
        """The documents of segments that are worth writing anew: many small ones, or much that is dead."""
        small: dict[str, list[int]] = {}
        chosen: list[int] = []
        for number, (segment, gone) in enumerate(zip(self.segments, dead, strict=True)):
            if len(segment) <= SMALL:
                small.setdefault(segment.shelf, []).append(number)
            if len(gone) * WASTE > len(segment.parts):
                chosen.append(number)
        chosen += [number for numbers in small.values() if len(numbers) >= MANY for number in numbers]
        return {
            doc_id
            for number in chosen
            for part, doc_id in enumerate(self.segments[number].ids)
            if part not in dead[number]
        }


@dataclass(frozen=True)
class Changes:
    """What a commit does not hold of a snapshot."""

    changed: frozenset[str]
    """Documents that are new or read otherwise now."""
    gone: frozenset[str]
    """Documents that are there no more."""
    size: int
    """Bytes of the changed ones."""

    @property
    def many(self) -> bool:
        """Whether they are worth a commit."""
        return len(self.changed) + len(self.gone) > OVERLAY_DOCUMENTS or self.size > OVERLAY_BYTES


class Comparison:
    """Compares snapshots with a commit, one after another: what did not change in between is passed over."""

    def __init__(self, committed: Committed | None) -> None:
        self.committed = committed
        self._known: Mapping[str, tuple[int, int, int]] = committed.stamps if committed else {}
        self._last: Mapping[str, Stamp] = {}
        self._changed: set[str] = set()
        self._gone = set(self._known)

    def changes(self, view: View) -> Changes:
        """What the commit does not hold of a snapshot; all of it where there is none."""
        now = view.stored.stamps if view.stored else {}
        if now is not self._last:
            # a state that stays is one object
            same = map(operator.is_, now.values(), map(self._last.get, now))
            doubtful = {*self._changed, *itertools.compress(now, map(operator.not_, same))}
            self._changed = {
                doc_id for doc_id in doubtful if doc_id in now and now[doc_id] != self._known.get(doc_id)
            }
            if len(now) - sum(doc_id not in self._known for doc_id in self._changed) == len(self._known):
                self._gone = set()
            else:
                self._gone = set(self._known.keys() - now.keys())
            self._last = now
        changed = set(self._changed)
        if self.committed and view.initialised:
            owned = [doc_id for doc_id in (*changed, *self._gone) if not view.is_note(doc_id)]
            here = view.each(doc_id for doc_id in owned if doc_id in now)
            seqs = [place.entry.seq for document in here for place in document.entries]
            changed |= {doc_id for doc_id in self.committed.citing(owned, seqs) if doc_id in now}
        return Changes(frozenset(changed), frozenset(self._gone), sum(now[doc_id].size for doc_id in changed))
