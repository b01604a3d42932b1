"""A library of a few documents that is taken for a large one, seen by a process that only reads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from infinimem.spec import folders
from infinimem.store import freshness
from infinimem.store.folders import RACE_NS, FolderListing, Stamp, listed
from infinimem.store.freshness import DocumentStates, Freshness, Watcher
from infinimem.store.library import Library


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Told(Watcher):
    """A watcher that hears what a test tells it, and lives when a test says so."""

    lives = False
    begun = 0

    def begin(self) -> None:
        self.begun += 1

    def stop(self) -> None:
        self.lives = False

    @property
    def living(self) -> bool:
        return self.lives


def stamps(folders: dict[str, FolderListing]) -> dict[str, Stamp]:
    """The state of each document, by its id."""
    return {doc_id: stamp for one in folders.values() for doc_id, stamp in one.documents.items()}


class Reader:
    """What one process knows of a library. Its clock stands still unless `wait` is called.

    `looks`: at every file; `lists`: of single folders.
    """

    def __init__(self, root: Path, small: int = 3) -> None:
        self.library = Library(root)
        self.clock = Clock()
        self.watcher = Told(root)
        self.looks = self.lists = 0
        self.fresh = Freshness(
            self.library.files,
            lambda doc_id: 10_000,
            folders().owned,
            watcher=self.watcher,
            small=small,
            clock=self.clock,
        )
        self.library.fresh = self.fresh
        self.look()

    def look(self) -> DocumentStates:
        with self._counting():
            return self.fresh.look()

    @contextmanager
    def _counting(self) -> Iterator[None]:
        def count(
            root: Path, needed: tuple[str, ...] = (), below: str = "", **rest: object
        ) -> dict[str, FolderListing]:
            if "skip" in rest:
                self.lists += 1
            else:
                self.looks += 1
            return listed(root, needed, below, **rest)  # type: ignore[arg-type]

        with mock.patch.object(freshness, "listed", count):
            yield

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def wrong(self) -> set[str]:
        """Documents that the next look shows otherwise than they lie there."""
        seen, there = self.look(), stamps(listed(self.library.root, folders().owned))
        assert seen.ids == tuple(sorted(seen.stamps))
        return {doc_id for doc_id in {*seen.stamps, *there} if seen.stamps.get(doc_id) != there.get(doc_id)}


def rest(root: Path) -> None:
    """Until no folder changed so lately that it would be listed again."""
    last = max(os.lstat(folder).st_ctime_ns for folder, _, _ in os.walk(root))
    time.sleep(max(0, last + RACE_NS - time.time_ns()) / 1e9 + 0.01)


__all__ = ["Clock", "Reader", "Told", "rest", "stamps"]
