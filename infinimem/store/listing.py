"""What lies in a folder: the Markdown files and the state that each is in. Opens none of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import LibraryError


@dataclass(frozen=True)
class Stamp:
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
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise LibraryError(
            f"cannot {action} {path}: {why}; check the folder's permissions and space"
        ) from error


def listed(root: Path, needed: Collection[str]) -> dict[str, Stamp]:
    """Every Markdown file below `root`; see `Files.scan`."""
    found: dict[str, Stamp] = {}
    top, pending = f"{root}/", [""]
    while pending:
        folder = pending.pop()
        with explained("list", top + folder):
            try:
                items = os.scandir(top + folder)
            except FileNotFoundError:  # what vanishes meanwhile is not there
                continue
            except PermissionError:
                if not folder or folder in needed:
                    raise
                continue
            with items:
                for item in items:
                    if item.name.startswith(".") or not item.name.isprintable():
                        continue
                    path = f"{folder}{item.name}"
                    if item.is_dir(follow_symlinks=False):
                        pending.append(f"{path}/")
                    elif item.name.endswith(".md") and item.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):
                            found[path] = stamp_of(item.stat(follow_symlinks=False))
    return dict(sorted(found.items()))
