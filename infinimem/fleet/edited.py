"""A library in a person's hands: written out of the fleet, edited there, and brought back.

    DIR/.infinimem/exported     which head it was, and a checksum of each file

Workers may have gone on meanwhile: what the person changed goes onto the head as it is now, file by file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from infinimem.errors import LibraryError, NotALibrary
from infinimem.fleet.head import EXPORTED, Head, folder_files
from infinimem.fleet.places import lay_out
from infinimem.settings import SETTINGS
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import explained
from infinimem.store.state import sequence


def write_out(head: Head, folder: Path) -> None:
    """Write a head to a folder that is new or empty.

    Raises:
        LibraryError: there is something already, or the disk refuses.
    """
    with explained("make", folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise LibraryError(f"{folder} is not empty; name a new folder")
        lay_out(head.files, folder)
    sums = {path: digest(data) for path, data in head.files.items()}
    Files(folder).stage(EXPORTED, json.dumps({"etag": head.etag, "files": sums}, indent=0).encode())


def brought_in(head: Head, folder: Path) -> Mapping[str, bytes]:
    """What the head becomes.

    Args:
        head: as it is; without an ETag where there is none.
        folder: that `write_out` wrote, or any library where there is no head.

    Raises:
        LibraryError: it was not written out from this library, or a file was changed in both.
    """
    found = folder_files(folder)
    if SETTINGS not in found:
        raise NotALibrary(f"{folder} has no {SETTINGS}; to make it a library, run: infinimem init {folder}")
    try:
        before = json.loads(Files(folder).read(EXPORTED, MAX_OWNED) or b"{}")
        etag, sums = before.get("etag"), dict(before.get("files", {}))
    except (AttributeError, ValueError, TypeError, RecursionError):
        etag, sums = None, {}
    if etag == head.etag or not head.etag:
        return found
    if etag is None:
        raise LibraryError(
            f"there is such a library; only what was exported from it comes back, not {folder}"
        )
    mine = {path for path in found.keys() | sums.keys() if digest(found.get(path)) != sums.get(path, "-")}
    both = [
        path
        for path in sorted(mine)
        if digest(head.files.get(path)) != sums.get(path, "-") and head.files.get(path) != found.get(path)
    ]
    if both or sequence.MARK in mine:
        what = "what infinimem notes" if sequence.MARK in mine else both[0]
        raise LibraryError(f"{what} was changed in {folder} and in the fleet; export anew, and edit that")
    others = {path: data for path, data in head.files.items() if path not in mine}
    return others | {path: found[path] for path in mine & found.keys()}
