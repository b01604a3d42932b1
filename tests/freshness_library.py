"""A library of a few documents that is taken for a large one, seen by a process that only reads."""

from __future__ import annotations

from pathlib import Path

from infinimem.spec import owned_folders
from infinimem.store.freshness import Freshness, Listing
from infinimem.store.library import Library
from infinimem.store.listing import listed
from infinimem.store.watcher import ChangeSet, Watcher

LARGE = 3


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Silent(Watcher):
    """A watcher that hears what a test tells it.

    Args:
        root: the folder.
        clock: its time.
        starts: whether it can be started.
    """

    def __init__(self, root: Path, clock: Clock, starts: bool = True) -> None:
        super().__init__(root, clock)
        self.starts = starts
        self.lives = False
        self.started = 0

    def start(self) -> bool:
        self.started += 1
        self.lives = self.starts
        return self.starts

    def stop(self) -> None:
        self.lives = False

    @property
    def living(self) -> bool:
        return self.lives


class Reader:
    """What one process knows of a library. Its clock stands still unless `wait` is called."""

    def __init__(self, root: Path, large: int = LARGE, starts: bool = False) -> None:
        self.library = Library(root)
        self.clock = Clock()
        self.watcher = Silent(root, self.clock, starts)
        self.scans = 0
        files = self.library.files
        real = files.scan

        def scan(needed: tuple[str, ...] = (), below: str = "") -> dict[str, object]:
            self.scans += not below
            return real(needed, below)  # type: ignore[return-value]

        files.scan = scan  # type: ignore[assignment, method-assign]
        self.fresh = Freshness(
            files,
            lambda doc_id: 10_000,
            owned_folders(),
            watch=lambda: self.watcher,
            large=large,
            clock=self.clock,
        )
        self.library.fresh = self.fresh
        self.look()

    def look(self) -> Listing:
        return self.fresh.look()

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def wrong(self) -> set[str]:
        """Documents that the next look shows otherwise than they lie there."""
        seen, there = self.look(), listed(self.library.root, owned_folders())
        assert seen.ids == tuple(sorted(seen.stamps))
        return {doc_id for doc_id in {*seen.stamps, *there} if seen.stamps.get(doc_id) != there.get(doc_id)}


__all__ = ["LARGE", "ChangeSet", "Clock", "Reader", "Silent"]
