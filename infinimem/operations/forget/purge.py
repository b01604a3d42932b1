"""The machine state after a `forget`: what was displaced, old rows of lists, staged copies, caches.

It needs to know no text, so that a crash on the way can be finished by anyone.

    .infinimem/forgetting    this is still to be done; says nothing
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from infinimem.store.commit import backups
from infinimem.store.files import STAGED, Files
from infinimem.store.state import last_seen, rejected, tails
from infinimem.user_folders import cache_root, caches

BEGUN = ".infinimem/forgetting"


def begin(files: Files) -> None:
    """Note durably that `finish` is to be done."""
    files.replace(BEGUN, b"")


def waiting(files: Files) -> bool:
    """Whether a `forget` did not come to its end."""
    return files.exists(BEGUN)


def finish(files: Files) -> None:
    """Drop what may still hold the texts. The caller holds the lock, and nothing is under way."""
    if not waiting(files):
        return
    backups.clear(files)
    for name in files.names(rejected.FOLDER):
        files.remove(f"{rejected.FOLDER}/{name}")
    if files.exists(tails.INTENT):
        files.remove(tails.INTENT)
    last_seen.compact(files)
    for folder, folders, names in os.walk(files.root):
        folders[:] = [name for name in folders if name != ".git"]
        if STAGED in names:
            files.remove((Path(folder) / STAGED).relative_to(files.root).as_posix(), durable=False)
    files.dirty_list.drop()
    _drop_caches()
    files.remove(BEGUN)


def _drop_caches() -> None:
    """Delete them whole. Moved first: who is building one finds no place for what it read before."""
    root = cache_root()
    if root is not None and not root.is_symlink():
        with suppress(OSError):
            root.rename(root.with_name(f"{root.name}.{os.getpid()}.gone"))
    for cache in caches():
        if not cache.is_symlink():
            shutil.rmtree(cache, ignore_errors=True)
