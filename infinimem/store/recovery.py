"""What a library needs before it is used: finish what a crash cut short, mend what a loss of power tore."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from infinimem.errors import LibraryError
from infinimem.store.commit.transaction import displaced, recheck, recover, unfinished
from infinimem.store.files import Files
from infinimem.store.freshness import Freshness
from infinimem.store.hooks import operations
from infinimem.store.lock import exclusive
from infinimem.store.state import last_seen, sequence, tails
from infinimem.store.view import View


def opened(files: Files, fresh: Freshness, clock: Callable[[], datetime], view: Callable[[], View]) -> None:
    """Finish and mend what is left, and take in late saves; where nothing is left, no lock is taken.

    Args:
        files, fresh, clock, view: of the library that is opened.
    """
    rebooted = sequence.rebooted(files)
    left = (unfinished, displaced, tails.waiting, operations().unfinished)
    if not (rebooted or any(waits(files) for waits in left)):
        return
    # A disk that refuses is no reason not to read: what was moved stands in one place at least.
    with suppress(LibraryError), exclusive(files, timeout=1.0):
        finish(files, fresh)
        recheck(files, clock().timestamp())
        if rebooted:
            tails.mend(files, view(), last_seen.read(files))
            sequence.settle(files)


def finish(files: Files, fresh: Freshness) -> None:
    """Finish what a crash cut short. The caller holds the lock."""
    if tails.waiting(files):
        fresh.doubt()  # what a dying writer appended, no folder's time tells
        tails.undo(files)
    recover(files)
    operations().finish(files)
