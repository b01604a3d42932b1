"""A library as one object: its folder in a zip, stored, sorted, the same folder to the same bytes.

In: a folder, or bytes that anybody may have put into the store. Out: bytes, or checked files. The comment of
the zip is the head's header: the commit's name, and the names of the inbox objects whose turns are in it.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from infinimem.errors import LibraryError
from infinimem.store import sequence, state
from infinimem.store.files import MAX_OWNED, STAGED, Files
from infinimem.store.folders import is_inside

MAX_HEAD, MAX_FILES = 256 << 20, 300_000
"""Bytes of a head, and files in it; a larger library is not for a fleet."""
EXPORTED = ".infinimem/exported"
_MAGIC, _ENTRY, _DATE = "infinimem fleet 1", b"PK\x01\x02", (1980, 1, 1, 0, 0, 0)
_BESIDE = tuple(f"{state.PATH}-{end}" for end in state.BESIDE)
_HERE = (EXPORTED, sequence.GIVEN, ".infinimem/append", ".infinimem/forgetting", ".infinimem/lock", *_BESIDE)
_HERE_BELOW = (".git/", ".infinimem/tasks/", ".infinimem/displaced/", ".infinimem/tx/")


@dataclass(frozen=True)
class Head:
    """A library as it stands in the store: its contents by path, and the inbox objects whose turns are in it.
    `etag` is "" for one that is not there; `version` is the object's, where the store keeps versions."""

    etag: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    version: str | None = None


def demand(head: Head | None, library: str) -> Head:
    """Return the head of a library; LibraryError if there is none."""
    if head is None or not head.etag:
        raise LibraryError(f"there is no library {library} yet; append to it, and let a worker run")
    return head


def of_machine(path: str) -> bool:
    """Whether a path of a library is a matter of the machine that it lies on, or of git: no head has it."""
    return path in _HERE or path.startswith(_HERE_BELOW) or path.rpartition("/")[2] == STAGED


def folder_files(root: Path) -> dict[str, bytes]:
    """Return what goes into a head, as in `Head.files`; LibraryError for a link, or what is no file."""
    files, found = Files(root), dict[str, bytes]()
    for folder, folders, names in os.walk(root):
        below = Path(folder).relative_to(root)
        for path in ((below / name).as_posix() for name in (*folders, *names)):
            kind = (root / path).lstat().st_mode
            if stat.S_ISDIR(kind) or of_machine(path):
                continue
            data = files.read(path, MAX_OWNED) if stat.S_ISREG(kind) else None
            if data is None:
                raise LibraryError(f"{path} is a link or no file; a head holds files alone, move it away")
            found[path] = data
    if sequence.MARK in found:  # exactly: what this machine reserved ahead stays here
        found[sequence.MARK] = b"%d\n" % (sequence.last(files) or 0)
    return found


def pack(files: Mapping[str, bytes], commit: str, taken: Iterable[str]) -> bytes:
    """Return the bytes of a head, under a name that no other commit has; LibraryError if it is too large, or
    a name cannot be written."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        for path, data in sorted(files.items()):
            info = zipfile.ZipInfo(path, _DATE)
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            try:
                made.writestr(info, data)
            except UnicodeEncodeError:
                raise LibraryError(f"{path!r} cannot be named in a head; rename it") from None
        made.comment = "\n".join((_MAGIC, commit, *sorted(taken))).encode()
    if out.tell() > MAX_HEAD:
        raise LibraryError(f"the library has more than {MAX_HEAD >> 20} MiB; a fleet holds smaller ones")
    return out.getvalue()


def unpack(data: bytes, etag: str, version: str | None = None) -> Head:
    """Return a head from bytes that anybody may have written; LibraryError says why it is none."""
    try:
        if data.count(_ENTRY) > MAX_FILES:
            raise LibraryError(f"the head is refused: it has more than {MAX_FILES} files")
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            magic, *header = found.comment.decode("ascii", "replace").split("\n")
            if magic != _MAGIC:
                raise LibraryError("the head is a zip, but not one of a fleet")
            _check(found.infolist(), len(data))
            files = {info.filename: found.read(info) for info in found.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError, RuntimeError):
        raise LibraryError("the head is no zip, or damaged") from None
    return Head(etag, files, frozenset(header[1:]), version)


def _check(entries: Sequence[zipfile.ZipInfo], size: int) -> None:
    if sum(info.file_size for info in entries) > size:
        raise LibraryError("the head says more than it holds: its files are packed, or lie on each other")
    files, seen = {info.filename for info in entries}, set[str]()
    for info in entries:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if info.orig_filename != name or not is_inside(name) or "\\" in name:
            why = "leads out of the folder"
        elif of_machine(name):
            why = "is a matter of one machine"
        elif kind not in (0, stat.S_IFREG):
            why = "is a link, a folder or a device"
        elif info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            why = "is packed"
        elif name in seen or not files.isdisjoint(map(str, PurePosixPath(name).parents)):
            why = "is there twice, or lies below a file"
        else:
            seen.add(name)
            continue
        raise LibraryError(f"the head is refused: {name[:200]!r} {why}")
