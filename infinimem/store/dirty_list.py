"""Which files are being written, so that other processes look at these again and at no others.

    .infinimem/touched    a first line that is unlike every other file's, then rows: a path before it is
                          written, "." after all that were named

A path is named before its file changes. Until the row "." it may change at any moment, and a reader looks at
it at every call; a writer that dies in between leaves it so. Where the list cannot be written it is removed,
and where it is missing, new or garbled, a reader looks at every file. Nothing is synced: after a loss of
power no reader is left that knows it from before. Source: docs/FORMAT.md.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from infinimem.store import disk
from infinimem.store.disk import At
from infinimem.store.folders import located
from infinimem.store.listing import shows

PATH = ".infinimem/touched"
LONGEST = 256 * 1024
"""Bytes after which a new list is begun."""

_HEAD = b"infinimem touched "
_FIRST = re.compile(rb"infinimem touched [0-9a-f]{16}\n")
_WIDTH = len(_HEAD) + 17
_DONE = b"."


class DirtyListWriter:
    """The writer's side. The lock's holder alone writes.

    Args:
        root: the library's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._named: set[str] = set()
        self.failures = 0
        """How often the list could not be written: files may have changed that it does not name."""

    def begin(self) -> None:
        """A holder of the lock begins: what others named is none of its own."""
        self._named.clear()

    def name(self, *paths: str) -> None:
        """Say that files are about to change, where they are documents. Never fails."""
        new = [path for path in paths if path not in self._named and shows(path)]
        if new:
            self._named.update(new)
            self._add(*(path.encode("utf-8", "surrogateescape") for path in new))

    def end(self) -> None:
        """Nothing that was named changes any more. Never fails."""
        if self._named:
            self._named.clear()
            self._add(_DONE)

    def drop(self) -> None:
        """Remove the list: every reader looks at every file. Never fails."""
        self._named.clear()
        with suppress(OSError), located(self._root, PATH) as at:
            disk.unlink(at)

    def _add(self, *rows: bytes) -> None:
        try:
            with located(self._root, PATH) as at:
                self._write(at, rows)
        except FileNotFoundError:
            return  # a folder that is being made a library: nobody reads it yet
        except OSError:
            # A list that misses a row would hide a change; without one everything is looked at.
            self.failures += 1
            with suppress(OSError), located(self._root, PATH) as at:
                disk.unlink(at)

    def _write(self, at: At, rows: tuple[bytes, ...]) -> None:
        descriptor = disk.open_append(at)
        try:
            size = os.fstat(descriptor).st_size
            usable = not size or (_FIRST.fullmatch(os.pread(descriptor, _WIDTH, 0)) and size <= LONGEST)
            if usable:
                # The first break ends a row that a dying writer left half.
                head = b"\n" if size else _HEAD + os.urandom(8).hex().encode() + b"\n"
                data = head + b"\n".join(rows) + b"\n"
                while data:
                    data = data[disk.write(descriptor, data) :]
        finally:
            os.close(descriptor)
        if not usable:
            disk.unlink(at)
            self._write(at, rows)


class DirtyListReader:
    """The reader's side: what was named since the last look.

    Args:
        root: the library's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._key: tuple[int, int, int] | None = None
        self._first = b""
        self._last = b""
        self._at = 0
        self._open: frozenset[str] = frozenset()

    @property
    def missing(self) -> bool:
        """Whether there was no list at the last look that could be read."""
        return not self._first

    def take(self) -> frozenset[str] | None:
        """Paths that may have changed since the last call; None where any may have.

        The caller looks at the files after this call, not before it.
        """
        try:
            info = os.lstat(f"{self._root}/{PATH}")
            key = (info.st_ino, info.st_size, info.st_mtime_ns)
            if key == self._key:
                return self._open
            return self._read(key)
        except FileNotFoundError:
            gone = self._key is not None
            self._forget()
            return None if gone else frozenset()
        except OSError:
            self._forget()
            return None

    def _forget(self) -> None:
        self._key, self._first, self._last, self._at, self._open = None, b"", b"", 0, frozenset()

    def _read(self, key: tuple[int, int, int]) -> frozenset[str] | None:
        with located(self._root, PATH) as there:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            descriptor = os.open(there.name, flags, dir_fd=there.folder.descriptor)
        try:
            first = os.pread(descriptor, _WIDTH, 0)
            last = os.pread(descriptor, len(self._last), self._at - len(self._last))
            same = bool(last) and (first, last) == (self._first, self._last)
            at = self._at if same else len(first)
            data = os.pread(descriptor, 4 * LONGEST, at)
        finally:
            os.close(descriptor)
        if not _FIRST.fullmatch(first) or len(data) == 4 * LONGEST:
            self._forget()
            return None
        whole = data[: data.rfind(b"\n") + 1]
        rows = [row for row in whole.split(b"\n") if row]
        paths = {row: row.decode("utf-8", "surrogateescape") for row in rows if row != _DONE}
        before, done = self._open if same else frozenset[str](), _DONE in rows
        left = rows[len(rows) - rows[::-1].index(_DONE) :] if done else rows
        self._key, self._first, self._at = key, first, at + len(whole)
        self._last = ((self._last if same else first) + whole)[-_WIDTH:]
        self._open = frozenset(paths[row] for row in left) | (frozenset() if done else before)
        if not same or not all(map(shows, paths.values())):
            return None
        return before | frozenset(paths.values())
