"""Several files replaced as one: staged, committed by a manifest, installed, and finished after a crash.

In: changes of files. Out: the files as they should be. Promise: after a crash either all changes are there or
none, and what a person saved meanwhile is kept.

    .infinimem/tx/0007/     1-n.bin    new contents, durable
                            manifest   paths, old and new sha256, moves; its rename is the commit point
    .infinimem/displaced/   what stood there before, for a day: an editor may still hold it open
    .infinimem/conflicts/   what could not be put in its place

A file is installed by exchange, so that what it displaces can be looked at. Where that is not what the
transaction was made from, a person saved it in between: the moves are made on their version instead
(install.py). The caller holds the lock. Source: docs/FORMAT.md, docs/RELIABILITY.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from infinimem.errors import LibraryError
from infinimem.store import disk
from infinimem.store.commit.install import DISPLACED, NAMED, FileStep, Installation, Moves, document
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import explained, located
from infinimem.store.spec import JOURNAL
from infinimem.store.state import last_seen
from infinimem.store.state.last_seen import Changes, SeenLine

FOLDER = ".infinimem/tx"
DAY = 86_400.0
SETTLED = 60.0
"""Seconds after which a file that was looked at is not looked at again."""
LATEST = 8
"""Transactions that are looked at after each; all of them would take the square of a large import's time."""


class Conflict(LibraryError):
    """Someone saved a file that a transaction was made from."""


@dataclass(frozen=True)
class FileChange:
    """One file, its bytes before and after, None for no file; and what is to happen to a person's version."""

    path: str
    old: bytes | None
    new: bytes | None
    moves: Moves = field(default_factory=Moves)


@dataclass(frozen=True)
class Manifest:
    """What a transaction does: the files, what is seen of them afterwards, and lines that stay after all."""

    steps: tuple[FileStep, ...]
    notice: Changes
    held: frozenset[int] = frozenset()

    def write(self, files: Files, folder: str) -> None:
        rows = {seq: line and (line.doc_id, line.line) for seq, line in self.notice.items()}
        values = {"steps": [step.to_json() for step in self.steps], "notice": rows, "held": sorted(self.held)}
        files.stage(f"{folder}/manifest.new", json.dumps(values).encode())  # "indent" takes ten times as long
        files.sync_folder_of(f"{folder}/manifest")  # or it might outlive what it names
        files.rename(f"{folder}/manifest.new", f"{folder}/manifest")
        files.sync_folder_of(f"{folder}/manifest")

    @classmethod
    def read(cls, files: Files, path: str) -> Manifest | None:
        """Read one back; None if it cannot be read: it was never committed."""
        try:
            values = json.loads(files.read(path, MAX_OWNED) or b"")
            notice = {int(seq): line and SeenLine(*line) for seq, line in values["notice"].items()}
            held = frozenset(map(int, values.get("held", ())))
            return cls(tuple(map(FileStep.from_json, values["steps"])), notice, held)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # a loss of power tore it, or it is none of ours


def commit(files: Files, number: int, changes: Sequence[FileChange], notice: Changes) -> None:
    """Write changes under the number of their receipt, and what is last seen of them: stage, decide, install.

    Raises Conflict if a file is no longer what a change was made from, and a LibraryError if the disk
    refused: before the manifest nothing has changed; after it, the next `recover` finishes.
    """

    def order(change: FileChange) -> tuple[bool, bool, bool, str]:
        # Lines come where they go before they vanish where they were, and the receipt is last: a crash in
        # between may show a line twice for a moment, never nowhere.
        shrinks = len(change.new or b"") < len(change.old or b"")
        return change.path.startswith(JOURNAL), change.new is None, shrinks, change.path

    folder = f"{FOLDER}/{number:04d}"
    changes = sorted((change for change in changes if change.old != change.new), key=order)
    for change in changes:
        files.must_be_writable(change.path)
        if change.old is None and files.read(change.path, MAX_OWNED) is None:
            files.must_be_free(change.path)
    steps = tuple(
        FileStep(change.path, digest(change.old), digest(change.new), f"{folder}/{nth}.bin", change.moves)
        for nth, change in enumerate(changes, 1)
    )
    manifest = Manifest(steps, notice)
    try:
        _stage(files, changes, steps)
    except LibraryError:  # what is kept for a day gives way to what is new
        _discard(files, folder)
        clear_displaced(files)
        _stage(files, changes, steps)
    for step in steps:
        if _now(files, step.path) != step.old:
            _discard(files, folder)
            raise Conflict(f"{step.path} changed while it was being written; try again")
    manifest.write(files, folder)
    _finish(files, folder, manifest)


def _stage(files: Files, changes: Sequence[FileChange], steps: Sequence[FileStep]) -> None:
    for change, step in zip(changes, steps, strict=True):
        if change.new is not None:
            files.stage(step.slot, change.new, mode_of=change.path)


def unfinished(files: Files) -> bool:
    return bool(files.names(FOLDER))


def recover(files: Files) -> None:
    """Finish or drop what a crash left behind. Idempotent; the caller holds the lock."""
    for name in files.names(FOLDER):
        folder = f"{FOLDER}/{name}"
        manifest = Manifest.read(files, f"{folder}/manifest")
        if manifest is None:
            _discard(files, folder)
        else:
            _finish(files, folder, manifest)


def _now(files: Files, path: str) -> str:
    return digest(files.read(path, MAX_OWNED))


# ── installing ──────────────────────────────────────────────────────────────────────────────────


def _finish(files: Files, folder: str, manifest: Manifest) -> None:
    """Take every step of a manifest that is not taken yet, the receipt last, then drop the manifest.

    Where lines come is looked at again before they leave where they were, and once more after: an editor
    that saved what it had read before would have taken them out.
    """
    steps = manifest.steps
    held = set(manifest.held | _withdrawn(files, steps))
    notes: list[str] = []
    moving = [step for step in steps if not step.path.startswith(JOURNAL)]
    comings = [step for step in moving if step.moves.come]
    for step in [*comings, *comings, *(step for step in moving if not step.moves.come), *comings]:
        installation = Installation(files, step, held)
        installation.run()
        notes += [note for note in installation.notes if note not in notes]
        held |= installation.stayed
    if held != manifest.held:  # a crash from here on finds them where the receipt will say
        manifest = replace(manifest, held=frozenset(held))
        manifest.write(files, folder)
    for step in steps:
        if step not in moving:
            own = step.old == digest(None)  # the receipt of this transaction, not one that it changes
            amended = _amended(files, step, moving, held, notes) if own and (held or notes) else step
            Installation(files, amended).run()
    for path in {step.path.rpartition("/")[0]: step.path for step in steps}.values():
        files.sync_folder_of(path)
    last_seen.note(files, _noticed(files, manifest))
    _put_aside(files, folder)


def _noticed(files: Files, manifest: Manifest) -> Changes:
    """Return what is seen: lines that stayed where they were are not seen elsewhere."""
    there: dict[str, set[int]] = {}  # of files that are not as planned
    for step in manifest.steps:
        data = files.read(step.path, MAX_OWNED)
        if digest(data) != step.new:
            standing = document(step.path, data)
            there[standing.id] = {place.seq for place in standing.entries}
    return {
        seq: line
        for seq, line in manifest.notice.items()
        if line is None or line.doc_id not in there or seq in there[line.doc_id]
    }


def _withdrawn(files: Files, steps: Sequence[FileStep]) -> set[int]:
    """Return lines that a person deleted or edited after a crash, before they were on their way."""
    standing = {step.path: files.read(step.path, MAX_OWNED) for step in steps}
    waiting = {a.seq for step in steps if digest(standing[step.path]) == step.old for a in step.moves.come}
    held: set[int] = set()
    for step in steps:
        data = standing[step.path]
        if waiting and step.moves.gone and digest(data) not in (step.old, step.new):
            there = {(place.seq, place.entry.line) for place in document(step.path, data).entries}
            held |= {line[0] for line in step.moves.gone if line not in there and line[0] in waiting}
    return held


def _amended(
    files: Files, step: FileStep, steps: Sequence[FileStep], held: Collection[int], notes: Sequence[str]
) -> FileStep:
    from infinimem.store.receipts import amend

    planned = files.read(step.slot, MAX_OWNED)
    if planned is None or digest(planned) != step.new:
        return step
    data = amend(planned, held, notes, {s.path.removesuffix(".md"): _now(files, s.path) for s in steps})
    slot = f"{step.slot}.{digest(data)[:NAMED]}"
    files.stage(slot, data)
    return replace(step, new=digest(data), slot=slot)


# ── what was displaced ──────────────────────────────────────────────────────────────────────────


def _put_aside(files: Files, folder: str) -> None:
    """Take a finished transaction's manifest away, durably, and keep its staging for a day.

    A manifest that came back after a later transaction would move lines a second time. A disk that has no
    room for what is kept does not stop it.
    """
    files.rename(f"{folder}/manifest", f"{folder}/done")
    files.sync_folder_of(f"{folder}/done")
    name = folder.rpartition("/")[2]
    with suppress(LibraryError):
        if name in files.names(DISPLACED):
            _discard(files, f"{DISPLACED}/{name}")
        files.rename(folder, f"{DISPLACED}/{name}")


def _discard(files: Files, folder: str) -> None:
    """Remove a staging folder that nothing was committed from, or what else has its place."""
    for name in files.names(folder):
        files.remove(f"{folder}/{name}", durable=False)
    with explained("remove", folder), suppress(FileNotFoundError), located(files.root, folder) as at:
        try:
            disk.remove_folder(at)
        except NotADirectoryError:
            disk.unlink(at)


def clear_displaced(files: Files) -> None:
    for name in files.names(DISPLACED):
        _discard(files, f"{DISPLACED}/{name}")


def displaced(files: Files) -> bool:
    return bool(files.names(DISPLACED))


def recheck(files: Files, now: float, newest: int | None = None) -> None:
    """Bring back what was written to a displaced file since, and drop those older than a day, under the lock.

    Of many transactions only the `newest` are looked at, and the oldest; the next opening looks at the rest.
    """
    names = sorted(files.names(DISPLACED), key=lambda name: (len(name), name))
    for name in names if newest is None else dict.fromkeys([*names[:1], *names[-newest:]]):
        folder = f"{DISPLACED}/{name}"
        info = files.lstat(folder)
        age = now - info.st_mtime if info is not None else 0.0
        if there := "done" in files.names(folder):
            manifest = Manifest.read(files, f"{folder}/done") or Manifest((), {})
            for step in manifest.steps:
                kept = replace(step, slot=f"{folder}/{step.slot.rpartition('/')[2]}")
                if Installation(files, kept, manifest.held).bring_back():
                    files.sync_folder_of(step.path)
        if age > DAY:
            _discard(files, folder)
        elif there and age > SETTLED:
            files.remove(f"{folder}/done", durable=False)
