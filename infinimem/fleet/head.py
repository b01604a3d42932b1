"""A library as one object: its folder in a zip, stored, sorted, the same folder to the same bytes.

In: a folder, or bytes that anybody may have put into the store. Out: bytes, or checked files. The comment of the
zip is the head's own header: the commit's name, and the names of the inbox objects whose turns are in it.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from infinimem.errors import LibraryError
from infinimem.store.files import MAX_OWNED, STAGED, Files
from infinimem.store.folders import is_inside
from infinimem.store.state import sequence

MAX_HEAD = 256 << 20
"""Bytes of a head; a larger library is not for a fleet."""
MAX_FILES = 300_000
MAX_NAMES = 2000
"""Names of inbox objects that a header has room for: a zip's comment is shorter than 64 KiB."""
_MAGIC = "infinimem fleet 1"
_ENTRY = b"PK\x01\x02"
"""How each entry of a zip's directory begins."""
_DATE = (1980, 1, 1, 0, 0, 0)
_HERE = (sequence.GIVEN, *(f".infinimem/{name}" for name in ("append", "forgetting", "lock", "exported")))
_HERE_BELOW = (".infinimem/tx/", ".infinimem/displaced/", ".git/")


@dataclass(frozen=True)
class Head:
    """A library as it stands in the store.

    Args:
        etag: of the object, as the store gives it; "" for one that is not there yet.
        version: of the object, where the store keeps versions.
        files: contents by path.
        taken: names of inbox objects whose turns are in it.
    """

    etag: str
    files: Mapping[str, bytes]
    taken: frozenset[str]
    version: str | None = None


def of_machine(path: str) -> bool:
    """Whether a path of a library is a matter of the machine that it lies on, or of git, and not of its head."""
    return path in _HERE or path.startswith(_HERE_BELOW) or path.rpartition("/")[2] == STAGED


def folder_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of all that goes into a head, sorted; of an empty folder the path, with "/" at its end.

    Raises:
        LibraryError: a link, or what is no file.
    """
    files = Files(root)
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        below = Path(folder).relative_to(root).as_posix()
        for name in (*folders, *names):
            path = name if below == "." else f"{below}/{name}"
            info = (Path(folder) / name).lstat()
            if of_machine(path) or of_machine(f"{path}/"):
                continue
            if stat.S_ISDIR(info.st_mode):
                found[f"{path}/"] = b""
            elif not stat.S_ISREG(info.st_mode) or (data := files.read(path, MAX_OWNED)) is None:
                raise LibraryError(f"{path} is a link or no file; a head holds files alone, move it away")
            else:
                found[path] = data
    if sequence.MARK in found:  # exactly: what this machine reserved ahead it takes with it
        found[sequence.MARK] = b"%d\n" % (sequence.last(files) or 0)
    full = {path[: at + 1] for path in found for at in range(len(path) - 1) if path[at] == "/"}
    yield from sorted((path, data) for path, data in found.items() if path not in full)


def pack(files: Iterator[tuple[str, bytes]], commit: str, taken: Sequence[str]) -> bytes:
    """The bytes of a head.

    Args:
        files: paths and bytes, sorted.
        commit: a name that no other commit has, so that no two have one ETag.
        taken: for the header.

    Raises:
        LibraryError: it is too large, or a name cannot be written.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        for path, data in files:
            info = zipfile.ZipInfo(path, _DATE)
            info.create_system = 3
            info.external_attr = (stat.S_IFDIR | 0o755 if path.endswith("/") else stat.S_IFREG | 0o644) << 16
            try:
                made.writestr(info, data)
            except UnicodeEncodeError:
                raise LibraryError(f"{path!r} cannot be named in a head; rename it") from None
        made.comment = "\n".join((_MAGIC, commit, *sorted(taken))).encode()
    if out.tell() > MAX_HEAD:
        raise LibraryError(f"the library has more than {MAX_HEAD >> 20} MiB; a fleet holds smaller ones")
    return out.getvalue()


def unpack(data: bytes, etag: str, version: str | None = None) -> Head:
    """A head from bytes that anybody may have written.

    Raises:
        LibraryError: it is none; the message says why, and by which name.
    """
    if data.count(_ENTRY) > MAX_FILES:
        raise LibraryError(f"the head has more than {MAX_FILES} files")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            head, _, rest = found.comment.decode("ascii", "replace").partition("\n")
            if head != _MAGIC:
                raise LibraryError("the head is a zip, but not one of a fleet")
            _check(found.infolist(), len(data))
            files = {info.filename: found.read(info) for info in found.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError, RuntimeError):
        raise LibraryError("the head is no zip, or damaged") from None
    return Head(etag, files, frozenset(rest.split("\n")[1:]), version)


def _check(entries: Sequence[zipfile.ZipInfo], size: int) -> None:
    if sum(info.file_size for info in entries) > size:
        raise LibraryError("the head says more than it holds: its files are packed, or lie on each other")
    files = {info.filename for info in entries if not info.is_dir()}
    seen: set[str] = set()
    for info in entries:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        path = name.removesuffix("/")
        if info.orig_filename != name or not is_inside(path) or "\\" in name:
            why = "leads out of the folder"
        elif of_machine(name):
            why = "is a matter of one machine"
        elif kind not in (0, stat.S_IFDIR if name.endswith("/") else stat.S_IFREG):
            why = "is a link or a device"
        elif info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            why = "is packed"
        elif path in seen or not files.isdisjoint(map(str, PurePosixPath(path).parents)):
            why = "is there twice, or lies below a file"
        else:
            seen.add(path)
            continue
        raise LibraryError(f"the head is refused: {name[:200]!r} {why}")
