"""Folders for libraries on this machine, so that an unchanged head is not fetched again.

    CACHE/processes/P/lock    held by a process as long as it lives
                      T/      a library: a head as it was fetched or committed

No two processes share a folder, nor do two callers in one: who works on a library takes a folder of it, or
has a new one written, and gives it back as a head, or never. What the killed leave, the next one deletes.

A person has a folder, too, written out of the fleet, edited there and brought back:

    DIR/.infinimem/exported   which head it was, and a checksum of each file

Workers may have gone on meanwhile: what the person changed goes onto the head as it is now, file by file.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from infinimem.errors import LibraryError, NotALibrary
from infinimem.fleet.home import EXPORTED, Head, folder_files
from infinimem.settings import SETTINGS
from infinimem.store import sequence, state
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import explained
from infinimem.user_folders import delete_cache

SWEEP, KEPT = 60.0, 600.0
"""Seconds between two looks for what can go; for which a folder stays that nobody uses. What was forgotten is
gone then from each: one that is used is the new head."""


def lay_out(files: Mapping[str, bytes], tree: Path) -> None:
    """Write a head's files to an empty folder."""
    for path, data in files.items():
        at = tree / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(data)
    if sequence.MARK in files:
        sequence.settle(Files(tree))  # a head is whole: nothing of it was torn when another machine stopped


def write_out(head: Head, folder: Path) -> None:
    """Write a head to a folder that is new or empty; LibraryError if it is neither, or the disk refuses."""
    with explained("make", folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise LibraryError(f"{folder} is not empty; name a new folder")
        lay_out(head.files, folder)
    sums = {path: digest(data) for path, data in head.files.items()}
    Files(folder).stage(EXPORTED, json.dumps({"etag": head.etag, "files": sums}, indent=0).encode())


def brought_in(head: Head, folder: Path) -> Mapping[str, bytes]:
    """Return what the head becomes by a folder that `write_out` wrote, or where there is none by any library.
    LibraryError if it was not written out from this library, or a file was changed in both."""
    found = folder_files(folder)
    if SETTINGS not in found:
        raise NotALibrary(f"{folder} has no {SETTINGS}; to make it a library, run: infinimem init {folder}")
    try:
        before = json.loads(Files(folder).read(EXPORTED, MAX_OWNED) or b"{}")
        etag, sums = before.get("etag"), dict(before.get("files", {}))
    except (AttributeError, ValueError, TypeError, RecursionError):
        etag, sums = None, {}
    if etag == head.etag or not head.etag:
        return found
    if etag is None:
        raise LibraryError(
            f"there is such a library; only what was exported from it comes back, not {folder}"
        )
    mine = {path for path in found.keys() | sums.keys() if digest(found.get(path)) != sums.get(path, "-")}
    both = [
        path
        for path in sorted(mine)
        if digest(head.files.get(path)) != sums.get(path, "-") and head.files.get(path) != found.get(path)
    ]
    if both or sequence.MARK in mine:
        what = "what infinimem notes" if sequence.MARK in mine else both[0]
        raise LibraryError(f"{what} was changed in {folder} and in the fleet; export anew, and edit that")
    others = {path: data for path, data in head.files.items() if path not in mine}
    return others | {path: found[path] for path in mine & found.keys()}


@dataclass
class Place:
    """A folder and the head that it is, without its files; one without an ETag is not given back."""

    tree: Path
    head: Head
    used: float = 0.0


class Places:
    """The folders of this process, in `cache`, for its owner alone; LibraryError if they cannot be made."""

    def __init__(self, cache: Path) -> None:
        self._cache, self._lock = cache.absolute() / "processes", threading.Lock()
        self._free: dict[str, list[Place]] = {}
        self._looked = -SWEEP
        with explained("make", cache):
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._own = Path(mkdtemp(dir=self._cache))
            self._held = os.open(self._own / "new", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX)
            (self._own / "new").rename(self._own / "lock")  # nobody sees it free

    def close(self) -> None:
        """Delete them; none is in use."""
        _delete_all(self._own)
        os.close(self._held)

    @contextmanager
    def taken(self, library: str, newer: Callable[[str], Head | None]) -> Iterator[Place]:
        """Give a folder that is a library's head, the caller's alone; `newer` gives its head, None if
        known."""
        with self._lock:
            free = self._free.pop(library, [])
            place = free.pop() if free else None
            if free:
                self._free[library] = free
        try:
            if head := newer(place.head.etag if place else ""):
                with explained("write", self._own):
                    stale, place = place, Place(Path(mkdtemp(dir=self._own)), Head())
                    if stale:
                        _delete(stale.tree)
                    lay_out(head.files, place.tree)
                    state.check(Files(place.tree), claim=True)
                place.head = replace(head, files={})
            assert place is not None
            yield place
        finally:
            if place and place.head.etag:
                place.used = time.monotonic()
                with self._lock:
                    self._free.setdefault(library, []).append(place)
            elif place:
                _delete(place.tree)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the time of the block, which the killed leave for the next sweep."""
        with explained("make", self._own):
            made = TemporaryDirectory(dir=self._own, ignore_cleanup_errors=True)
        with made as folder:
            yield Path(folder)

    def sweep(self) -> None:
        """Delete what is unused, and what the dead left. Once in SWEEP."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked < SWEEP:
                return
            self._looked = now
            unused = [name for name, free in self._free.items() if now - free[0].used > KEPT]
            places = [place for name in unused for place in self._free.pop(name)]
        for place in places:
            _delete(place.tree)
        for lock in self._cache.glob("*/lock"):
            with suppress(FileNotFoundError, BlockingIOError), lock.open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete_all(lock.parent)


def _delete_all(process: Path) -> None:
    """The folder of a process; the lock goes last, so that nothing is left that nobody finds."""
    for tree in process.glob("*/"):
        _delete(tree)
    shutil.rmtree(process, ignore_errors=True)


def _delete(tree: Path) -> None:
    delete_cache(str(tree))
    shutil.rmtree(tree, ignore_errors=True)
