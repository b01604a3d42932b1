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
from infinimem.store.commit.install import CONFLICTS, NAMED, Installation, Moves, Step, document, install
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import explained, located
from infinimem.store.spec import JOURNAL
from infinimem.store.state import last_seen
from infinimem.store.state.last_seen import Changes, SeenLine

DISPLACED = ".infinimem/displaced"
DAY = 86_400.0
SETTLED = 60.0
"""Seconds after which a file that was looked at is not looked at again."""
LATEST = 8
"""Transactions that are looked at after each; all of them would take the square of a large import's time."""


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
    """Drop all that is kept."""
    for name in files.names(DISPLACED):
        _discard(files, f"{DISPLACED}/{name}")


def _put_aside(files: Files, folder: str, steps: Sequence[Step]) -> None:
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
            _discard(files, f"{DISPLACED}/{name}")
        files.rename(folder, f"{DISPLACED}/{name}")


def displaced(files: Files) -> bool:
    """Whether `recheck` has anything to do."""
    return bool(files.names(DISPLACED))


def recheck(files: Files, now: float, newest: int | None = None) -> None:
    """Bring back what was written to a displaced file since, and drop those older than a day.

    Args:
        now: seconds since 1970. The caller holds the lock.
        newest: look at so many transactions, the latest, and at the oldest; None for all. The next opening
            looks at the others.
    """
    names = sorted(files.names(DISPLACED), key=lambda name: (len(name), name))
    for name in names if newest is None else dict.fromkeys([*names[:1], *names[-newest:]]):
        folder = f"{DISPLACED}/{name}"
        found = files.lstat(folder)
        age = now - found.st_mtime if found is not None else 0.0
        if there := "done" in files.names(folder):
            _bring_back(files, folder)
        if age > DAY:
            _discard(files, folder)
        elif there and age > SETTLED:
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


FOLDER = ".infinimem/tx"


class Conflict(LibraryError):
    """Someone saved a file that a transaction was made from."""


@dataclass(frozen=True)
class Change:
    """One file: its bytes before and after; None where there is no file.

    `moves` is what is to happen to a person's version: nothing where lines were only signed.
    """

    path: str
    old: bytes | None
    new: bytes | None
    moves: Moves = field(default_factory=Moves)

    @property
    def shrinks(self) -> bool:
        return len(self.new or b"") < len(self.old or b"")


@dataclass(frozen=True)
class Manifest:
    """What a transaction does: the files, and what is seen of them afterwards."""

    steps: tuple[Step, ...]
    notice: Changes

    def to_bytes(self) -> bytes:
        rows = {seq: line and (line.doc_id, line.line) for seq, line in self.notice.items()}
        steps = [step.to_json() for step in self.steps]
        return json.dumps({"steps": steps, "notice": rows}).encode()  # "indent" would take ten times as long

    @classmethod
    def parse(cls, data: bytes) -> Manifest | None:
        """None where there is none, or one that cannot be read: it was never committed."""
        try:
            found = json.loads(data)
            notice = {int(seq): line and SeenLine(*line) for seq, line in found["notice"].items()}
            return cls(tuple(map(Step.from_json, found["steps"])), notice)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


class Transaction:
    """A set of changes under a number; nothing is touched before `commit`.

    Args:
        files: the library's files.
        number: that of the receipt.
        notice: what the list of last seen lines (state/last_seen.py) says afterwards.
    """

    def __init__(self, files: Files, number: int, notice: Changes) -> None:
        self._files = files
        self._folder = f"{FOLDER}/{number:04d}"
        self._changes: list[Change] = []
        self._notice = notice

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
            self._files.must_be_writable(change.path)
            if change.old is None and self._files.read(change.path, limit=MAX_OWNED) is None:
                self._files.must_be_free(change.path)
        try:
            steps = self._staged()
        except LibraryError:  # what is kept for a day gives way to what is new
            _discard(self._files, self._folder)
            clear_displaced(self._files)
            steps = self._staged()
        for step in steps:
            if digest(self._files.read(step.path, MAX_OWNED)) != step.old:
                _discard(self._files, self._folder)
                raise Conflict(f"{step.path} changed while it was being written; try again")
        manifest = Manifest(tuple(steps), self._notice)
        self._files.stage(f"{self._folder}/manifest.new", manifest.to_bytes())
        self._files.sync_folder_of(f"{self._folder}/manifest")  # or it might outlive what it names
        self._files.rename(f"{self._folder}/manifest.new", f"{self._folder}/manifest")
        self._files.sync_folder_of(f"{self._folder}/manifest")
        _finish(self._files, self._folder, manifest)

    def _staged(self) -> list[Step]:
        return [self._stage(n, change) for n, change in enumerate(sorted(self._changes, key=_order), 1)]

    def _stage(self, number: int, change: Change) -> Step:
        slot = f"{self._folder}/{number}.bin"
        if change.new is not None:
            self._files.stage(slot, change.new, mode_of=change.path)
        return Step(change.path, digest(change.old), digest(change.new), slot, change.moves)


def _order(change: Change) -> tuple[bool, bool, bool, str]:
    """Lines come where they go before they vanish where they were, and the receipt is last: a crash in
    between may show a line twice for a moment, never nowhere."""
    return change.path.startswith(JOURNAL), change.new is None, change.shrinks, change.path


def unfinished(files: Files) -> bool:
    """Whether a crash left anything behind."""
    return bool(files.names(FOLDER))


def recover(files: Files) -> None:
    """Finish or drop what a crash left behind. Idempotent; the caller holds the lock."""
    for name in files.names(FOLDER):
        folder = f"{FOLDER}/{name}"
        manifest = Manifest.parse(files.read(f"{folder}/manifest", limit=MAX_OWNED) or b"")
        if manifest is None:
            _discard(files, folder)
        else:
            _finish(files, folder, manifest)


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
        done = install(files, step, held)
        notes += [note for note in done.notes if note not in notes]
        held |= done.stayed
    for step in steps:
        if step not in moving:
            tells = step.old == digest(None) and (held or notes)  # its own receipt, not one that changes
            install(files, _amended(files, step, moving, held, notes) if tells else step)
    for path in {step.path.rpartition("/")[0]: step.path for step in steps}.values():
        files.sync_folder_of(path)
    last_seen.note(files, _noticed(files, manifest))
    _put_aside(files, folder, steps)


def _noticed(files: Files, manifest: Manifest) -> Changes:
    """What is seen, as far as it came so: lines that stayed where they were are not seen elsewhere."""
    now = {step.path: files.read(step.path, MAX_OWNED) for step in manifest.steps}
    # Of a file that is as it was planned, what is seen is what was planned.
    there = {
        step.path.removesuffix(".md"): {place.seq for place in document(step.path, now[step.path]).entries}
        for step in manifest.steps
        if digest(now[step.path]) != step.new
    }
    return {
        seq: line
        for seq, line in manifest.notice.items()
        if line is None or line.doc_id not in there or seq in there[line.doc_id]
    }


def _withdrawn(files: Files, steps: Sequence[Step]) -> set[int]:
    """Lines that a person deleted or edited before they were on their way, after a crash: theirs stands."""
    found = {step.path: files.read(step.path, MAX_OWNED) for step in steps}
    waiting = {a.seq for step in steps if digest(found[step.path]) == step.old for a in step.moves.come}
    held: set[int] = set()
    for step in steps:
        if waiting and step.moves.gone and digest(found[step.path]) not in (step.old, step.new):
            there = {(p.seq, p.entry.line) for p in document(step.path, found[step.path]).entries}
            held |= {line[0] for line in step.moves.gone if line not in there and line[0] in waiting}
    return held


def _stayed(files: Files, steps: Sequence[Step]) -> set[int]:
    """Lines that found no room before a crash: the receipt that it left does not name them, and holds."""
    stayed: set[int] = set()
    for step in steps:
        own = step.path.startswith(JOURNAL) and step.old == digest(None)
        if own and (left := files.read(step.path, MAX_OWNED)) is not None:
            planned = files.read(step.slot, MAX_OWNED)
            stayed |= _told(step.path, planned) - _told(step.path, left)
    return stayed


def _told(path: str, data: bytes | None) -> set[int]:
    """The lines that a receipt names."""
    from infinimem.store.receipts import parse_receipt

    return {row.seq for row in parse_receipt(document(path, data)).rows}


def _amended(
    files: Files, step: Step, steps: Sequence[Step], held: Collection[int], notes: Sequence[str]
) -> Step:
    """The step of a receipt that tells what came otherwise than planned."""
    from infinimem.store.receipts import amend

    planned = files.read(step.slot, MAX_OWNED)
    if planned is None or digest(planned) != step.new:
        return step
    data = amend(planned, held, notes, {s.path.removesuffix(".md"): _now(files, s) for s in steps})
    slot = f"{step.slot}.{digest(data)[:NAMED]}"
    files.stage(slot, data)
    return replace(step, new=digest(data), slot=slot)


def _now(files: Files, step: Step) -> str:
    return digest(files.read(step.path, MAX_OWNED))
