"""The way to a folder below a library's root, opened part by part, so that no part of it is a link.

Who holds an open folder works in that very folder. Between a look at a path and a call that takes the path
again, somebody could put a link in place of a folder; between two calls on a descriptor nobody can.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infinimem.store import disk
from infinimem.store.disk import At, Folder

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OUTSIDE = frozenset(("", ".", ".."))


class _Held(threading.local):
    """Folders that this thread keeps open below a root, the deepest first."""

    def __init__(self) -> None:
        self.below: dict[Path, tuple[Folder, ...]] = {}


_HELD = _Held()


def is_inside(path: str) -> bool:
    """Whether a path can only lead below a root: plain names with "/" between them."""
    return "\0" not in path and _OUTSIDE.isdisjoint(path.split("/"))


class _Way:
    """Opens a folder and closes it again. No generator: a short write does so some fourteen times."""

    __slots__ = ("_close", "_make", "_path", "_root")

    def __init__(self, root: Path, path: str, make: bool) -> None:
        self._root, self._path, self._make = root, path, make
        self._close: int | None = None

    def _enter(self) -> Folder:
        path, held = self._path, _HELD.below.get(self._root, ())
        kept = next((one for one in held if not one.path or f"{path}/".startswith(f"{one.path}/")), None)
        here = kept or self._own(Folder(os.open(self._root, _FLAGS), ""))
        rest = path[len(here.path) + 1 :] if here.path else path
        try:
            for name in rest.split("/") if rest else ():
                here = self._own(_entered(At(here, name), self._make))
        except BaseException:
            self.__exit__()
            raise
        return here

    def _own(self, here: Folder) -> Folder:
        self.__exit__()  # the folder above
        self._close = here.descriptor
        return here

    def __exit__(self, *error: object) -> None:
        if self._close is not None:
            with suppress(OSError):  # nothing was written that a close could lose
                os.close(self._close)
            self._close = None


class Opened(_Way):
    """See `opened`."""

    __slots__ = ()

    def __enter__(self) -> Folder:
        return self._enter()


class Located(_Way):
    """See `located`."""

    __slots__ = ("_name",)

    def __init__(self, root: Path, path: str, make: bool) -> None:
        folder, _, self._name = path.rpartition("/")
        super().__init__(root, folder, make)

    def __enter__(self) -> At:
        return At(self._enter(), self._name)


def opened(root: Path, path: str, make: bool = False) -> Opened:
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
    return Opened(root, path.removesuffix("/"), make)


@contextmanager
def holding(root: Path, path: str) -> Iterator[Folder]:
    """Keep a folder open, and the root, so that this thread's calls below them open no part of the way again.

    Arguments and errors as of `opened`; the folder is made if missing.
    """
    with opened(root, "") as top:
        _HELD.below[root] = (top,)
        try:
            with opened(root, path, make=True) as here:
                _HELD.below[root] = (here, top)
                yield here
        finally:
            del _HELD.below[root]


def located(root: Path, path: str, make: bool = False) -> Located:
    """The name at `path`, taken or not, in its open folder; arguments and errors as of `opened`."""
    if not is_inside(path.rpartition("/")[2]):
        raise _no_folder(path)
    return Located(root, path, make)


def _entered(at: At, make: bool) -> Folder:
    if not is_inside(at.name):
        raise _no_folder(at.path)
    try:
        return _opened(at)
    except FileNotFoundError:
        if not make:
            raise
    disk.make_folder(at)
    disk.sync_folder(at.folder)  # its name is durable
    return _opened(at)


def _opened(at: At) -> Folder:
    try:
        return Folder(os.open(at.name, _FLAGS | os.O_NOFOLLOW, dir_fd=at.folder.descriptor), at.path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # what a link is answered with differs by system
            raise _no_folder(at.path) from error
        raise


def _no_folder(path: str) -> NotADirectoryError:
    return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
