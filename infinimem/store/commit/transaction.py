"""Several files replaced as one: staged, committed by a manifest, installed, and finished after a crash.

In: changes of files. Out: the files as they should be. Promise: after a crash either all changes are there or
none, and what a person saved meanwhile is kept.

    Transaction(…) -> put … -> commit
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
from infinimem.store.commit.install import CONFLICTS, NAMED, FileStep, Installation, Moves, document
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import explained, located
from infinimem.store.spec import JOURNAL
from infinimem.store.state import Changes, SeenLine, note

FOLDER, DISPLACED = ".infinimem/tx", ".infinimem/displaced"
DAY = 86_400.0
SETTLED = 60.0
"""Seconds after which a file that was looked at is not looked at again."""
LATEST = 8
"""Transactions that are looked at after each; all of them would take the square of a large import's time."""
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What JSON that a loss of power tore, or that is none of ours, raises."""


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
    """What a transaction does: the files, and what is seen of them afterwards."""

    steps: tuple[FileStep, ...]
    notice: Changes

    def to_bytes(self) -> bytes:
        rows = {seq: line and (line.doc_id, line.line) for seq, line in self.notice.items()}
        steps = [step.to_json() for step in self.steps]
        return json.dumps({"steps": steps, "notice": rows}).encode()  # "indent" would take ten times as long

    @classmethod
    def parse(cls, data: bytes) -> Manifest | None:
        """Read one back; None if it cannot be read: it was never committed."""
        try:
            values = json.loads(data)
            notice = {int(seq): line and SeenLine(*line) for seq, line in values["notice"].items()}
            return cls(tuple(map(FileStep.from_json, values["steps"])), notice)
        except UNREADABLE:
            return None


class Transaction:
    """Changes under the number of their receipt, and what is last seen of them; written by `commit`."""

    def __init__(self, files: Files, number: int, notice: Changes) -> None:
        self._files = files
        self._folder = f"{FOLDER}/{number:04d}"
        self._changes: list[FileChange] = []
        self._notice = notice

    def put(self, change: FileChange) -> None:
        """Add a change; one that changes nothing is left out."""
        if change.old != change.new:
            self._changes.append(change)

    def commit(self) -> None:
        """Stage, write the manifest, install.

        Raises Conflict if a file is no longer what the change was made from, and a LibraryError if the disk
        refused: before the manifest nothing has changed; after it, the next `recover` finishes.
        """
        files, folder = self._files, self._folder
        for change in self._changes:
            files.must_be_writable(change.path)
            if change.old is None and files.read(change.path, MAX_OWNED) is None:
                files.must_be_free(change.path)
        try:
            steps = self._staged()
        except LibraryError:  # what is kept for a day gives way to what is new
            _discard(files, folder)
            clear_displaced(files)
            steps = self._staged()
        for step in steps:
            if _now(files, step.path) != step.old:
                _discard(files, folder)
                raise Conflict(f"{step.path} changed while it was being written; try again")
        manifest = Manifest(tuple(steps), self._notice)
        files.stage(f"{folder}/manifest.new", manifest.to_bytes())
        files.sync_folder_of(f"{folder}/manifest")  # or it might outlive what it names
        files.rename(f"{folder}/manifest.new", f"{folder}/manifest")
        files.sync_folder_of(f"{folder}/manifest")
        _finish(files, folder, manifest)

    def _staged(self) -> list[FileStep]:
        def order(change: FileChange) -> tuple[bool, ...]:
            # Lines come where they go before they vanish where they were, and the receipt is last: a crash in
            # between may show a line twice for a moment, never nowhere.
            shrinks = len(change.new or b"") < len(change.old or b"")
            return change.path.startswith(JOURNAL), change.new is None, shrinks

        steps = []
        by_path = sorted(self._changes, key=lambda change: change.path)
        for number, change in enumerate(sorted(by_path, key=order), 1):
            slot = f"{self._folder}/{number}.bin"
            if change.new is not None:
                self._files.stage(slot, change.new, mode_of=change.path)
            steps.append(FileStep(change.path, digest(change.old), digest(change.new), slot, change.moves))
        return steps


def unfinished(files: Files) -> bool:
    return bool(files.names(FOLDER))


def recover(files: Files) -> None:
    """Finish or drop what a crash left behind. Idempotent; the caller holds the lock."""
    for name in files.names(FOLDER):
        folder = f"{FOLDER}/{name}"
        manifest = Manifest.parse(files.read(f"{folder}/manifest", MAX_OWNED) or b"")
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
    held = _withdrawn(files, steps) | _stayed(files, steps)
    notes: list[str] = []
    moving = [step for step in steps if not step.path.startswith(JOURNAL)]
    comings = [step for step in moving if step.moves.come]
    for step in [*comings, *comings, *(step for step in moving if not step.moves.come), *comings]:
        done = Installation(files, step, held).run()
        notes += [note for note in done.notes if note not in notes]
        held |= done.stayed
    for step in steps:
        if step not in moving:
            own = step.old == digest(None)  # the receipt of this transaction, not one that it changes
            amended = _amended(files, step, moving, held, notes) if own and (held or notes) else step
            Installation(files, amended).run()
    for path in {step.path.rpartition("/")[0]: step.path for step in steps}.values():
        files.sync_folder_of(path)
    note(files, seen=_noticed(files, manifest))
    _put_aside(files, folder, steps)


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


def _stayed(files: Files, steps: Sequence[FileStep]) -> set[int]:
    """Return lines that found no room before a crash: the receipt that it left does not name them."""
    from infinimem.store.receipts import parse_receipt

    stayed: set[int] = set()
    for step in steps:
        left = files.read(step.path, MAX_OWNED) if step.path.startswith(JOURNAL) else None
        if left is not None and step.old == digest(None):
            told, planned = (
                {row.seq for row in parse_receipt(document(step.path, data)).rows}
                for data in (left, files.read(step.slot, MAX_OWNED))
            )
            stayed |= planned - told
    return stayed


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


def _put_aside(files: Files, folder: str, steps: Sequence[FileStep]) -> None:
    """Drop the manifest of a finished transaction, durably, and keep its staging for a day.

    A manifest that came back after a later transaction would move lines a second time. A disk that has no
    room for what is kept does not stop it.
    """
    done = [
        {
            "step": step.to_json(),
            "slot": slot.rpartition("/")[2],
            "was": _now(files, slot),
            "now": _now(files, step.path),
        }
        for step in steps
        for slot in files.beside(step.slot)
    ]
    files.remove(f"{folder}/manifest")
    name = folder.rpartition("/")[2]
    with suppress(LibraryError):
        files.stage(f"{folder}/done", json.dumps(done).encode(), durable=False)
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
            with suppress(*UNREADABLE):  # no editor outlives the loss of power that tore it
                _bring_back(files, folder)
        if age > DAY:
            _discard(files, folder)
        elif there and age > SETTLED:
            files.remove(f"{folder}/done", durable=False)


def _bring_back(files: Files, folder: str) -> None:
    """Put late versions into place if what stands there is ours still, else set them aside for a person."""
    listed = json.loads(files.read(f"{folder}/done", MAX_OWNED) or b"")
    late = []
    for kept in listed:
        slot = f"{folder}/{kept['slot']}"
        theirs = files.read(slot, MAX_OWNED)
        if theirs is not None and digest(theirs) != kept["was"]:
            step = FileStep.from_json(kept["step"])
            if _now(files, step.path) == kept["now"]:
                Installation(files, replace(step, slot=f"{slot}.late")).adopt(theirs)
                path = step.path
            else:
                path = f"{CONFLICTS}/{slot.split('/')[-2]}-late-{step.path.replace('/', '-')}"
                files.stage(path, theirs)
            files.sync_folder_of(path)
            kept = {**kept, "was": digest(theirs), "now": _now(files, step.path)}
        late.append(kept)
    if late != listed:
        files.stage(f"{folder}/done", json.dumps(late).encode(), durable=False)
