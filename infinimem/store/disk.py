"""The operating-system calls that change a disk, each once and nothing around it.

Everything that the store writes goes through these few functions, so that tests can count them, let any of
them fail, drop a sync, or let the machine die between two of them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
from functools import cache
from pathlib import Path

_EXCHANGE, _NO_REPLACE = 2, 1  # Linux renameat2
_MAC_SWAP, _MAC_EXCLUSIVE = 2, 4  # macOS renamex_np
_HERE = -100  # AT_FDCWD
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
"""What an old kernel, or a file system such as FAT or some network mounts, answers to the newer calls."""


def open_append(path: Path) -> int:
    """A descriptor whose writes go to the end; the file is made if missing, a link is refused."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def open_new(path: Path) -> int:
    """A descriptor of an empty file; what was there is cut off, a link is refused."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def overwrite(path: Path, data: bytes) -> None:
    """Write at the beginning of a file, made if missing; what stands after that stays."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
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
    """Cut a file to `size` bytes."""
    os.ftruncate(descriptor, size)


def sync(descriptor: int) -> None:
    """Make a file's bytes durable."""
    _flush(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _flush(descriptor)
    finally:
        os.close(descriptor)


def _flush(descriptor: int) -> None:
    if sys.platform == "darwin":  # there fsync leaves bytes in the drive's own memory
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    os.fsync(descriptor)


def rename(old: Path, new: Path) -> None:
    """Give a file another name; what had that name is gone."""
    old.replace(new)


def put(old: Path, new: Path) -> None:
    """Give a file another name that nothing has.

    Raises:
        FileExistsError: something has it.
    """
    if _rename(old, new, _NO_REPLACE, _MAC_EXCLUSIVE):
        return
    try:
        os.link(old, new)
        old.unlink()
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new)) from None
        old.rename(new)


def exchange(one: Path, other: Path) -> None:
    """Swap two files, so that what was displaced can be looked at.

    Where the file system cannot do that in one step, `other` has its old or its new contents at every
    moment, but a save between the two steps is overwritten.

    Raises:
        FileNotFoundError: one of them is not there.
    """
    if _rename(one, other, _EXCHANGE, _MAC_SWAP):
        return
    aside = one.with_name(f"{one.name}.aside")
    aside.unlink(missing_ok=True)
    try:
        os.link(other, aside)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        aside.write_bytes(other.read_bytes())
    one.replace(other)
    aside.replace(one)


def unlink(path: Path) -> None:
    """Remove a file's name, if it is there."""
    path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder, unless it is there."""
    path.mkdir(exist_ok=True)


def remove_folder(path: Path) -> None:
    """Remove an empty folder."""
    path.rmdir()


@cache
def boot() -> str:
    """What names the time since the machine was started: unsynced writes live that long. "" if unknown."""
    if sys.platform == "darwin":
        name, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        call = ctypes.CDLL(None).sysctlbyname
        failed = call(b"kern.bootsessionuuid", name, ctypes.byref(size), None, ctypes.c_size_t(0))
        return "" if failed else name.value.decode("ascii", "replace")
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _rename(old: Path, new: Path, linux: int, mac: int) -> bool:
    """Rename with a flag in one step; False where the system or the file system cannot."""
    call = _atomic_rename()
    if call is None:
        return False
    one, other = os.fsencode(old), os.fsencode(new)
    if sys.platform == "darwin":
        failed = call(one, other, ctypes.c_uint(mac))
    else:
        failed = call(_HERE, one, _HERE, other, ctypes.c_uint(linux))
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(old), None, str(new))


@cache
def _atomic_rename() -> ctypes._NamedFuncPointer | None:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        return library.renamex_np if sys.platform == "darwin" else library.renameat2
    except (OSError, AttributeError):
        return None
