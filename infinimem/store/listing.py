"""What lies in a folder: the Markdown files and the state that each is in. Opens none of them."""

from __future__ import annotations

import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from infinimem.errors import LibraryError
from infinimem.store.folders import located, opened

RACE_NS = 50_000_000
"""Nanoseconds within which two changes of a folder may have one time: some ticks of the kernel's clock."""
NO_NOTES = (
    *("~$*", "*.sync-conflict-*", "*[Cc]onflicted copy*", "*_conflict-[0-9]*", "*[Cc]ase [Cc]onflict*"),
    "*(SFConflict *",
    *("node_modules/", "bower_components/", "site-packages/", "**/logseq/bak/", "**/logseq/version-files/"),
)
"""What is left out of a folder of notes, as .gitignore has it: copies that programs make where two changed
one file, other people's packages, backups of programs for notes."""
LEFT_OUT = "left out by a pattern of [notes] ignore, .gitignore or our own"
UNREADABLE = "it cannot be read; check its permissions"
ENDINGS = (".md", ".markdown", ".mdown", ".mkd")
"""Of Markdown, in lower case; documents end in ".md"."""
LeftOut = Callable[[str], bool]
"""Whether a path, that of a folder with "/" at its end, is left out."""


def by_patterns(patterns: Iterable[str]) -> LeftOut:
    """What some patterns leave out, as lines of a .gitignore; one that is no pattern counts for nothing."""
    import re2
    from pathspec import GitIgnoreSpec

    lines = []
    for line in patterns:
        with suppress(ValueError, re.error, re2.error), warnings.catch_warnings(action="ignore"):
            GitIgnoreSpec.from_lines([line], backend="re2").match_file("")
            lines.append(line)
    spec = GitIgnoreSpec.from_lines(lines, backend="re2")
    return lambda path: spec.match_file(path.encode("utf-8", "replace").decode())  # names may be any bytes


class Stamp(NamedTuple):
    """What tells one state of a file from another without reading it."""

    mtime_ns: int
    size: int
    inode: int


def stamp_of(info: os.stat_result) -> Stamp:
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


class FolderState(NamedTuple):
    """What tells whether something was created, deleted or renamed in a folder. Nobody can set its ctime."""

    mtime_ns: int
    ctime_ns: int
    inode: int

    def settled(self, now_ns: int) -> bool:
        """Whether a change from now on shows: no longer so soon after the last that both have one time."""
        whole = self.mtime_ns % 1_000_000_000 == 0  # FAT counts two seconds, HFS+ one
        return now_ns - self.ctime_ns > RACE_NS + 2_000_000_000 * whole


def folder_state(info: os.stat_result) -> FolderState:
    return FolderState(info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


class Explained:
    """See `explained`."""

    __slots__ = ("_action", "_path")

    def __init__(self, action: str, path: object) -> None:
        self._action, self._path = action, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, OSError):
            return
        why = f"{error.strerror or type(error).__name__}; check the folder's permissions and space"
        if isinstance(error, NotADirectoryError):
            way = f"{error.filename} is a link or a file"
            why = f"{way}; put a folder in its place, the library follows no links"
        raise LibraryError(f"cannot {self._action} {self._path}: {why}") from error


def explained(action: str, path: object) -> Explained:
    """Turn an operating-system error into one line that says what could not be done."""
    return Explained(action, path)


def shows(path: str) -> bool:
    """Whether a name may be that of a document: Markdown, nothing on the way hidden or unprintable."""
    return path.endswith(".md") and "/." not in f"/{path}" and path.isprintable()


class Listed(NamedTuple):
    """One folder as it was listed.

    Args:
        state: of the folder itself; None where it may not be read, or a later change might not show in it.
        documents: the state of each, by its path without ".md".
        folders: those in it ("a/b/").
        passed: what may be meant as a note and is passed over, by its path, and why.
    """

    state: FolderState | None
    documents: dict[str, Stamp]
    folders: Sequence[str] = ()
    passed: Mapping[str, str] = MappingProxyType({})


def listed(
    root: Path,
    needed: Collection[str] = (),
    below: str = "",
    *,
    skip: Collection[str] = (),
    left_out: LeftOut | None = None,
) -> dict[str, Listed]:
    """A folder and all folders in it, hidden ones and links left out.

    Args:
        root: the library's folder.
        needed: folders ("topics/") and files that must not be passed over.
        below: the folder to list; "" for all.
        skip: folders in it that are not listed again.
        left_out: of what is not needed.

    Raises:
        LibraryError: a folder cannot be listed; one of a person's that may not be read is passed over.
    """
    found: dict[str, Listed] = {}
    pending = [below]
    while pending:
        folder = pending.pop()
        with explained("list", f"{root}/{folder}"):
            try:
                found[folder] = _list_folder(root, folder, tuple(needed), left_out)
            except (FileNotFoundError, NotADirectoryError):  # what vanishes meanwhile is not there
                continue
            except PermissionError:
                if not folder or folder in needed:
                    raise
                found[folder] = Listed(None, {}, (), {folder: UNREADABLE})
        pending.extend(name for name in found[folder].folders if name not in skip)
    return found


def _list_folder(root: Path, folder: str, needed: tuple[str, ...], left_out: LeftOut | None) -> Listed:
    documents: dict[str, Stamp] = {}
    folders: list[str] = []
    passed: dict[str, str] = {}
    with opened(root, folder) as here, os.scandir(here.descriptor) as items:
        state = folder_state(os.fstat(here.descriptor))
        settled = state.settled(time.time_ns())
        for item in items:
            name = item.name
            is_folder = item.is_dir(follow_symlinks=False)
            if name[0] == "." or not (is_folder or item.is_dir() or name.lower().endswith(ENDINGS)):
                continue
            path = f"{folder}{name}{'/' * is_folder}"
            mine = path.startswith(needed) or any(one.startswith(path) for one in needed)
            if not mine and left_out and left_out(path):
                passed[path] = LEFT_OUT
            elif not name.isprintable():
                passed[path] = "the name has unprintable characters; rename it"
            elif item.is_symlink():
                passed[path] = "a link; none is followed, put the file itself there"
            elif is_folder:
                folders.append(path)
            elif not item.is_file():
                passed[path] = "not a regular file"
            elif not name.endswith(".md"):
                passed[path] = "its name does not end in .md"
            else:
                with suppress(FileNotFoundError):
                    info = item.stat(follow_symlinks=False)
                    if (
                        mine
                        or info.st_mode & 0o444 == 0o444
                        or os.access(name, os.R_OK, dir_fd=here.descriptor)
                    ):
                        documents[path[:-3]] = stamp_of(info)
                    else:
                        passed[path] = UNREADABLE
    shown = {_printable(path): why for path, why in passed.items()}
    return Listed(state if settled else None, documents, folders, shown)


def _printable(path: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def state_of(root: Path, path: str) -> Stamp | None:
    """The state of one file as `listed` would find it; None where there is no such document.

    Raises:
        LibraryError: it cannot be looked at.
    """
    if not shows(path):
        return None
    with explained("read", path):
        try:
            with located(root, path) as at:
                info = at.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
    return stamp_of(info) if info is not None and stat.S_ISREG(info.st_mode) else None
