"""Lists of the machine state that grow by rows: what was read of one before is not read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from infinimem.store.files import MAX_OWNED, Files

T = TypeVar("T")
TAIL = 128
"""Bytes by which a list that grew is known again, beside its inode."""
CHUNK = 1 << 22
"""Bytes of a list that are read at once: one of a large library has a hundred megabytes."""


class Known(NamedTuple):
    """A list as it was read: of which file, as far as which byte, the last bytes before it, and the value."""

    inode: int
    end: int
    tail: bytes
    found: Any


def value(
    files: Files, path: str, empty: Callable[[], T], add: Callable[[T, list[bytes]], T], chunk: int = 0
) -> T:
    """The value of a list's whole rows; the last one of each list is remembered with the library's files.

    Args:
        files: of the library.
        path: the list.
        empty: makes the value of no rows.
        add: gives the value after more rows; it must not change the one it is given.
        chunk: new bytes to read at once; 0 for the usual.
    """
    known, chunk = files.lists.get(path), chunk or CHUNK
    if known is None or (read := _read(files, path, known, chunk)) is None:
        known = Known(0, 0, b"", empty())
        read = _read(files, path, None, chunk) or (b"", 0)
    data, inode = read
    whole = data[: data.rfind(b"\n") + 1]
    found = known.found
    if len(whole) > len(known.tail):
        found = add(found, whole[len(known.tail) :].split(b"\n")[:-1])
    end = known.end - len(known.tail) + len(whole)
    files.lists[path] = Known(inode, end, whole[-TAIL:], found)
    if len(data) == len(known.tail) + chunk:  # the rest is read as though it had been added since
        return value(files, path, empty, add, chunk if found is not known.found else 2 * chunk)
    return cast(T, found)


def _read(files: Files, path: str, known: Known | None, most: int) -> tuple[bytes, int] | None:
    """The bytes from the known tail on, and the inode; None where the list is not the known one, grown."""
    tail = len(known.tail) if known else 0
    found, stamp = files.read_stamped(path, MAX_OWNED, known.end - tail if known else 0, tail + most)
    data = found or b""
    if known is None:
        return data, stamp.inode if stamp else 0
    same = stamp is not None and stamp.inode == known.inode and known.tail and data.startswith(known.tail)
    return (data, known.inode) if same else None
