"""A library's folders: the way to one, opened part by part without following links, and what lies in it.

Who holds an open folder works in that very folder. Between a look at a path and a call that takes the path
again, somebody could put a link in place of a folder; between two calls on a descriptor nobody can.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from infinimem.errors import LibraryError
from infinimem.store import disk
from infinimem.store.disk import At, Folder
from infinimem.user_folders import SETTINGS

RACE_NS = 50_000_000
"""Nanoseconds within which two changes of a folder may have one time: some ticks of the kernel's clock."""
NO_NOTES = (
    *("~$*", "*.sync-conflict-*", "*[Cc]onflicted copy*", "*_conflict-[0-9]*", "*[Cc]ase [Cc]onflict*"),
    "*(SFConflict *",
    *("node_modules/", "bower_components/", "site-packages/", "**/logseq/bak/", "**/logseq/version-files/"),
)
"""Patterns of .gitignore for a folder of notes: conflicted copies, other people's packages, backups."""
ANOTHER = "another library; it is read with --library"
LEFT_OUT = "left out by a pattern of [notes] ignore, .gitignore or our own"
UNREADABLE = "it cannot be read; check its permissions"
ENDINGS = (".md", ".markdown", ".mdown", ".mkd")
"""Of Markdown, in lower case; documents end in ".md"."""
LeftOut = Callable[[str], bool]
"""Whether a path, that of a folder with "/" at its end, is left out."""

MISSING_OK = suppress(FileNotFoundError, NotADirectoryError)
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _Held(threading.local):
    """Folders that this thread keeps open below a root, the deepest first."""

    def __init__(self) -> None:
        self.below: dict[Path, tuple[Folder, ...]] = {}


_HELD = _Held()


@contextmanager
def explained(action: str, path: object) -> Iterator[None]:
    """Turn an operating-system error into one line that says what could not be done."""
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or type(error).__name__}; check the folder's permissions and space"
        if isinstance(error, NotADirectoryError):
            way = f"{error.filename} is a link or a file"
            why = f"{way}; put a folder in its place, the library follows no links"
        raise LibraryError(f"cannot {action} {path}: {why}") from error


def is_inside(path: str) -> bool:
    """Return whether a path can only lead below a root: plain names with "/" between them."""
    return "\0" not in path and {"", ".", ".."}.isdisjoint(path.split("/"))


@contextmanager
def opened(root: Path, path: str, make: bool = False) -> Iterator[Folder]:
    """Open the folder at `path` below `root`, "" for the root, and make what is missing if asked to.

    Raises FileNotFoundError if there is none, NotADirectoryError if a part of the way is a link or a file, or
    leads upwards. The way to the root itself, which a person named, may have links.
    """
    path = path.removesuffix("/")
    above = (
        one for one in _HELD.below.get(root, ()) if not one.path or f"{path}/".startswith(f"{one.path}/")
    )
    kept = next(above, None)
    here = kept or Folder(os.open(root, _FLAGS), "")
    try:
        rest = path[len(here.path) + 1 :] if here.path else path
        for name in rest.split("/") if rest else ():
            below = _entered(At(here, name), make)
            if here is not kept:
                _close(here)
            here = below
        yield here
    finally:
        if here is not kept:
            _close(here)


@contextmanager
def holding(root: Path, path: str) -> Iterator[Folder]:
    """Keep a folder open, made if missing, and the root, for this thread's calls below them."""
    with opened(root, "") as top:
        _HELD.below[root] = (top,)
        try:
            with opened(root, path, make=True) as here:
                _HELD.below[root] = (here, top)
                yield here
        finally:
            del _HELD.below[root]


@contextmanager
def located(root: Path, path: str, make: bool = False) -> Iterator[At]:
    """Open the folder of the name at `path`, taken or not; arguments and errors as of `opened`."""
    folder, _, name = path.rpartition("/")
    if not is_inside(name):
        raise _no_folder(path)
    with opened(root, folder, make) as here:
        yield At(here, name)


def _entered(at: At, make: bool) -> Folder:
    if not is_inside(at.name):
        raise _no_folder(at.path)
    try:
        return Folder(os.open(at.name, _FLAGS | os.O_NOFOLLOW, dir_fd=at.folder.descriptor), at.path)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # what a link is answered with differs by system
            raise _no_folder(at.path) from error
        raise
    disk.make_folder(at)
    disk.sync_folder(at.folder)  # its name is durable
    return _entered(at, make=False)


def _close(folder: Folder) -> None:
    with suppress(OSError):  # nothing was written that a close could lose
        os.close(folder.descriptor)


def _no_folder(path: str) -> NotADirectoryError:
    return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


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
        """Return whether a change from now on shows: it has another time than the last."""
        whole = self.mtime_ns % 1_000_000_000 == 0  # FAT counts two seconds, HFS+ one
        return now_ns - self.ctime_ns > RACE_NS + 2_000_000_000 * whole


def folder_state(info: os.stat_result) -> FolderState:
    return FolderState(info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


class FolderListing(NamedTuple):
    """One folder as listed; no state if it may not be read, or a later change might not show in it.

    Documents by path without ".md", folders as "a/b/", and why what may be meant as a note is passed over.
    """

    state: FolderState | None
    documents: dict[str, Stamp]
    folders: Sequence[str] = ()
    passed: Mapping[str, str] = MappingProxyType({})


def by_patterns(patterns: Iterable[str]) -> LeftOut:
    """Return what lines of a .gitignore leave out; pass over one that is no pattern."""
    import re2
    from pathspec import GitIgnoreSpec

    lines = []
    for line in patterns:
        with suppress(ValueError, re.error, re2.error), warnings.catch_warnings(action="ignore"):
            GitIgnoreSpec.from_lines([line], backend="re2").match_file("")
            lines.append(line)
    spec = GitIgnoreSpec.from_lines(lines, backend="re2")
    return lambda path: spec.match_file(path.encode("utf-8", "replace").decode())  # names may be any bytes


def shows(path: str) -> bool:
    """Return whether a document may have that path: Markdown, nothing on the way hidden or unprintable."""
    return path.endswith(".md") and "/." not in f"/{path}" and path.isprintable()


def state_of(root: Path, path: str) -> Stamp | None:
    """Return the state of one file as `listed` would find it; None if there is no such document."""
    if not shows(path):
        return None
    info = None
    with explained("read", path), MISSING_OK, located(root, path) as at:
        info = at.lstat()
    return stamp_of(info) if info is not None and stat.S_ISREG(info.st_mode) else None


def listed(
    root: Path,
    needed: Collection[str] = (),
    below: str = "",
    *,
    skip: Collection[str] = (),
    left_out: LeftOut | None = None,
) -> dict[str, FolderListing]:
    """List a folder and all folders in it that are not to be skipped, without hidden ones and links.

    What is `needed` ("topics/") must not be passed over or left out: a LibraryError if it cannot be listed.
    One of a person's that may not be read is passed over.
    """
    listing: dict[str, FolderListing] = {}
    pending = [below]
    while pending:
        folder = pending.pop()
        with explained("list", f"{root}/{folder}"):
            try:
                listing[folder] = _list_folder(root, folder, tuple(needed), left_out)
            except (FileNotFoundError, NotADirectoryError):  # what vanishes meanwhile is not there
                continue
            except PermissionError:
                if not folder or folder in needed:
                    raise
                listing[folder] = FolderListing(None, {}, (), {folder: UNREADABLE})
        pending.extend(name for name in listing[folder].folders if name not in skip)
    return listing


def _list_folder(root: Path, folder: str, needed: tuple[str, ...], left_out: LeftOut | None) -> FolderListing:
    documents: dict[str, Stamp] = {}
    folders: list[str] = []
    passed: dict[str, str] = {}
    with opened(root, folder) as here, os.scandir(here.descriptor) as items:
        state = folder_state(os.fstat(here.descriptor))
        settled = state.settled(time.time_ns())
        for item in items:
            name = item.name
            is_folder = item.is_dir(follow_symlinks=False)
            if folder and name == SETTINGS and not folder.startswith(needed):  # its INBOX is no note
                return FolderListing(state if settled else None, {}, (), {folder: ANOTHER})
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
                    readable = mine or info.st_mode & 0o444 == 0o444
                    if readable or os.access(name, os.R_OK, dir_fd=here.descriptor):
                        documents[path[:-3]] = stamp_of(info)
                    else:
                        passed[path] = UNREADABLE
    shown = {
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path): why
        for path, why in passed.items()
    }
    return FolderListing(state if settled else None, documents, folders, shown)
