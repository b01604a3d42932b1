"""Lists of the machine state that grow by rows: what was read of one before is not read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from infinimem.store.files import MAX_OWNED, Files

T = TypeVar("T")


def value(files: Files, path: str, empty: Callable[[], T], add: Callable[[T, list[bytes]], T]) -> T:
    """The value of a list's whole rows; the last one of each list is remembered with the library's files.

    Args:
        files: of the library.
        path: the list.
        empty: makes the value of no rows.
        add: gives the value after more rows; it must not change the one it is given.
    """
    data = files.read(path, MAX_OWNED) or b""
    whole = data[: data.rfind(b"\n") + 1]
    before, found = files.lists.get(path, (b"", None))
    if not before or not whole.startswith(before):
        before, found = b"", empty()
    if len(whole) > len(before):
        found = add(found, whole[len(before) :].split(b"\n")[:-1])
    files.lists[path] = whole, found
    return cast(T, found)
