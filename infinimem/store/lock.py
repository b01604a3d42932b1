"""One writer at a time. The kernel frees the lock of a killed process, so there is no stale-lock logic."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from infinimem.errors import LockTimeout
from infinimem.store.files import Files
from infinimem.store.folders import holding
from infinimem.store.listing import explained

PATH = ".infinimem/lock"
TIMEOUT = 10.0
WIDTH = 47
"""Bytes that tell of a holder."""


@contextmanager
def exclusive(files: Files, timeout: float = TIMEOUT) -> Iterator[None]:
    """Hold the library's lock; never across a model call.

    Each holder opens the file anew, so that threads of one process exclude each other too. It writes who it
    is and since when: one that waits while others take turns goes on waiting.

    Args:
        files: the library's files.
        timeout: seconds to wait for one holder.

    Raises:
        LockTimeout: a holder kept it; the message names its process.
    """
    folder, _, name = PATH.partition("/")
    with ExitStack() as kept:
        with explained("write", PATH):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            here = kept.enter_context(holding(files.root, folder))
            descriptor = os.open(name, flags, 0o644, dir_fd=here.descriptor)
        try:
            with explained("lock", PATH):
                _wait(descriptor, files, timeout)
            with suppress(OSError):  # it only tells others
                told = f"{os.getpid()} {time.monotonic_ns()}".ljust(WIDTH)
                os.pwrite(descriptor, told.encode() + b"\n", 0)
            yield
        finally:
            with suppress(OSError):  # a child that was forked meanwhile holds the same open file
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            with suppress(OSError):  # nothing was written that a close could lose
                os.close(descriptor)


def _wait(descriptor: int, files: Files, timeout: float) -> None:
    holder, deadline = b"", 0.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = os.pread(descriptor, WIDTH, 0)
            if now != holder or not deadline:
                holder, deadline = now, time.monotonic() + timeout
            if time.monotonic() > deadline:
                process = holder.decode("ascii", "replace").partition(" ")[0].strip() or "unknown"
                raise LockTimeout(
                    f"process {process} has been writing to {files.root} for {timeout:.0f} s; "
                    "wait for it, or end it, and try again"
                ) from None
            time.sleep(0.002)
