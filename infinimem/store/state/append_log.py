"""Lists of the machine state that grow by rows: what was read of one before is not read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from infinimem.store.files import MAX_OWNED, Files

T = TypeVar("T")


class Growing(Generic[T]):
    """The value of a list of rows, remembered for the file that was read last.

    Args:
        empty: makes the value of no rows.
        add: gives the value after more rows; it must not change the one it is given.
    """

    def __init__(self, empty: Callable[[], T], add: Callable[[T, list[bytes]], T]) -> None:
        self._empty = empty
        self._add = add
        self._last = (b"", empty())

    def read(self, data: bytes) -> T:
        """The value of a file's whole rows."""
        before, value = self._last
        whole = data[: data.rfind(b"\n") + 1]
        if not before or not whole.startswith(before):
            before, value = b"", self._empty()
        if len(whole) > len(before):
            value = self._add(value, whole[len(before) :].split(b"\n")[:-1])
        self._last = (whole, value)
        return value


def value(files: Files, path: str, empty: Callable[[], T], add: Callable[[T, list[bytes]], T]) -> T:
    """The value of a list of a library, each list remembered with the library's files."""
    known = files.lists.setdefault(path, Growing(empty, add))
    return cast(Growing[T], known).read(files.read(path, MAX_OWNED) or b"")
