"""A library in a person's hands: written out of the fleet, edited there, and brought back.

    DIR/.infinimem/exported     which head it was, and a checksum of each file

While it was out, workers may have gone on. What the person changed goes onto the head as it is now, file by file;
a file that both changed is for the person to decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infinimem.configuration import SETTINGS
from infinimem.errors import LibraryError, NotALibrary
from infinimem.fleet.head import Head, folder_files
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.state import sequence

EXPORTED = ".infinimem/exported"
_STATE = ".infinimem/"


def write_out(head: Head, folder: Path) -> None:
    """Write a head to a folder that is new or empty.

    Raises:
        LibraryError: there is something already, or the disk refuses.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LibraryError(f"{folder} is not empty; name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryError(f"cannot make {folder}: {error.strerror}; choose another folder") from error
    files = Files(folder)
    for path, data in head.files.items():
        if path.endswith("/"):
            files.make_folder(path[:-1])
        else:
            files.stage(path, data)
    sequence.settle(files)
    sums = {path: digest(data) for path, data in head.files.items()}
    files.stage(EXPORTED, json.dumps({"etag": head.etag, "files": sums}, indent=0).encode())


def brought_in(head: Head, folder: Path) -> Mapping[str, bytes]:
    """What the head becomes.

    Args:
        head: as it is; without an ETag where there is none.
        folder: that `write_out` wrote, or any library where there is no head.

    Raises:
        LibraryError: it was not written out from this library, or a file was changed in both.
    """
    found = dict(folder_files(folder))
    if SETTINGS not in found:
        raise NotALibrary(f"{folder} has no {SETTINGS}; to make it a library, run: infinimem init {folder}")
    before = _exported(Files(folder))
    if not head.etag or (before and before["etag"] == head.etag):
        return found
    if before is None:
        raise LibraryError(
            f"there is a library of this name; only what was exported from it comes back, not {folder}"
        )
    sums: Mapping[str, str] = before["files"]
    mine = {path for path in found.keys() | sums.keys() if digest(found.get(path)) != sums.get(path, "-")}
    theirs = {path for path in mine if digest(head.files.get(path)) != sums.get(path, "-")}
    both = sorted(
        path for path in theirs if head.files.get(path) != found.get(path) and not path.endswith("/")
    )
    if sequence.MARK in mine or (both := [path for path in both if not path.startswith(_STATE)]):
        what = both[0] if both else "what infinimem wrote there"
        raise LibraryError(f"{what} was changed in {folder} and in the fleet; export anew, and edit that")
    files = dict(head.files)
    for path in mine:
        if not path.startswith(_STATE):
            files.pop(path, None)
            files |= {path: found[path]} if path in found else {}
    return files


def _exported(files: Files) -> dict[str, Any] | None:
    try:
        found = json.loads(files.read(EXPORTED, MAX_OWNED) or b"")
        return found if isinstance(found["etag"], str) and isinstance(found["files"], dict) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
