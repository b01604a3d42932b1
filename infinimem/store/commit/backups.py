"""Files that a transaction displaced, kept for a day.

An editor that held one open may still write to it: that version is in no folder that anyone looks at, so it
is looked for at the next opening and brought back. Writes later than that are outside the promise
(docs/RELIABILITY.md).

    .infinimem/displaced/0007/   the staging of a finished transaction, its slots now hold what was displaced
                                 done   the steps, and the sha256 of each slot and path
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from infinimem.errors import LibraryError
from infinimem.store import disk
from infinimem.store.commit.install import CONFLICTS, Installation, Step
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import located
from infinimem.store.listing import explained

DISPLACED = ".infinimem/displaced"
DAY = 86_400.0
SETTLED = 60.0
"""Seconds after which a file that was looked at is not looked at again."""
LATEST = 8
"""Transactions that are looked at after each; all of them would take the square of a large import's time."""


def discard(files: Files, folder: str) -> None:
    """Remove a staging folder that nothing was committed from, or what else has its place."""
    for name in files.names(folder):
        files.remove(f"{folder}/{name}", durable=False)
    with explained("remove", folder), suppress(FileNotFoundError), located(files.root, folder) as at:
        try:
            disk.remove_folder(at)
        except NotADirectoryError:
            disk.unlink(at)


def clear(files: Files) -> None:
    """Drop all that is kept."""
    for name in files.names(DISPLACED):
        discard(files, f"{DISPLACED}/{name}")


def keep(files: Files, folder: str, steps: Sequence[Step]) -> None:
    """Drop the manifest of a finished transaction, durably, and put its staging aside.

    A manifest that came back after a later transaction would move lines a second time. A disk that has no
    room for what is put aside does not stop it.
    """
    done = [
        {
            "step": step.to_json(),
            "slot": slot.rpartition("/")[2],
            "was": digest(files.read(slot, MAX_OWNED)),
            "now": digest(files.read(step.path, MAX_OWNED)),
        }
        for step in steps
        for slot in files.beside(step.slot)
    ]
    files.remove(f"{folder}/manifest")
    name = folder.rpartition("/")[2]
    with suppress(LibraryError):
        files.stage(f"{folder}/done", json.dumps(done).encode(), durable=False)
        if name in files.names(DISPLACED):
            discard(files, f"{DISPLACED}/{name}")
        files.rename(folder, f"{DISPLACED}/{name}")


def waiting(files: Files) -> bool:
    """Whether `recheck` has anything to do."""
    return bool(files.names(DISPLACED))


def recheck(files: Files, now: float, newest: int | None = None) -> None:
    """Bring back what was written to a displaced file since, and drop those older than a day.

    Args:
        now: seconds since 1970. The caller holds the lock.
        newest: look at so many transactions, the latest; None for all. The next opening looks at the others.
    """
    names = sorted(files.names(DISPLACED), key=lambda name: (len(name), name))
    for name in names if newest is None else names[-newest:]:
        folder = f"{DISPLACED}/{name}"
        found = files.lstat(folder)
        age = now - found.st_mtime if found is not None else 0.0
        if age > DAY:
            discard(files, folder)
        elif "done" in files.names(folder):
            _bring_back(files, folder)
            if age > SETTLED:
                files.remove(f"{folder}/done", durable=False)


def _bring_back(files: Files, folder: str) -> None:
    # A list that a loss of power tore is passed over: no editor outlives that.
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        listed = json.loads(files.read(f"{folder}/done", MAX_OWNED) or b"")
        late = []
        for kept in listed:
            theirs = files.read(f"{folder}/{kept['slot']}", MAX_OWNED)
            if theirs is not None and digest(theirs) != kept["was"]:
                step = Step.from_json(kept["step"])
                _take_in(files, step, f"{folder}/{kept['slot']}", theirs, kept["now"])
                late.append({**kept, "was": digest(theirs), "now": digest(files.read(step.path, MAX_OWNED))})
            else:
                late.append(kept)
        if late != listed:
            files.stage(f"{folder}/done", json.dumps(late).encode(), durable=False)


def _take_in(files: Files, step: Step, slot: str, theirs: bytes, ours: str) -> None:
    """A late version: into its place if what stands there is `ours` still, else aside for a person."""
    if digest(files.read(step.path, MAX_OWNED)) == ours:
        Installation(files, replace(step, slot=f"{slot}.late"), step.moves).adopt(theirs)
        files.sync_folder_of(step.path)
    else:
        aside = f"{CONFLICTS}/{slot.split('/')[-2]}-late-{step.path.replace('/', '-')}"
        files.stage(aside, theirs)
        files.sync_folder_of(aside)
