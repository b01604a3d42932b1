"""Local folders for libraries of a fleet: what was fetched last, so that an unchanged head is not fetched again.

    CACHE/NAME/lock     held: shared by who reads, alone by who writes
               etag     which head the folder is, and what its header says; missing while it is changed
               tree/    the library
    CACHE/swept         the last word of a `forget` that this cache has heeded

All of it can be deleted at any time. Whoever finds a place taken works in one of their own, which goes with them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from infinimem.errors import LibraryError
from infinimem.fleet.head import Head, folder_files, of_machine
from infinimem.fleet.home import Home
from infinimem.retrieval.cache import cache_folder
from infinimem.store.files import Files
from infinimem.store.lock import PATH as LOCK
from infinimem.store.state import sequence

SWEEP = 60.0
"""Seconds between two looks for libraries of which something was forgotten."""
_OWN = "own-"
"""How the names of places begin that go with their holder."""
NONE = Head("", {}, frozenset())


class Place:
    """A folder for one library, as long as its lock is held.

    Args:
        folder: that has the lock, the ETag and the tree.
    """

    def __init__(self, folder: Path) -> None:
        self.tree, self._etag = folder / "tree", folder / "etag"

    def head(self) -> Head:
        """The head that the folder is, without its files; one without an ETag where it is none."""
        try:
            etag, version, *taken = self._etag.read_text().split("\n")
        except (FileNotFoundError, ValueError):
            return NONE
        return Head(etag, {}, frozenset(taken), version or None)

    def become(self, head: Head) -> None:
        """Make the folder the head; what is the same already is left alone. `settle` comes when all is done."""
        self.unsettle()
        self.tree.mkdir(parents=True, exist_ok=True)
        files = Files(self.tree)
        there = dict(folder_files(self.tree))
        for path in there.keys() - head.files.keys():
            if not path.endswith("/"):
                files.remove(path, durable=False)
        self._clear(head)
        for path, data in head.files.items():
            if path.endswith("/"):
                files.make_folder(path[:-1])
            elif there.get(path) != data or path == sequence.MARK:
                if path in there:
                    files.remove(path, durable=False)
                files.stage(path, data, durable=False)
        if sequence.MARK in head.files:
            sequence.settle(files)  # a head is whole: nothing of it was torn when another machine stopped

    def _clear(self, head: Head) -> None:
        """Delete what the machine noted of an earlier state, and folders that the head does not have."""
        kept = {parent for path in head.files for parent in PurePosixPath(path).parents}
        kept |= {PurePosixPath(path) for path in head.files}
        for folder, _, names in os.walk(self.tree, topdown=False):
            below = Path(folder).relative_to(self.tree).as_posix()
            for path in (name if below == "." else f"{below}/{name}" for name in names):
                if of_machine(path) and path != LOCK:
                    (self.tree / path).unlink()
            if PurePosixPath(below) not in kept:
                with suppress(OSError):  # it has the lock
                    Path(folder).rmdir()

    def settle(self, head: Head) -> None:
        """The folder is this head."""
        self._etag.write_text("\n".join((head.etag, head.version or "", *sorted(head.taken))))

    def unsettle(self) -> None:
        """The folder is about to be changed."""
        self._etag.unlink(missing_ok=True)


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
        self._looked, self._looking = 0.0, threading.Lock()
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._cache.chmod(0o700)
        except OSError as error:
            raise LibraryError(f"cannot make {cache}: {error.strerror}; name another folder") from error

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
    def fresh(self, library: str, home: Home) -> Iterator[tuple[Place, Head | None]]:
        """A place that has the head as it is now, and that nobody changes; and the head, where it was fetched."""
        folder = self._folder(library)
        with self._held(folder, fcntl.LOCK_SH) as place:
            head = home.fetch(library, place.head().etag if place else "")
            if place is not None and head is None:
                yield place, None
                return
        assert head is not None
        with self._held(folder, fcntl.LOCK_EX) as place:
            if place is not None and head.etag:
                place.become(head)
                place.settle(head)
        with self._held(folder, fcntl.LOCK_SH) as place:
            if place is not None and place.head().etag == head.etag != "":
                yield place, head
                return
        with self._own() as place:
            place.become(head)
            yield place, head

    def drop(self, library: str) -> bool:
        """Delete what is held of a library, and what was derived from it; False where it is in use."""
        return self._dropped(self._folder(library))

    def sweep(self, home: Home) -> None:
        """Heed what was forgotten since, on any machine; and what processes left that died. Once in SWEEP."""
        with self._looking:
            if time.monotonic() - self._looked < SWEEP and self._looked:
                return
            self._looked = time.monotonic()
        mark = self._cache / "swept"
        try:
            since = mark.read_text()
        except FileNotFoundError:
            since = ""
        for name, library in home.forgotten(since):
            if not self.drop(library):
                break
            mark.write_text(name)
        for left in self._cache.glob(f"{_OWN}*"):
            self._dropped(left)

    def _folder(self, library: str) -> Path:
        return self._cache / hashlib.sha256(library.encode()).hexdigest()[:32]

    def _dropped(self, folder: Path) -> bool:
        if not folder.exists():
            return True
        with self._held(folder, fcntl.LOCK_EX) as place:
            if place is None:
                return False
            _delete(folder)
        return True

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
            try:
                lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # it was dropped meanwhile
            try:
                try:
                    fcntl.flock(lock, how | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield None
                    return
                if _stands(folder / "lock", lock):
                    yield Place(folder)
                    return
            finally:
                os.close(lock)


def _stands(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _delete(folder: Path) -> None:
    """A place, and indexes of its tree; the lock goes last, so that nobody finds half of it."""
    derived = cache_folder(str(folder / "tree"), "index")
    for gone in (derived.parent if derived else None, folder / "tree"):
        if gone:
            shutil.rmtree(gone, ignore_errors=True)
    with suppress(FileNotFoundError):
        (folder / "etag").unlink()
    shutil.rmtree(folder, ignore_errors=True)
