"""Files under one folder: read without following links, append durably, stage and replace, lock.

All that the store does to a disk goes through here. Paths are relative, with "/" between parts, and come from
document ids, never from outside.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from infinimem.errors import LibraryError, LockTimeout
from infinimem.store import disk
from infinimem.store.disk import At
from infinimem.store.folders import (
    MISSING_OK,
    FolderState,
    Stamp,
    explained,
    folder_state,
    holding,
    located,
    opened,
    shows,
    stamp_of,
)

MAX_FILE = 8 * 1024 * 1024
"""Bytes; larger notes are skipped, and `doctor` says so."""

MAX_OWNED = 1024 * 1024 * 1024
"""Bytes; the bound for files that the program itself writes, where skipping would hide what was said."""

STAGED = ".infinimem.new"
"""Name under which a file is written before it takes its place beside; the lock's holder alone writes."""

LOCK = ".infinimem/lock"
LOCK_TIMEOUT = 10.0
LOCK_WIDTH = 47
"""Bytes that tell of the lock's holder."""


def digest(data: bytes | None) -> str:
    """Return the sha256 in hex, "-" for a file that is not there."""
    return "-" if data is None else hashlib.sha256(data).hexdigest()


class Files:
    """The files under an existing folder; a LibraryError if `root` is none, or cannot be opened."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.read_only = False
        self.state: Any = None
        """The connection to what is remembered of the library (state.py)."""
        self.states: dict[str, FolderState] = {}
        """Folders ("a/b/") as they are if all in them is known, but for what was `written`."""
        self.written: deque[str] = deque()
        with explained("open", root):
            is_folder, exists = root.is_dir(), root.exists()
        if not is_folder:
            if exists:
                raise LibraryError(f"{root} is a file; name the folder that it is in, or import it")
            raise LibraryError(f"{root} does not exist; to make it a library, run: infinimem init {root}")

    def read(self, path: str, limit: int = MAX_FILE) -> bytes | None:
        """Return a regular file's bytes; None if there is none, or a link, or more than `limit` bytes."""
        return self.read_stamped(path, limit)[0]

    def read_stamped(self, path: str, limit: int) -> tuple[bytes | None, Stamp | None]:
        """Return the bytes as `read` does, and their file's state; None if it changed."""
        with explained("read", path):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            try:
                with located(self.root, path) as at:
                    descriptor = os.open(at.name, flags, dir_fd=at.folder.descriptor)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                return None, None
            try:
                before = os.fstat(descriptor)
                if not stat.S_ISREG(before.st_mode) or before.st_size > limit:
                    return None, None
                data, size = b"", before.st_size
                while len(data) < size and (part := os.pread(descriptor, size - len(data), len(data))):
                    data += part
                same = stamp_of(os.fstat(descriptor)) == stamp_of(before)
            finally:
                os.close(descriptor)
        return data, stamp_of(before) if same else None

    def append(self, path: str, data: bytes, tries: int = 3) -> tuple[Stamp, Stamp]:
        """Add `data` at the end, on a line of its own, or nothing; return the file's state before and after.

        It is done again if someone puts another file in place.
        """
        with explained("write", path), located(self.root, path, make=True) as at, self._writing(at):
            created = at.lstat() is None
            descriptor = disk.open_append(at)
            try:
                before = stamp_of(os.fstat(descriptor))
                size = before.size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    data = b"\n" + data
                try:
                    _write_all(descriptor, data)
                    disk.sync(descriptor)
                except OSError:
                    _take_back(descriptor, size, len(data))
                    raise
                after = stamp_of(os.fstat(descriptor))
                now = self.lstat(path)
                stands = now is not None and now.st_ino == after.inode
                if not stands:  # someone saved by rename, or moved the folder
                    _take_back(descriptor, size, len(data))
            finally:
                os.close(descriptor)
            if created:
                disk.sync_folder(at.folder)
        if not stands:
            if tries == 0:
                raise LibraryError(f"{path} is being saved over and over; try again")
            return self.append(path, data.removeprefix(b"\n"), tries - 1)
        return before, after

    def overwrite(self, path: str, data: bytes) -> None:
        """Write at the beginning of a file, made if missing; keep what stands after that. Not durable."""
        with explained("write", path), located(self.root, path) as at:
            disk.overwrite(at, data)

    def lstat(self, path: str) -> os.stat_result | None:
        """Return the state of what has that name, even if it is a link; None if nothing has."""
        with explained("read", path), MISSING_OK, located(self.root, path) as at:
            return at.lstat()
        return None

    def size(self, path: str) -> int:
        info = self.lstat(path)
        return -1 if info is None else info.st_size

    def cut(self, path: str, size: int, tail: bytes | None = None) -> None:
        """Take back what was appended to a file of this size (-1: there was none), or only this tail."""
        if size < 0:
            self.remove(path)
            return
        with explained("write", path), located(self.root, path) as at, self._writing(at):
            descriptor = disk.open_append(at)
            try:
                if tail is None or os.pread(descriptor, len(tail) + 1, size) == tail:
                    disk.truncate(descriptor, size)
                    disk.sync(descriptor)
            finally:
                os.close(descriptor)

    def replace(self, path: str, data: bytes) -> None:
        """Give the file new contents at once: readers see the old bytes or the new."""
        staged = path[: path.rfind("/") + 1] + STAGED
        self.stage(staged, data, mode_of=path)
        self.rename(staged, path)
        self.sync_folder_of(path)

    def exists(self, path: str) -> bool:
        """Return whether anything has that name: also a link, or a file that `read` does not give."""
        return self.lstat(path) is not None

    def must_be_free(self, path: str) -> None:
        if self.exists(path):
            raise LibraryError(f"{self.root / path} is a link or cannot be read; move it away and try again")

    def must_be_writable(self, path: str) -> None:
        """Raise a LibraryError if a file cannot be put there in one step, from the machine state's folder."""
        folder = path.rpartition("/")[0]
        with explained("write", path):
            try:
                with opened(self.root, folder) as here:
                    if os.fstat(here.descriptor).st_dev != self.root.stat().st_dev:
                        where = f"{self.root / folder} is on another disk than the library"
                        raise LibraryError(f"{where}; move it into the library")
                    if not os.access(".", os.W_OK | os.X_OK, dir_fd=here.descriptor):
                        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            except FileNotFoundError:
                if not folder:
                    raise
                self.must_be_writable(folder)  # it will be made

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of what has it. Not durable before `sync_folder_of`."""
        with self._both(old, new) as names:
            disk.rename(*names)

    def exchange(self, staged: str, path: str) -> bool:
        """Swap a staged file with the one in its place; return False if that is no plain file."""
        if self.is_plain(path):
            with self._both(staged, path) as names, suppress(FileNotFoundError):
                disk.exchange(*names)
                return True
        return False

    def put(self, staged: str, path: str) -> bool:
        """Give a staged file its name; return False if something has it."""
        with self._both(staged, path) as names, suppress(FileExistsError):
            disk.put(*names)
            return True
        return False

    def take(self, path: str, slot: str) -> bool:
        """Move a file away; return False if there is no plain file."""
        if self.is_plain(path):
            with self._both(path, slot) as names, suppress(FileNotFoundError):
                disk.rename(*names)
                return True
        return False

    @contextmanager
    def _both(self, one: str, other: str) -> Iterator[tuple[At, At]]:
        with (
            explained("write", other),
            located(self.root, one) as first,
            located(self.root, other, make=True) as second,
            self._writing(first, second),
        ):
            yield first, second

    def names(self, folder: str, begin: str = "") -> list[str]:
        """Return the names in a folder that begin so, sorted; none if there is no folder."""
        with explained("list", folder), MISSING_OK, opened(self.root, folder) as here:
            return sorted(item.name for item in os.scandir(here.descriptor) if item.name.startswith(begin))
        return []

    def is_plain(self, path: str) -> bool:
        """Return whether a regular file has that name, reached without following a link."""
        info = self.lstat(path)
        return info is not None and stat.S_ISREG(info.st_mode)

    def sync_folder_of(self, path: str) -> None:
        with explained("write", path), located(self.root, path) as at:
            disk.sync_folder(at.folder)

    def stage(self, path: str, data: bytes, mode_of: str | None = None, durable: bool = True) -> None:
        """Write a new file, with the permissions of the one that it will replace, and make its folder.

        Its name is not durable before `sync_folder_of`.
        """
        replaced = self.lstat(mode_of) if mode_of is not None else None
        with explained("write", path), located(self.root, path, make=True) as at:
            descriptor = disk.open_new(at)
            try:
                if replaced is not None and stat.S_ISREG(replaced.st_mode):
                    os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode))
                _write_all(descriptor, data)
                if durable:
                    disk.sync(descriptor)
            finally:
                os.close(descriptor)

    def remove(self, path: str, durable: bool = True) -> None:
        with explained("remove", path), located(self.root, path) as at, self._writing(at):
            disk.unlink(at)
            if durable:
                disk.sync_folder(at.folder)

    @contextmanager
    def _writing(self, *those: At) -> Iterator[None]:
        """Touch the folders of documents that change, which tells every process of it."""
        mine = [(at, at.path[: at.path.rfind("/") + 1]) for at in those if shows(at.path)]
        known = [self.states.get(name) == folder_state(os.fstat(at.folder.descriptor)) for at, name in mine]
        try:
            yield
        finally:
            for (at, name), sure in zip(mine, known, strict=True):
                with suppress(OSError):
                    now = disk.touch(at.folder)
                    state = folder_state(os.fstat(at.folder.descriptor))
                    if sure and state.mtime_ns == now:
                        self.written.append(at.path)
                        self.states[name] = state

    def make_folder(self, folder: str) -> None:
        """Make a folder below the root, durably; raise a LibraryError if a part of the way is a link."""
        with explained("make", folder), opened(self.root, folder, make=True):
            pass

    @contextmanager
    def exclusive(self, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
        """Hold the library's lock; never across a model call. LockTimeout if one holder kept it so long.

        The kernel frees the lock of a killed process. Each holder opens the file anew, so that threads of one
        process exclude each other too, and writes who it is and since when: one that waits while others take
        turns goes on waiting.
        """
        folder, _, name = LOCK.partition("/")
        with ExitStack() as kept:
            with explained("write", LOCK):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                here = kept.enter_context(holding(self.root, folder))
                descriptor = os.open(name, flags, 0o644, dir_fd=here.descriptor)
            try:
                with explained("lock", LOCK):
                    self._wait(descriptor, timeout)
                with suppress(OSError):  # it only tells others
                    holder = f"{os.getpid()} {time.monotonic_ns()}".ljust(LOCK_WIDTH)
                    os.pwrite(descriptor, holder.encode() + b"\n", 0)
                yield
            finally:
                with suppress(OSError):  # a child that was forked meanwhile holds the same open file
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
                with suppress(OSError):  # nothing was written that a close could lose
                    os.close(descriptor)

    def _wait(self, descriptor: int, timeout: float) -> None:
        holder, deadline = b"", 0.0
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                now = os.pread(descriptor, LOCK_WIDTH, 0)
                if now != holder or not deadline:
                    holder, deadline = now, time.monotonic() + timeout
                if time.monotonic() > deadline:
                    process = holder.decode("ascii", "replace").partition(" ")[0].strip() or "unknown"
                    raise LockTimeout(
                        f"process {process} has been writing to {self.root} for {timeout:.0f} s; "
                        "wait for it, or end it, and try again"
                    ) from None
                time.sleep(0.002)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[disk.write(descriptor, view) :]


def _take_back(descriptor: int, size: int, added: int) -> None:
    """Cut off what was appended, if nobody wrote behind it and the disk lets us."""
    with suppress(OSError):
        if os.fstat(descriptor).st_size <= size + added:
            disk.truncate(descriptor, size)
