"""A file, or a folder of them, read twice: first to see that it is sound and how much it is, then to record.

What is damaged is known before a turn is recorded, how many there are before a bar is drawn, and no more than
a record and a batch of turns is held at a time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infinimem.configuration import SETTINGS
from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers.fields import Skipped
from infinimem.importers.read import Import, NotThere, read_turns
from infinimem.model import Turn

_NAMES = (".json", ".jsonl", ".ndjson", ".md", ".markdown", ".txt", ".zip", ".gz", ".xz", ".zst")
"""Endings of what is looked into in a folder."""
BATCH_TURNS, BATCH_LENGTH = 8192, 8 * 2**20
"""Turns, and characters of their texts, of a batch; many, for each is compared with all that is recorded."""
STEP = 1000
"""Turns after which progress is told."""


@dataclass(frozen=True)
class _File:
    """One file, named by a person, or found below a folder of that: what names its sessions then."""

    path: Path
    stem: str | None = None
    folder: Path | None = None

    def read(self, wanted: str | None, only: str | None) -> Import:
        return read_turns(self.path, wanted, only, self.stem, self.folder)


@dataclass(frozen=True)
class Survey:
    """What an import would bring in.

    Args:
        formats: of the files, each once.
        turns: how many.
        sessions: how many.
        skipped: reason -> how many times.
        left_out: file of a folder -> why it is passed over.
    """

    formats: tuple[str, ...]
    turns: int
    sessions: int
    skipped: Skipped
    left_out: Mapping[str, str]
    _files: tuple[_File, ...] = ()
    _format: str | None = None
    _only: str | None = None

    def batches(self) -> Iterator[list[Turn]]:
        """The turns, in the order of the files' names, in portions to record one after another.

        Each is durable before the next is read, so that an import which was interrupted is simply run again.

        Raises:
            ImportFormatError: a file changed since it was surveyed.
        """
        batch: list[Turn] = []
        size = 0
        for file in self._files:
            for turn in file.read(self._format, self._only).turns:
                batch.append(turn)
                size += len(turn.text)
                if len(batch) == BATCH_TURNS or size >= BATCH_LENGTH:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch


@dataclass
class _Count:
    formats: dict[str, None] = field(default_factory=dict)
    sessions: set[str | None] = field(default_factory=set)
    turns: int = 0
    skipped: Skipped = field(default_factory=Counter)


def survey(
    path: Path,
    format: str | None = None,  # noqa: A002
    only: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Survey:
    """Read a file, or every file of a folder that is recognised, and say what it holds.

    Args:
        path: a file (importers/read.py), or a folder, of which hidden files and folders are passed over, and
            so are libraries; links in it and what is no plain file are left out.
        format: the format of all, instead of recognising it.
        only: one conversation of several.
        progress: told how many turns were read (of 0: nobody knows yet).

    Raises:
        UsageError: no such format, `only` for Markdown, or a folder of a library.
        ImportFormatError: the file, or every file of the folder, cannot be imported.
    """
    count, left_out, taken = _Count(), dict[str, str](), []
    for file in _files(path):
        try:
            _count(file, format, only, count, progress)
        except NotThere:
            if not path.is_dir():
                raise
        except (ImportFormatError, UsageError) as error:
            if not path.is_dir():
                raise
            left_out[file.path.relative_to(path).as_posix()] = str(error)
        else:
            taken.append(file)
    if not taken:
        what = f"no conversation {only!r}" if only else "no chat, log or note that can be imported"
        why = next(iter(left_out.values()), "")
        raise ImportFormatError(f"{path} holds {what}" + (f"; the first file: {why}" if why else ""))
    return Survey(
        tuple(count.formats),
        count.turns,
        len(count.sessions),
        count.skipped,
        left_out,
        tuple(taken),
        format,
        only,
    )


def _files(path: Path) -> Iterator[_File]:
    """The file, or what a folder holds, links too, by name; a note in a folder is named by its way there."""
    if not path.is_dir():
        yield _File(path)
        return
    if any((place / SETTINGS).exists() for place in (path.resolve(), *path.resolve().parents)):
        raise UsageError(f"{path} lies in a library, and what is there is remembered already")
    for place, folders, names in os.walk(path):
        folders[:] = sorted(
            name for name in folders if not (name.startswith(".") or Path(place, name, SETTINGS).exists())
        )
        named = [name for name in names if not name.startswith(".") and name.lower().endswith(_NAMES)]
        for name in sorted([*named, *(name for name in folders if Path(place, name).is_symlink())]):
            file = Path(place, name)
            stem = file.relative_to(path).with_name(name.split(".")[0])
            yield _File(file, stem.as_posix(), path)


def _count(
    file: _File,
    wanted: str | None,
    only: str | None,
    count: _Count,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Read a file to its end, and add to the count what it holds once it is known to be sound."""
    found = file.read(wanted, only)
    sessions: set[str | None] = set()
    turns = 0
    for turn in found.turns:
        sessions.add(turn.session)
        turns += 1
        if progress and turns % STEP == 0:
            progress(count.turns + turns, 0)
    count.formats[found.format] = None
    count.sessions |= sessions
    count.turns += turns
    count.skipped += found.skipped
