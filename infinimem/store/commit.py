"""Several files replaced as one: staged, committed by a manifest, installed, and finished after a crash.

In: changes of files. Out: the files as they should be. Promise: after a crash either all changes are there or
none, and what a person saved meanwhile is kept.

    .infinimem/tx/0007/     1-n.bin    new contents, durable
                            manifest   paths, old and new sha256, moves; its rename is the commit point
    .infinimem/displaced/   what stood there before, for a day: an editor may still hold it open
    .infinimem/conflicts/   what could not be put in its place

A file is installed by exchange, so that what it displaces can be looked at. Where that is not what the
transaction was made from, a person saved it in between: the moves are made on their version instead, and
exchanged again. After ATTEMPTS theirs stays, and the lines that were to come wait in conflicts/ and where
they came from. The caller holds the lock. Source: docs/FORMAT.md, docs/RELIABILITY.md.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from typing import Any, NamedTuple

from infinimem.errors import LibraryError
from infinimem.law import Line, conserved
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.spec import folders
from infinimem.store import disk
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import explained, is_inside, located, shows
from infinimem.store.spec import JOURNAL
from infinimem.store.state import Changes, SeenLine, note

FOLDER, DISPLACED, CONFLICTS = ".infinimem/tx", ".infinimem/displaced", ".infinimem/conflicts"
DAY = 86_400.0
SETTLED = 60.0
"""Seconds after which a file that was looked at is not looked at again."""
LATEST = 8
"""Transactions that are looked at after each; all of them would take the square of a large import's time."""
NAMED = 12
"""Characters of a sha256 in the name of a slot."""
ATTEMPTS = 3
"""How often the moves are made anew for someone who keeps saving."""


class Conflict(LibraryError):
    """Someone saved a file that a transaction was made from."""


class Arrival(NamedTuple):
    """A line that comes to a section; level 0 is a document's preamble, or its end."""

    seq: int
    line: str
    level: int = 0
    title: str = ""


@dataclass(frozen=True)
class Moves:
    """Lines that leave a document, and lines that come to it."""

    gone: tuple[Line, ...] = ()
    come: tuple[Arrival, ...] = ()

    @classmethod
    def between(cls, old: Document | None, new: Document | None) -> Moves:
        """Return what was moved to make `new` of `old`; None for no file."""
        before, after = old.entries if old else (), new.entries if new else ()
        headings = new.headings if new else ()
        had, has = {place.seq for place in before}, {place.seq for place in after}
        lines = [heading.line for heading in headings]
        come = []
        for place in (place for place in after if place.seq not in had):
            above = bisect_left(lines, place.start_line)
            section = (h.level, h.title) if above and (h := headings[above - 1]) else (0, "")
            come.append(Arrival(place.seq, place.entry.line, *section))
        gone = ((place.seq, place.entry.line) for place in before if place.seq not in has)
        return cls(tuple(gone), tuple(come))

    def without(self, seqs: Collection[int]) -> Moves:
        return Moves(
            tuple(line for line in self.gone if line[0] not in seqs),
            tuple(arrival for arrival in self.come if arrival.seq not in seqs),
        )


@dataclass(frozen=True)
class FileChange:
    """One file, its bytes before and after, None for no file; and what is to happen to a person's version."""

    path: str
    old: bytes | None
    new: bytes | None
    moves: Moves = field(default_factory=Moves)


@dataclass(frozen=True)
class FileStep:
    """A change in a manifest: sha256 before and after, the slot of its staged contents, the moves."""

    path: str
    old: str
    new: str
    slot: str
    moves: Moves

    def to_json(self) -> dict[str, Any]:
        named = {"path": self.path, "old": self.old, "new": self.new, "slot": self.slot}
        return {**named, "gone": self.moves.gone, "come": self.moves.come}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileStep:
        """Read it back; KeyError, TypeError or ValueError if it is none of ours, but came with a folder."""
        path, old, new, slot = (str(data[name]) for name in ("path", "old", "new", "slot"))
        if not (shows(path) and is_inside(path) and slot.startswith(".infinimem/") and is_inside(slot)):
            raise ValueError(f"not a step of a transaction: {path!r} from {slot!r}")
        gone = tuple((int(seq), str(line)) for seq, line in data.get("gone", ()))
        come = (
            Arrival(int(seq), str(line), int(level), str(title))
            for seq, line, level, title in data.get("come", ())
        )
        return cls(path, old, new, slot, Moves(gone, tuple(come)))


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

    def order(change: FileChange) -> tuple[bool, ...]:
        # Lines come where they go before they vanish where they were, and the receipt is last: a crash in
        # between may show a line twice for a moment, never nowhere.
        shrinks = len(change.new or b"") < len(change.old or b"")
        return change.path.startswith(JOURNAL), change.new is None, shrinks

    folder = f"{FOLDER}/{number:04d}"
    by_path = sorted((one for one in changes if one.old != one.new), key=lambda change: change.path)
    changes = sorted(by_path, key=order)
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
    note(files, seen=_noticed(files, manifest))
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
    there = {one.path.removesuffix(".md"): _now(files, one.path) for one in steps}
    data = amend(document(step.path, planned), held, notes, there)
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


# ── one file ───────────────────────────────────────────────────────────────────────────────────


def document(path: str, data: bytes | None) -> Document:
    doc_id = path.removesuffix(".md")
    return Document.empty(doc_id) if data is None else Document.parse(doc_id, data)


class Installation:
    """A step on its way to its path, but for lines `held` back. Names are not durable when it is done.

    `stayed` are the lines that had to stay where they were, `notes` what else came otherwise than planned.
    """

    def __init__(self, files: Files, step: FileStep, held: Collection[int] = ()) -> None:
        self.stayed: set[int] = set()
        self.notes: list[str] = []
        self._files = files
        self._step = step
        self._moves = step.moves.without(held)

    def run(self) -> None:
        step, standing = self._step, self._read(self._step.path)
        now = digest(standing)
        if self.bring_back() or now == step.new:
            return
        planned = now == step.old and self._moves == step.moves and digest(self._read(step.slot)) == step.new
        self._settle(standing, standing, step.slot if planned else "")

    def bring_back(self) -> bool:
        """Put a version in place that a person saved, and that stands in the staging folder alone.

        A crash left it there, or an editor wrote to a file that was displaced. A slot is named after what was
        staged in it; what else it holds was displaced, by that or on the way back. If a version of theirs
        stands in the path too, nobody knows which is newer: this is set aside.
        """
        step = self._step
        folder, _, name = step.slot.rpartition("/")
        beside = (f"{folder}/{one}" for one in self._files.names(folder, name))
        slots = {slot: self._staged_in(slot) for slot in beside}
        named = (part for slot in slots for part in slot.removeprefix(step.slot).split("."))
        ours = (step.old, step.new, *(part for part in named if len(part) == NAMED))
        for slot, staged in slots.items():
            theirs = self._read(slot)
            if theirs is None or digest(theirs).startswith(ours):
                continue
            standing = self._read(step.path)
            with suppress(ValueError):
                made = replay(self._moves, document(step.path, theirs)).to_bytes()
                if digest(made).startswith(staged) or standing in (theirs, made):
                    continue
                if digest(standing).startswith(staged):
                    self._note_save()
                    self._settle(standing, theirs)
                    self._renamed(slot, made)  # it is brought back once
                    return True
            self._set_aside(theirs, slot)
        return False

    def _settle(self, standing: bytes | None, theirs: bytes | None, slot: str = "") -> None:
        """Put in place what is staged at `slot`, else `theirs` with the moves made on it."""
        for _ in range(ATTEMPTS):
            try:
                made = self._read(slot) if slot else self._made_on(theirs)
            except ValueError:
                break
            if made == standing or self._swap(slot or self._staged(made), made, standing):
                return
            self._note_save()
            standing = theirs = self._read(self._step.path)
            slot = ""
        if not self._moves.come:
            self._note("could not be written; lines that left it may stand there still")
            return
        self.stayed = {arrival.seq for arrival in self._moves.come}
        lines = replay(self._moves, document(self._step.path, None)).to_bytes()
        self._note(f"could not be written; see {self._set_aside(lines)}")

    def _swap(self, slot: str, made: bytes | None, standing: bytes | None) -> bool:
        """Put `made` in place of what is expected; what a person saved there meanwhile goes back at once."""
        path = self._step.path
        if standing is None:
            return self._files.put(slot, path)
        if made is None:
            slot = self._free("out")
            if not self._files.take(path, slot):
                return False
            if self._read(slot) == standing:
                return True
            if not self._files.put(slot, path):
                self._set_aside(self._read(slot), slot)
            return False
        if not self._files.exchange(slot, path):
            return False
        if self._read(slot) == standing:
            return True
        # Theirs goes back. What was saved over ours in that very moment is newer: the other is set aside.
        if self._files.exchange(slot, path) and self._read(slot) != made:
            self._files.exchange(slot, path)
            self._set_aside(self._read(slot), slot)
        return False

    def _staged_in(self, slot: str) -> str:
        """Return how the sha256 begins of what was staged in a slot."""
        if slot == self._step.slot:
            return self._step.new
        name = slot.removeprefix(f"{self._step.slot}.").partition(".")[0]
        return digest(None) if name == "out" else name

    def _read(self, path: str) -> bytes | None:
        return self._files.read(path, MAX_OWNED)

    def _made_on(self, theirs: bytes | None) -> bytes | None:
        """Make the moves on a version; ValueError for a link, a folder, an open fence."""
        path = self._step.path
        if theirs is None:
            if self._files.exists(path) and not self._files.is_plain(path):
                raise ValueError(f"{path} is no file")
            if not self._moves.come:
                return None
        return replay(self._moves, document(path, theirs)).to_bytes()

    def _staged(self, made: bytes | None) -> str:
        """Stage contents in a slot that is named after them, never before they are whole."""
        slot = self._free(digest(made)[:NAMED])
        if made is not None:
            whole = f"{self._step.slot.rpartition('/')[0]}/made"
            self._files.stage(whole, made, mode_of=self._step.path)
            self._files.rename(whole, slot)
        return slot

    def _free(self, name: str) -> str:
        stems = (f"{self._step.slot}.{name}{'.' * (n > 0)}{n or ''}" for n in count())
        return next(slot for slot in stems if not self._files.exists(slot))

    def _note(self, what: str) -> None:
        self.notes = [f"{self._step.path} {what}"]

    def _note_save(self) -> None:
        stays = self._step.path.startswith(folders().whole)
        became = "that version stays" if stays else "its lines moved in that version"
        self._note(f"was saved by someone meanwhile; {became}")

    def _set_aside(self, data: bytes | None, slot: str = "") -> str:
        """Keep what has no place for a person to look at, once if it is of a slot; return where."""
        folder, number, _ = self._step.slot.rsplit("/", 2)
        mark = "late" if folder == DISPLACED else digest(data)[:NAMED]
        path = f"{CONFLICTS}/{number}-{mark}-{self._step.path.replace('/', '-')}"
        self._files.stage(path, data or b"")
        self._files.sync_folder_of(path)
        if slot:
            self._renamed(slot, data)
        return path

    def _renamed(self, slot: str, data: bytes | None) -> None:
        """Name a slot after what is done with it; what was staged there before stays known as ours."""
        before = slot.removeprefix(self._step.slot)[:200]  # a name has 255 bytes at most
        self._files.rename(slot, self._free(f"{digest(data)[:NAMED]}{before}"))


def replay(moves: Moves, theirs: Document) -> Document:
    """Make the moves on another version of the document; ValueError if the lines cannot be read in it.

    A line that a person edited stays as they left it, and one that is there already does not come again, so
    that doing it twice changes nothing.
    """
    there = {place.seq: place.entry.line for place in theirs.entries}
    gone = [line for line in moves.gone if there.get(line[0]) == line[1]]
    document = theirs.without([seq for seq, _ in gone])
    coming = [arrival for arrival in moves.come if arrival.seq not in there]
    if coming and not theirs.lines:
        document = document.with_header({"id": quote(theirs.id)})
    for (level, title), group in groupby(coming, key=lambda arrival: (arrival.level, arrival.title)):
        new = [arrival.line for arrival in group]
        if level and title.casefold() not in {heading.title.casefold() for heading in document.headings}:
            document = document.insert(["", f"{'#' * level} {title}", *new])
        else:
            document = document.insert(new, title)
    lines = [(place.seq, place.entry.line) for place in document.entries]
    before = [(place.seq, place.entry.line) for place in theirs.entries]
    arrived = [(arrival.seq, arrival.line) for arrival in coming]
    if conserved(before, lines, arrived, gone):
        raise ValueError(f"{theirs.id} has no room for the lines that come")
    return document
