"""The operating-system calls that change a disk, each once and nothing around it.

All that the store writes goes through these functions, but what SQLite writes, so that tests can count them
and let any of them fail.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ctypes

_EXCHANGE, _NO_REPLACE = 2, 1  # Linux renameat2
_MAC_SWAP, _MAC_EXCLUSIVE = 2, 4  # macOS renameatx_np
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
"""What an old kernel, or a file system such as FAT or some network mounts, answers to the newer calls."""

_UNSYNCED = ContextVar("unsynced", default=False)


class Folder(NamedTuple):
    """An open folder (folders.py), and its path below the library's root, which no call takes."""

    descriptor: int
    path: str


class At(NamedTuple):
    """A name in an open folder: what system calls that end in "at" take instead of a path."""

    folder: Folder
    name: str

    @property
    def path(self) -> str:
        return f"{self.folder.path}/{self.name}" if self.folder.path else self.name

    def lstat(self) -> os.stat_result | None:
        """Return the state of what has the name, even if it is a link; None if nothing has."""
        with suppress(FileNotFoundError):
            return os.stat(self.name, dir_fd=self.folder.descriptor, follow_symlinks=False)
        return None


def open_append(at: At) -> int:
    """Open a file whose writes go to the end; make it if missing, refuse a link."""
    return _open(at, os.O_RDWR | os.O_CREAT | os.O_APPEND)


def open_new(at: At) -> int:
    """Open a file and empty it; refuse a link."""
    return _open(at, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def overwrite(at: At, data: bytes) -> None:
    """Write at the beginning of a file, made if missing; keep what stands after that."""
    descriptor = _open(at, os.O_WRONLY | os.O_CREAT)
    try:
        done = 0
        while done < len(data):
            done += os.pwrite(descriptor, data[done:], done)
    finally:
        os.close(descriptor)


def write(descriptor: int, data: bytes | memoryview) -> int:
    """Write some of `data`; returns how much."""
    return os.write(descriptor, data)


def truncate(descriptor: int, size: int) -> None:
    os.ftruncate(descriptor, size)


def sync(descriptor: int) -> None:
    """Make a file's bytes durable."""
    if _UNSYNCED.get():
        return
    if sys.platform == "darwin":  # there fsync leaves bytes in the drive's own memory
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    os.fsync(descriptor)


def sync_folder(folder: Folder) -> None:
    """Make the names in a folder durable."""
    sync(folder.descriptor)


def touch(folder: Folder) -> int:
    """Set a folder's time to now and return it in nanoseconds; 0 if the system allows no time of our own.

    The system's own counts in milliseconds, and does not count appends.
    """
    now = time.time_ns()
    try:
        os.utime(folder.descriptor, ns=(now, now))
    except PermissionError:  # another user's
        os.utime(folder.descriptor)
        return 0
    return now


@contextmanager
def unsynced() -> Iterator[None]:
    """Wait for no write of this thread: it can be made anew from elsewhere."""
    before = _UNSYNCED.set(True)
    try:
        yield
    finally:
        _UNSYNCED.reset(before)


def rename(old: At, new: At) -> None:
    """Give a file another name, in place of what has it."""
    os.replace(old.name, new.name, src_dir_fd=old.folder.descriptor, dst_dir_fd=new.folder.descriptor)


_replace = rename  # within another call it is none of its own


def put(old: At, new: At) -> None:
    """Give a file another name; raise FileExistsError if something has it."""
    if _rename(old, new, _NO_REPLACE, _MAC_EXCLUSIVE):
        return
    try:
        _link(old, new)
        _unlink(old)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if new.lstat() is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new.path) from None
        _replace(old, new)


def exchange(one: At, other: At) -> None:
    """Swap two files; raise FileNotFoundError if one is missing.

    If the file system cannot do that in one step, `other` has its old or its new contents at every moment,
    but a save between the two steps is overwritten.
    """
    if _rename(one, other, _EXCHANGE, _MAC_SWAP):
        return
    aside = At(one.folder, f"{one.name}.aside")
    _unlink(aside)
    try:
        _link(other, aside)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        import shutil

        with (
            os.fdopen(_open(other, os.O_RDONLY), "rb") as source,
            os.fdopen(_open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as copied,
        ):
            shutil.copyfileobj(source, copied)
    _replace(one, other)
    _replace(aside, one)


def unlink(at: At) -> None:
    """Remove a file's name, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(at.name, dir_fd=at.folder.descriptor)


_unlink = unlink  # within another call it is none of its own


def make_folder(at: At) -> None:
    """Make a folder, unless it is there."""
    with suppress(FileExistsError):
        os.mkdir(at.name, dir_fd=at.folder.descriptor)


def remove_folder(at: At) -> None:
    os.rmdir(at.name, dir_fd=at.folder.descriptor)


@cache
def boot() -> str:
    """Return a name for the time since the machine started, "" if unknown: unsynced writes live that long."""
    if sys.platform == "darwin":
        import ctypes

        name, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        call = ctypes.CDLL(None).sysctlbyname
        failed = call(b"kern.bootsessionuuid", name, ctypes.byref(size), None, ctypes.c_size_t(0))
        return "" if failed else name.value.decode("ascii", "replace")
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Non-blocking: a pipe in the place of a file is an error, and nobody waits for its other end."""


def _open(at: At, flags: int) -> int:
    return os.open(at.name, flags | _FLAGS, 0o644, dir_fd=at.folder.descriptor)


def _link(old: At, new: At) -> None:
    folders = {"src_dir_fd": old.folder.descriptor, "dst_dir_fd": new.folder.descriptor}
    os.link(old.name, new.name, **folders, follow_symlinks=False)


def _rename(old: At, new: At, linux: int, mac: int) -> bool:
    """Rename with a flag in one step; return False if the system or the file system cannot."""
    call = _atomic_rename()
    if call is None:
        return False
    import ctypes

    one, other = os.fsencode(old.name), os.fsencode(new.name)
    flag = ctypes.c_uint(mac if sys.platform == "darwin" else linux)
    if not call(old.folder.descriptor, one, new.folder.descriptor, other, flag):
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), old.path, None, new.path)


@cache
def _atomic_rename() -> ctypes._NamedFuncPointer | None:
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        return library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except (OSError, AttributeError):
        return None
