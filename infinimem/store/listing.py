"""What lies in a folder: the Markdown files and the state that each is in. Opens none of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from infinimem.errors import LibraryError
from infinimem.store.folders import located, opened


class Stamp(NamedTuple):
    """What tells one state of a file from another without reading it."""

    mtime_ns: int
    size: int
    inode: int


def stamp_of(info: os.stat_result) -> Stamp:
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


@contextmanager
def explained(action: str, path: object) -> Iterator[None]:
    """Turn an operating-system error into one line that says what could not be done."""
    try:
        yield
    except NotADirectoryError as error:
        raise LibraryError(
            f"cannot {action} {path}: {error.filename} is a link or a file; put a folder in its place, the"
            " library follows no links"
        ) from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise LibraryError(
            f"cannot {action} {path}: {why}; check the folder's permissions and space"
        ) from error


def shows(path: str) -> bool:
    """Whether a name may be that of a document: Markdown, nothing on the way hidden or unprintable."""
    return path.endswith(".md") and "/." not in f"/{path}" and path.isprintable()


def listed(root: Path, needed: Collection[str] = (), below: str = "") -> dict[str, Stamp]:
    """Every Markdown file by its path without ".md", hidden folders and links left out; in no order.

    Args:
        root: the folder.
        needed: folders ("topics/") that must not be passed over for want of permission.
        below: the folder to list; "" for all.

    Raises:
        LibraryError: a folder cannot be listed; one of a person's that may not be read is passed over.
    """
    found: dict[str, Stamp] = {}
    pending = [below]
    while pending:
        folder = pending.pop()
        with explained("list", f"{root}/{folder}"):
            try:
                _list_folder(root, folder, found, pending)
            except (FileNotFoundError, NotADirectoryError):  # what vanishes meanwhile is not there
                continue
            except PermissionError:
                if not folder or folder in needed:
                    raise
    return found


def _list_folder(root: Path, folder: str, found: dict[str, Stamp], pending: list[str]) -> None:
    """Add what lies in a folder, and the folders in it."""
    with opened(root, folder) as here, os.scandir(here.descriptor) as items:
        for item in items:
            name = item.name
            if name[0] == "." or not name.isprintable():
                continue
            if name.endswith(".md") and item.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    info = item.stat(follow_symlinks=False)
                    found[folder + name[:-3]] = Stamp(info.st_mtime_ns, info.st_size, info.st_ino)
            elif item.is_dir(follow_symlinks=False):
                pending.append(f"{folder}{name}/")


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
