"""A file or a folder, read twice: first to check it and to count the turns, then to record them.

Damage is known before a turn is recorded, the count before a progress bar is drawn, and no more than one
record and one batch of turns is held at a time, and of a session log its turns, for some may be taken back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers.again import passage
from infinimem.importers.fields import Skipped
from infinimem.importers.read import Import, NotThere, read_turns
from infinimem.importers.reading import ENDINGS, PACKED, explained, slack_export, stem_of
from infinimem.model import Turn
from infinimem.settings import SETTINGS
from infinimem.store.folders import LEFT_OUT
from infinimem.store.library import Library

BATCH_TURNS, BATCH_LENGTH = 8192, 8 * 2**20
"""Turns, and characters of their texts, of a batch; many, for each is compared with all that is recorded."""
SHOWN = 5  # kinds of files that are passed over, to name
STEP = 1000  # turns after which progress is told

Progress = Callable[[int, int], None]


@dataclass
class Survey:
    """What an import would bring in; `skipped` says how often for which reason, `left_out` of a file why,
    `notes` by path what a note holds."""

    formats: tuple[str, ...] = ()
    turns: int = 0
    sessions: int = 0
    skipped: Skipped = field(default_factory=Counter)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: dict[str, set[bytes]] = field(default_factory=dict)
    _readings: list[Callable[[], Import]] = field(default_factory=list)

    def batches(self) -> Iterator[list[Turn]]:
        """The turns, by the files' names, in portions to record one after another; an import that was
        interrupted is simply run again. ImportFormatError where a file changed since."""
        batch: list[Turn] = []
        size = 0
        for read in self._readings:
            for turn in read().turns:
                batch.append(turn)
                size += len(turn.text)
                if len(batch) == BATCH_TURNS or size >= BATCH_LENGTH:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    def add(self, read: Callable[[], Import], progress: Progress | None) -> set[str | None]:
        """Read a file to its end, then count what is in it, for it is sound; returns its sessions."""
        found, turns = read(), 0
        sessions: set[str | None] = set()
        for turns, turn in enumerate(found.turns, 1):
            sessions.add(turn.session)
            if turn.note:
                self.notes.setdefault(turn.note, set()).add(passage(turn.text, turn.session))
            if progress and turns % STEP == 0:
                progress(self.turns + turns, 0)
        self.formats = tuple(dict.fromkeys((*self.formats, found.format)))
        self.turns += turns
        self.skipped += found.skipped
        self._readings.append(read)
        return sessions


def survey(
    path: Path,
    format: str | None = None,  # noqa: A002
    only: str | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Read a file, or every file of a folder that is recognised, and say what it holds.

    Args:
        path: a file (importers/read.py), or a folder. Hidden files and folders of it are passed over; what
            cannot be read, libraries, links and special files are left out, and what is no note in a folder
            of notes (docs/FORMAT.md).
        format: the format of all, instead of recognising it.
        only: one conversation of several.
        progress: called with the turns read so far, and 0 (the total is not known yet).

    Raises:
        UsageError: no such format, `only` for Markdown, or a folder of a library.
        ImportFormatError: the file, or every file of the folder, cannot be imported.
    """
    found, sessions = Survey(), set[str | None]()
    for file, stem in _files(path, found):
        folder = path if stem else None
        try:
            sessions |= found.add(partial(read_turns, file, format, only, stem, folder), progress)
        except (ImportFormatError, UsageError) as error:
            if folder is None:
                raise
            if not isinstance(error, NotThere):
                found.left_out[file.relative_to(path).as_posix()] = str(error)
    if not found.formats:
        what = f"no conversation {only!r}" if only else "no chat, log or note that can be imported"
        why = next(iter(found.left_out.values()), "")
        raise ImportFormatError(f"{path} holds {what}" + (f"; the first file: {why}" if why else ""))
    found.sessions = len(sessions)
    return found


def _files(path: Path, found: Survey) -> Iterator[tuple[Path, str | None]]:
    """The file, or what a folder holds by name, links too; of a folder each with the name of its session."""
    with explained(path):
        is_folder = path.is_dir()
    if not is_folder:
        yield path, None
        return
    if any(os.access(place / SETTINGS, os.F_OK) for place in (path.resolve(), *path.resolve().parents)):
        raise UsageError(f"{path} lies in a library, and what is there is remembered already")

    def leave_out(name: str, why: str) -> None:
        found.left_out[Path(name).relative_to(path).as_posix()] = why

    others: Counter[str] = Counter()
    no_note = Library(path).left_out() or (lambda _: False)
    walk = os.walk(path, onerror=lambda error: leave_out(error.filename, f"cannot be read: {error.strerror}"))
    for place, folders, names in walk:
        if slack_export(Path(place)):
            folders.clear()
            yield Path(place), Path(place).relative_to(path).as_posix() if Path(place) != path else None
            continue
        folders[:], names = (sorted(n for n in some if not n.startswith(".")) for some in (folders, names))
        below = f"{place}/".removeprefix(f"{path}/")
        for name in [*(f"{folder}/" for folder in folders), *names]:
            if no_note(below + name):
                (folders if name[-1] == "/" else names).remove(name.rstrip("/"))
                leave_out(f"{place}/{name}", LEFT_OUT)
        for library in [name for name in folders if os.access(Path(place, name, SETTINGS), os.F_OK)]:
            folders.remove(library)
            leave_out(f"{place}/{library}", "a library, which is remembered already")
        with os.scandir(place) as entries:
            links = [one.name for one in entries if one.is_symlink() and one.name in folders]
        for name in sorted([*names, *links]):
            file = Path(place, name)
            if name in folders or name.lower().endswith((*ENDINGS, *PACKED, "mbox")):
                yield file, file.relative_to(path).with_name(stem_of(name)).as_posix()
            else:
                others[file.suffix.lower() or name] += 1
    if others:
        endings = ", ".join(ending for ending, _ in others.most_common(SHOWN))
        found.skipped[f"files of other kinds ({endings})"] += others.total()
