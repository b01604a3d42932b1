"""One file of a transaction put in its place, whatever a person saves there meanwhile.

    staged contents <-exchange-> the file        what was displaced is what was expected: done
                                                 it is not: a person saved; make the moves on their version,
                                                 and exchange again

After ATTEMPTS theirs stays, and the lines that were to come wait in .infinimem/conflicts/ and where they
came from. `Moves` are what lies between two versions of a document; `replay` makes them on another version.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

from infinimem.law import Line, conserved
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.spec import folders
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.folders import is_inside, shows

CONFLICTS, DISPLACED = ".infinimem/conflicts", ".infinimem/displaced"
NAMED = 12
"""Characters of a sha256 in the name of a slot."""
ATTEMPTS = 3
"""How often the moves are made anew for someone who keeps saving."""


@dataclass(frozen=True)
class Arrival:
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
class FileStep:
    """A change in a manifest: sha256 before and after, the slot of its staged contents, the moves."""

    path: str
    old: str
    new: str
    slot: str
    moves: Moves

    def to_json(self) -> dict[str, Any]:
        named = {"path": self.path, "old": self.old, "new": self.new, "slot": self.slot}
        come = [(a.seq, a.line, a.level, a.title) for a in self.moves.come]
        return {**named, "gone": self.moves.gone, "come": come}

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
        slots = {slot: self._staged_in(slot) for slot in self._files.beside(step.slot)}
        ours = (step.old, step.new, *slots.values())
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
                    self._files.rename(slot, self._free(digest(made)[:NAMED]))  # it is brought back once
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
            self._files.rename(slot, self._free(digest(data)[:NAMED]))
        return path


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
