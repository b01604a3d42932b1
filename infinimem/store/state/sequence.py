"""The one counter of seqs: increasing, and none ever given twice, whatever becomes of its line.

    .infinimem/seq          every seq up to this one may have been given; durable before one of them is
    .infinimem/seq.given    the last that was given, and during which boot; never synced

Syncing each seq would double what a short remark costs, so the durable mark runs ahead by a block. Unsynced
bytes outlive a killed process but not the machine: after a boot the rest of the block is left out.
"""

from __future__ import annotations

from collections.abc import Callable

from infinimem.errors import LibraryError
from infinimem.store import disk
from infinimem.store.files import Files
from infinimem.store.view import whole

MARK = ".infinimem/seq"
GIVEN = ".infinimem/seq.given"
BLOCK = 64
WIDTH = 63
"""Bytes of the hint: it is written over, for cutting a file first costs as much as a sync."""
MAX_SEQ = 10**18 - 1
"""The highest that a signature can carry."""


def high_water(files: Files) -> int | None:
    """The durable mark; None where the machine state is lost or garbled."""
    return whole((files.read(MARK) or b"").decode("ascii", "replace").strip())


def last(files: Files) -> int | None:
    """The last seq that was given, as far as the machine knows that gave it; else the mark."""
    given, during = _given(files)
    return given if given is not None and during == disk.boot() else high_water(files)


def rebooted(files: Files) -> bool:
    """Whether the machine may have gone down since the last seq was given: appends may be torn."""
    return files.read(MARK) is not None and _given(files)[1] != (disk.boot() or "unknown")


def settle(files: Files) -> None:
    """What there is to mend after a boot is mended."""
    if mark := high_water(files):
        _hint(files, mark)


def _given(files: Files) -> tuple[int | None, str]:
    """The last seq that was given, and the boot."""
    given, _, during = (files.read(GIVEN) or b"").decode("ascii", "replace").strip().partition(" ")
    return whole(given), during


def _hint(files: Files, seq: int) -> None:
    if boot := disk.boot():
        files.overwrite(GIVEN, f"{seq} {boot}".ljust(WIDTH).encode() + b"\n")


def allocate(files: Files, count: int, on_disk: int, named: Callable[[], int]) -> int:
    """Give `count` seqs, under the lock; returns the first.

    Args:
        on_disk: the highest seq that a line carries.
        named: the highest that anything else names; asked for only where the mark is lost.

    Raises:
        LibraryError: a line carries a seq beyond all others.
    """
    mark, boot = high_water(files), disk.boot()
    given, during = _given(files)
    # Without a name for this boot nothing tells whether the hint outlived it.
    last = given if boot and during == boot else mark
    if mark is None or last is None:
        last = max(mark or 0, named())
    first = max(last, on_disk) + 1
    end = first + count - 1
    if end > MAX_SEQ:
        raise LibraryError(f"seq {first - 1} leaves no room for new ones; mend the line that carries it")
    if mark is None or end > mark:
        files.replace(MARK, f"{min(end + (BLOCK if boot else 0), MAX_SEQ)}\n".encode())
    _hint(files, end)
    return first
