"""Local folders for libraries of a fleet: what was fetched last, for an unchanged head is not fetched again.

    CACHE/NAME/lock     held: shared by who reads, alone by who writes
               head     the machine's boot, which head the folder is, and what its header says; missing while
                        the folder is changed
               tree/    the library
    CACHE/swept         the words of a `forget` that this cache has heeded (home.py)

All of it can be deleted at any time. Whoever finds a place taken works in one of their own, and deletes it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from infinimem.fleet.head import Head, demand, folder_files
from infinimem.fleet.home import Home
from infinimem.retrieval.cache import cache_folder
from infinimem.store import disk
from infinimem.store.files import Files
from infinimem.store.listing import explained
from infinimem.store.lock import PATH as LOCK
from infinimem.store.state import sequence

SWEEP, KEPT = 60.0, 24 * 3600.0
"""Seconds between two looks for libraries of which something was forgotten; for which an unused one stays."""
_OWN = "own-"
"""How the names of places begin that go with their holder."""


def lay_out(wanted: Mapping[str, bytes], tree: Path) -> None:
    """Make a folder what a head says; what is the same already is left alone.

    Args:
        wanted: as in `Head.files`.
        tree: the folder, which nobody uses.
    """
    there, files = folder_files(tree), Files(tree)
    kept = {parent for path in wanted for parent in (PurePosixPath(path), *PurePosixPath(path).parents)}
    for folder, _, names in os.walk(tree, topdown=False):
        below = PurePosixPath(Path(folder).relative_to(tree))
        for path in (str(below / name) for name in names):
            if path not in wanted and path != LOCK:
                files.remove(path, durable=False)
        if below not in kept:
            with suppress(OSError):  # it has the lock
                Path(folder).rmdir()
    for path, data in wanted.items():
        if path.endswith("/"):
            files.make_folder(path[:-1])
        elif there.get(path) != data or path == sequence.MARK:
            if path in there:
                files.remove(path, durable=False)
            files.stage(path, data, durable=False)
    if sequence.MARK in wanted:
        sequence.settle(files)  # a head is whole: nothing of it was torn when another machine stopped


@dataclass(frozen=True)
class Place:
    """A folder for one library, as long as its lock is held."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def head(self) -> Head:
        """The head that the tree is, without its files; one without an ETag where it is none, or was written
        before a boot: nothing in a cache is synced."""
        try:
            boot, etag, version, *taken = (self.folder / "head").read_text().split("\n")
        except (FileNotFoundError, ValueError):
            return Head()
        known = boot and boot == disk.boot()
        return Head(etag, taken=frozenset(taken), version=version or None) if known else Head()

    def become(self, head: Head) -> None:
        """Make the tree this head."""
        self.unsettle()
        self.tree.mkdir(exist_ok=True)
        lay_out(head.files, self.tree)
        self.settle(head)

    def settle(self, head: Head) -> None:
        """The tree is this head."""
        lines = (disk.boot(), head.etag, head.version or "", *sorted(head.taken))
        (self.folder / "head").write_text("\n".join(lines))

    def unsettle(self) -> None:
        """The tree is about to be changed."""
        (self.folder / "head").unlink(missing_ok=True)


class Places:
    """The cache of a process, which others on the machine may share.

    Args:
        cache: its folder; made, for its owner alone.
        url: of the fleet.

    Raises:
        LibraryError: it cannot be made.
    """

    def __init__(self, cache: Path, url: str) -> None:
        self._cache = cache.absolute() / hashlib.sha256(url.encode()).hexdigest()[:16]
        self._looked, self._looking = -SWEEP, threading.Lock()
        with explained("make", cache):
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._cache.chmod(0o700)

    @contextmanager
    def alone(self, library: str) -> Iterator[Place]:
        """A place to change a library in."""
        with self._held(self._folder(library), fcntl.LOCK_EX) as place:
            if place is not None:
                yield place
                return
        with self._own() as place:
            yield place

    @contextmanager
    def fresh(self, library: str, home: Home) -> Iterator[Place]:
        """A place that is the head as it is now, and that nobody changes.

        Raises:
            LibraryError: there is no such library.
        """
        folder = self._folder(library)
        with self._held(folder, fcntl.LOCK_SH) as place:
            head = home.fetch(library, place.head().etag if place else "")
            if place is not None and head is None:
                yield place
                return
        head = demand(head, library)
        with self._held(folder, fcntl.LOCK_EX) as place:
            if place is not None:
                place.become(head)
        with self._held(folder, fcntl.LOCK_SH) as place:
            if place is not None and place.head().etag == head.etag:
                yield place
                return
        with self._own() as place:
            place.become(head)
            yield place

    def drop(self, library: str) -> bool:
        """Delete what is held of a library, and what was derived from it; False where it is in use."""
        return self._dropped(self._folder(library))

    def sweep(self, home: Home) -> None:
        """Heed what was forgotten on any machine; drop what is unused, or left by the dead. Once in SWEEP."""
        with self._looking:
            if time.monotonic() - self._looked < SWEEP:
                return
            self._looked = time.monotonic()
        swept, told = self._cache / "swept", home.forgotten()
        heeded = set(swept.read_text().split("\n")) & told.keys() if swept.exists() else set()
        heeded |= {name for name in told.keys() - heeded if self.drop(told[name])}
        swept.write_text("\n".join(sorted(heeded)))
        for folder in self._cache.iterdir():
            with suppress(FileNotFoundError, NotADirectoryError):
                unused = time.time() - (folder / "lock").stat().st_mtime > KEPT
                if unused or folder.name.startswith(_OWN):
                    self._dropped(folder)

    def _folder(self, library: str) -> Path:
        return self._cache / hashlib.sha256(library.encode()).hexdigest()[:32]

    def _dropped(self, folder: Path) -> bool:
        if not folder.exists():
            return True
        with self._held(folder, fcntl.LOCK_EX) as place:
            if place is not None:
                _delete(folder)
            return place is not None

    @contextmanager
    def _own(self) -> Iterator[Place]:
        folder = self._cache / f"{_OWN}{secrets.token_hex(8)}"
        with self._held(folder, fcntl.LOCK_EX) as place:
            assert place is not None
            try:
                yield place
            finally:
                _delete(folder)

    @contextmanager
    def _held(self, folder: Path, how: int) -> Iterator[Place | None]:
        """A place, locked; None where another has it."""
        while True:
            folder.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileNotFoundError):  # it was dropped meanwhile
                lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                break
        try:
            try:
                fcntl.flock(lock, how | fcntl.LOCK_NB)
                os.utime(lock)
                stands = os.path.samestat(os.fstat(lock), (folder / "lock").stat())
            except (BlockingIOError, FileNotFoundError):
                stands = False
            yield Place(folder) if stands else None
        finally:
            os.close(lock)


def _delete(folder: Path) -> None:
    """A place, and indexes of its tree; the lock goes last, so that nobody finds half of it."""
    if derived := cache_folder(str(folder / "tree"), "index"):
        shutil.rmtree(derived.parent, ignore_errors=True)
    Place(folder).unsettle()
    shutil.rmtree(folder / "tree", ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
