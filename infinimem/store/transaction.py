"""Several files replaced as one: staged, committed by a manifest, installed, and finished after a crash.

    Transaction(…) -> put … -> commit
    .infinimem/tx/0007/   1-n.bin   new contents, durable
                          manifest  paths, old and new sha256; its rename is the commit point

The caller holds the lock. A crash before the manifest leaves the library as it was; after it, `recover`
installs what is missing. It knows nothing of entries or plans.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass

from infinimem.errors import LibraryError
from infinimem.store import disk
from infinimem.store.files import MAX_OWNED, Files, digest, explained

FOLDER = ".infinimem/tx"


class Conflict(LibraryError):
    """Someone saved a file that a transaction was made from."""


@dataclass(frozen=True)
class Change:
    """One file: its bytes before and after; None where there is no file."""

    path: str
    old: bytes | None
    new: bytes | None


class Transaction:
    """A set of changes under a number; nothing is touched before `commit`."""

    def __init__(self, files: Files, number: int) -> None:
        self._files = files
        self._folder = f"{FOLDER}/{number:04d}"
        self._changes: list[Change] = []

    def put(self, change: Change) -> None:
        """Add a change; one that changes nothing is left out."""
        if change.old != change.new:
            self._changes.append(change)

    def commit(self) -> None:
        """Stage, write the manifest, install.

        Raises:
            Conflict: a file is no longer what the change was made from; nothing was touched.
            LibraryError: the disk refused. Before the manifest nothing has changed; after it, the next
                `recover` finishes.
        """
        for change in self._changes:
            if change.old is None and self._files.read(change.path, limit=MAX_OWNED) is None:
                self._files.must_be_free(change.path)
        steps = []
        # Lines are created where they go before they vanish where they were: a crash between two
        # installs may show a line twice for a moment, never nowhere.
        for number, change in enumerate(sorted(self._changes, key=_growth), 1):
            staged = None
            if change.new is not None:
                staged = f"{self._folder}/{number}.bin"
                self._files.stage(staged, change.new, mode_of=change.path)
            steps.append(
                {
                    "path": change.path,
                    "old": digest(change.old),
                    "new": digest(change.new),
                    "staged": staged,
                    "shrinks": _shrinks(change),
                }
            )
        for change in self._changes:
            if digest(self._files.read(change.path, limit=MAX_OWNED)) != digest(change.old):
                _drop(self._files, self._folder)
                raise Conflict(f"{change.path} changed while it was being written; try again")
        manifest = json.dumps({"steps": steps}, indent=1).encode()
        self._files.stage(f"{self._folder}/manifest.new", manifest)
        self._files.install(f"{self._folder}/manifest.new", f"{self._folder}/manifest")
        if kept := _finish(self._files, self._folder):
            raise Conflict(f"{kept[0]} changed while it was being written; try again")


def _growth(change: Change) -> tuple[bool, bool, str]:
    """Creations and growing files first, shrinking ones next, deletions last."""
    return change.new is None, _shrinks(change), change.path


def _shrinks(change: Change) -> bool:
    return len(change.new or b"") < len(change.old or b"")


def recover(files: Files) -> None:
    """Finish or drop what a crash left behind. Idempotent; the caller holds the lock."""
    root = files.root / FOLDER
    if not root.is_dir():
        return
    for folder in sorted(item.name for item in root.iterdir()):
        if (root / folder / "manifest").is_file():
            _finish(files, f"{FOLDER}/{folder}")
        else:
            _drop(files, f"{FOLDER}/{folder}")


def _finish(files: Files, folder: str) -> list[str]:
    """Install every step of a manifest that is not done yet, then drop the folder.

    A file that a person saved in between stays as it is. Nothing that was on its way there may vanish where
    it was: then nothing is installed at all, or, where that was begun before a crash, nothing that shrinks.

    Returns:
        Paths of such files.
    """
    steps = json.loads(files.read(f"{folder}/manifest", limit=MAX_OWNED) or b'{"steps": []}')["steps"]
    found = {step["path"]: digest(files.read(step["path"], limit=MAX_OWNED)) for step in steps}
    kept = [step["path"] for step in steps if found[step["path"]] not in (step["old"], step["new"])]
    begun = any(found[step["path"]] == step["new"] for step in steps)
    for step in steps:
        if found[step["path"]] != step["old"] or (kept and (step["shrinks"] or not begun)):
            continue
        if step["staged"] is None:
            files.remove(step["path"])
        else:
            files.install(step["staged"], step["path"])
    _drop(files, folder)
    return kept


def _drop(files: Files, folder: str) -> None:
    with explained("remove", folder):
        shutil.rmtree(files.root / folder)
        disk.sync_folder(files.root / FOLDER)
