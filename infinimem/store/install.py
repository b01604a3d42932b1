"""One file of a transaction put in its place, whatever a person saves there meanwhile.

    staged contents <-exchange-> the file        what was displaced is what was expected: done
                                                 it is not: a person saved; make the moves on their version,
                                                 and exchange again

After ATTEMPTS theirs stays, and the lines that were to come wait in .infinimem/conflicts/ and where they
came from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from infinimem.markdown.document import Document
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.replay import Moves, replay

CONFLICTS = ".infinimem/conflicts"
ATTEMPTS = 3
"""How often the moves are made anew for someone who keeps saving."""


@dataclass(frozen=True)
class Step:
    """A change in a manifest: sha256 before and after, the slot of its staged contents, the moves."""

    path: str
    old: str
    new: str
    slot: str
    moves: Moves

    @property
    def deletes(self) -> bool:
        return self.new == digest(None)

    def to_json(self) -> dict[str, Any]:
        """For a manifest."""
        named = {"path": self.path, "old": self.old, "new": self.new, "slot": self.slot}
        return {**named, **self.moves.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        """The inverse of `to_json`.

        Raises:
            KeyError, TypeError, ValueError: `data` is none of ours.
        """
        return cls(data["path"], data["old"], data["new"], data["slot"], Moves.from_json(data))


@dataclass
class Done:
    """What came otherwise than planned: the lines that stayed where they were, and what to say of it."""

    stayed: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def document(path: str, data: bytes | None) -> Document:
    """The parsed file; an empty document where there is none."""
    doc_id = path.removesuffix(".md")
    return Document.empty(doc_id) if data is None else Document.parse(doc_id, data)


def install(files: Files, step: Step, held: Collection[int] = ()) -> Done:
    """Take a step, unless it is taken already. The names are not durable yet.

    Args:
        files: the library's files.
        step: what is to be done.
        held: lines that are not to move after all.
    """
    return _Installation(files, step, step.moves.without(held)).run()


def adopt(files: Files, step: Step, theirs: bytes) -> Done:
    """Put a version in place that someone saved over a file which was displaced already.

    Args:
        step: the step that displaced it; its moves are made on their version too.
        theirs: what they saved.
    """
    return _Installation(files, step, step.moves).adopt(theirs)


class _Unreplayable(Exception):
    """The moves cannot be made on what stands there: a link, a folder, an open fence."""


class _Installation:
    """Contents on their way to a path."""

    def __init__(self, files: Files, step: Step, moves: Moves) -> None:
        self._files = files
        self._step = step
        self._moves = moves
        self._slot = step.slot
        self._theirs: str | None = None
        """Slot of a version that a person saved and that stands nowhere else."""

    def run(self) -> Done:
        step, found, staged = self._step, self._read(self._step.path), self._read(self._step.slot)
        if digest(found) == step.new:
            if staged is None or digest(staged) in (step.old, step.new):
                return Done()
            return self.adopt(staged)  # displaced by an exchange that a crash followed
        planned = digest(found) == step.old and self._moves == step.moves
        if planned and (step.deletes or digest(staged) == step.new):
            return self._settle(found, lambda: staged if not step.deletes else None)
        return self._settle(found, lambda: self._made_on(found))

    def adopt(self, theirs: bytes) -> Done:
        done = self._settle(self._read(self._step.path), lambda: self._made_on(theirs))
        return done if done.notes else self._saved_meanwhile()

    def _settle(self, found: bytes | None, first: Callable[[], bytes | None]) -> Done:
        """Swap until what is displaced is what was expected.

        Args:
            found: what stands there.
            first: makes what is to stand there, in `self._slot`.
        """
        try:
            made = first()
            for attempt in range(ATTEMPTS):
                if made == found:
                    return self._saved_meanwhile() if attempt else Done()
                swapped, theirs = self._swap(made, found)
                if swapped and theirs == found:
                    return self._saved_meanwhile() if attempt else Done()
                self._theirs = self._slot if swapped else None
                found = made if swapped else theirs
                made = self._made_on(theirs)
        except _Unreplayable:
            pass
        return self._given_up(found)

    def _read(self, path: str) -> bytes | None:
        return self._files.read(path, MAX_OWNED)

    def _made_on(self, theirs: bytes | None) -> bytes | None:
        """The moves made on a version, staged in a free slot; None where no file is wanted."""
        path = self._step.path
        if theirs is None:
            if self._files.exists(path) and not self._files.is_plain(path):
                raise _Unreplayable
            if not self._moves.come:
                return None
        try:
            made = replay(self._moves, document(path, theirs)).to_bytes()
        except ValueError:
            raise _Unreplayable from None
        self._slot = next(s for n in count(1) if not self._files.exists(s := f"{self._step.slot}.{n}"))
        self._files.stage(self._slot, made, mode_of=path)
        return made

    def _swap(self, made: bytes | None, found: bytes | None) -> tuple[bool, bytes | None]:
        """Put `made`, staged in the slot, in place of what was found.

        Returns:
            Whether that was done, and what it displaced; if not, what stands there instead.
        """
        path = self._step.path
        if made is None:
            self._slot = next(s for n in count(1) if not self._files.exists(s := f"{self._step.slot}.out{n}"))
            done = self._files.take(path, self._slot)
        elif found is None:
            done = self._files.put(self._slot, path)
            return done, None if done else self._read(path)
        else:
            done = self._files.exchange(self._slot, path)
        return done, self._read(self._slot if done else path)

    def _saved_meanwhile(self) -> Done:
        return Done(
            notes=[f"{self._step.path} was saved by someone meanwhile; its lines moved in that version"]
        )

    def _given_up(self, ours: bytes | None) -> Done:
        """Theirs stays, what was to come goes aside."""
        path = self._step.path
        if self._theirs:
            self._give_back(self._theirs, ours)
        if not self._moves.come:
            return Done(notes=[f"{path} could not be written; lines that left it may stand there still"])
        number = self._step.slot.split("/")[-2]
        aside = f"{CONFLICTS}/{number}-{path.replace('/', '-')}"
        self._files.stage(aside, replay(self._moves, document(path, None)).to_bytes())
        self._files.sync_folder_of(aside)
        stayed = {arrival.seq for arrival in self._moves.come}
        return Done(stayed, [f"{path} could not be written; see {aside}"])

    def _give_back(self, slot: str, ours: bytes | None) -> None:
        """Put a person's version back; one that they saved in this very moment wins over it."""
        known = {digest(ours), digest(self._read(slot))}
        while self._files.exchange(slot, self._step.path):
            displaced = digest(self._read(slot))
            if displaced in known:
                return
            known.add(displaced)
        self._files.put(slot, self._step.path)
