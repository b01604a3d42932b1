"""One writer at a time. The kernel frees the lock of a killed process, so there is no stale-lock logic."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from infinimem.errors import LockTimeout
from infinimem.store.files import Files, explained

PATH = ".infinimem/lock"
TIMEOUT = 10.0


@contextmanager
def exclusive(files: Files, timeout: float = TIMEOUT) -> Iterator[None]:
    """Hold the library's lock; never across a model call.

    Each holder opens the file anew, so that threads of one process exclude each other too.

    Args:
        files: the library's files.
        timeout: seconds to wait.

    Raises:
        LockTimeout: another holder kept it; the message names its process.
    """
    path = files.root / PATH
    with explained("write", PATH):
        files.make_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    raise LockTimeout(
                        f"process {holder} has been writing to {files.root} for {timeout:.0f} s; "
                        "wait for it, or end it, and try again"
                    ) from None
                time.sleep(0.005)
        os.pwrite(descriptor, f"{os.getpid():<15}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
