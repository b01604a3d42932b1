"""The way to a folder below a library's root, opened part by part, so that no part of it is a link.

Who holds an open folder works in that very folder. Between a look at a path and a call that takes the path
again, somebody could put a link in place of a folder; between two calls on a descriptor nobody can.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infinimem.store import disk
from infinimem.store.disk import At, Folder

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def is_inside(path: str) -> bool:
    """Whether a path can only lead below a root: plain names with "/" between them."""
    return "\0" not in path and not any(part in ("", ".", "..") for part in path.split("/"))


@contextmanager
def opened(root: Path, path: str, make: bool = False) -> Iterator[Folder]:
    """The folder at `path` below `root`; "" for the root itself.

    Args:
        root: a folder, named by a person: the way to it may have links.
        path: names with "/" between them, and maybe at the end.
        make: make what is missing, durably.

    Raises:
        FileNotFoundError: there is none.
        NotADirectoryError: a part of the way is a link, a file, or leads upwards.
        OSError: it cannot be opened or made.
    """
    here = Folder(os.open(root, _FLAGS), "")
    try:
        for name in path.removesuffix("/").split("/") if path else ():
            below = _entered(At(here, name), make)
            os.close(here.descriptor)
            here = below
        yield here
    finally:
        os.close(here.descriptor)


@contextmanager
def located(root: Path, path: str, make: bool = False) -> Iterator[At]:
    """The name at `path`, taken or not, in its open folder; arguments and errors as of `opened`."""
    folder, _, name = path.rpartition("/")
    if not is_inside(name):
        raise _no_folder(path)
    with opened(root, folder, make) as here:
        yield At(here, name)


def _entered(at: At, make: bool) -> Folder:
    if not is_inside(at.name):
        raise _no_folder(at.path)
    try:
        return _opened(at)
    except FileNotFoundError:
        if not make:
            raise
    make_folder(at)
    return _opened(at)


def _opened(at: At) -> Folder:
    try:
        return Folder(os.open(at.name, _FLAGS | os.O_NOFOLLOW, dir_fd=at.folder.descriptor), at.path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # what a link is answered with differs by system
            raise _no_folder(at.path) from error
        raise


def make_folder(at: At) -> None:
    """Make a folder, and make its name durable."""
    disk.make_folder(at)
    disk.sync_folder(at.folder)


def _no_folder(path: str) -> NotADirectoryError:
    return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
