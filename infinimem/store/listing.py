"""What lies in a folder: the Markdown files and the state that each is in. Opens none of them."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from infinimem.errors import LibraryError
from infinimem.store.folders import located, opened

RACE_NS = 50_000_000
"""Nanoseconds within which two changes of a folder may have one time: some ticks of the kernel's clock."""


class Stamp(NamedTuple):
    """What tells one state of a file from another without reading it."""

    mtime_ns: int
    size: int
    inode: int


def stamp_of(info: os.stat_result) -> Stamp:
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


class FolderState(NamedTuple):
    """What tells whether something was created, deleted or renamed in a folder. Nobody can set its ctime."""

    mtime_ns: int
    ctime_ns: int
    inode: int

    def settled(self, now_ns: int) -> bool:
        """Whether a change from now on shows: no longer so soon after the last that both have one time."""
        whole = self.mtime_ns % 1_000_000_000 == 0  # FAT counts two seconds, HFS+ one
        return now_ns - self.ctime_ns > RACE_NS + 2_000_000_000 * whole


def folder_state(info: os.stat_result) -> FolderState:
    return FolderState(info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


class Explained:
    """See `explained`."""

    __slots__ = ("_action", "_path")

    def __init__(self, action: str, path: object) -> None:
        self._action, self._path = action, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, OSError):
            return
        why = f"{error.strerror or type(error).__name__}; check the folder's permissions and space"
        if isinstance(error, NotADirectoryError):
            way = f"{error.filename} is a link or a file"
            why = f"{way}; put a folder in its place, the library follows no links"
        raise LibraryError(f"cannot {self._action} {self._path}: {why}") from error


def explained(action: str, path: object) -> Explained:
    """Turn an operating-system error into one line that says what could not be done."""
    return Explained(action, path)


def shows(path: str) -> bool:
    """Whether a name may be that of a document: Markdown, nothing on the way hidden or unprintable."""
    return path.endswith(".md") and "/." not in f"/{path}" and path.isprintable()


class Listed(NamedTuple):
    """One folder as it was listed.

    Args:
        state: of the folder itself; None where it may not be read, or a later change might not show in it.
        documents: the state of each, by its path without ".md".
        folders: those in it ("a/b/").
    """

    state: FolderState | None
    documents: dict[str, Stamp]
    folders: Sequence[str] = ()


def listed(
    root: Path,
    needed: Collection[str] = (),
    below: str = "",
    *,
    skip: Collection[str] = (),
) -> dict[str, Listed]:
    """A folder and all folders in it, hidden ones and links left out.

    Args:
        root: the library's folder.
        needed: folders ("topics/") that must not be passed over for want of permission.
        below: the folder to list; "" for all.
        skip: folders in it that are not listed again.

    Raises:
        LibraryError: a folder cannot be listed; one of a person's that may not be read is passed over.
    """
    found: dict[str, Listed] = {}
    pending = [below]
    while pending:
        folder = pending.pop()
        with explained("list", f"{root}/{folder}"):
            try:
                found[folder] = _list_folder(root, folder)
            except (FileNotFoundError, NotADirectoryError):  # what vanishes meanwhile is not there
                continue
            except PermissionError:
                if not folder or folder in needed:
                    raise
                found[folder] = Listed(None, {})
        pending.extend(name for name in found[folder].folders if name not in skip)
    return found


def _list_folder(root: Path, folder: str) -> Listed:
    documents: dict[str, Stamp] = {}
    folders: list[str] = []
    with opened(root, folder) as here, os.scandir(here.descriptor) as items:
        state = folder_state(os.fstat(here.descriptor))
        settled = state.settled(time.time_ns())
        for item in items:
            name = item.name
            if name[0] == "." or not name.isprintable():
                continue
            if name.endswith(".md") and item.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    documents[folder + name[:-3]] = stamp_of(item.stat(follow_symlinks=False))
            elif item.is_dir(follow_symlinks=False):
                folders.append(f"{folder}{name}/")
    return Listed(state if settled else None, documents, folders)


def state_of(root: Path, path: str) -> Stamp | None:
    """The state of one file as `listed` would find it; None where there is no such document.

    Raises:
        LibraryError: it cannot be looked at.
    """
    if not shows(path):
        return None
    with explained("read", path):
        try:
            with located(root, path) as at:
                info = at.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
    return stamp_of(info) if info is not None and stat.S_ISREG(info.st_mode) else None
