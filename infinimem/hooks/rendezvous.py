"""Where the hooks of a library meet: a socket and two locks, in a folder of this user alone.

Nothing that was said is ever written there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import infinimem
from infinimem import user_folders

LONGEST = 100
"""Bytes of a socket's path; systems allow 104 to 108."""


class Rendezvous(NamedTuple):
    """The files of one library."""

    socket: Path
    serving: Path
    """Held by the process that answers."""
    remembering: Path
    """Held by the process that writes."""


def rendezvous(library: Path) -> Rendezvous | None:
    """The meeting place of a library; None where there can be none, or its folder is someone else's.

    A program that was installed anew meets nobody of the old one.
    """
    folder = _folder()
    if folder is None:
        return None
    changed = Path(str(infinimem.__file__)).stat().st_mtime_ns
    name = _digest(f"{library.resolve()}\0{changed}\0{infinimem.__file__}")
    made = Rendezvous(*(folder / f"{name}.{kind}" for kind in ("sock", "serving", "remembering")))
    return made if len(os.fsencode(made.socket)) <= LONGEST else None


def first_today(library: Path) -> bool:
    """Whether this is the first call of the day for a library; True where that cannot be noted."""
    folder = _folder()
    return folder is None or user_folders.first_today(folder / f"{_digest(str(library.resolve()))}.told")


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def _folder() -> Path | None:
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(named) if Path(named).is_absolute() else Path("/tmp")
    folder = base / f"infinimem-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if ours else None


@contextmanager
def held(path: Path, wait: bool) -> Iterator[int | None]:
    """Hold a lock while the block runs; the kernel frees that of a killed process.

    Args:
        path: the lock.
        wait: for whoever holds it; else the block is told at once: None where somebody holds it.

    Yields:
        The lock's descriptor: a process that is given it holds the lock as well.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)
