"""Derived data on disk: where a library's lies, and how one writer changes it under many readers.

    <cache root>/<16 hex>/<part>/manifest.json    names the files that belong together: the commit point;
                                                  a line of JSON, and one with its checksum
                                 lock             held by the one that writes
                                 ...              the files, each written once under a new name

Readers take no lock. One that finds a named file missing reads the manifest again. All of it may be gone at
any moment: `forget` deletes the whole cache root, and what was read before then has no place to go.

Nothing is synced: what a power failure tears does not agree with its checksum and is made anew, which is
rarer and cheaper than to wait for the disk at every commit.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import secrets
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from infinimem.errors import LibraryError
from infinimem.store.files import Files
from infinimem.store.folders import Stamp
from infinimem.store.view import View
from infinimem.user_folders import cache_folder, delete_cache

__all__ = ["cache_folder", "delete_cache"]
MANIFEST, LOCK = "manifest.json", "lock"

SMALL_DOCUMENTS = 300
SMALL_BYTES = 4 << 20
"""A library up to this size is looked through in memory, and nothing is written to disk."""


@dataclass(frozen=True, eq=False)
class Commit:
    """What a manifest names, as it was loaded."""

    manifest: dict[str, Any]


C = TypeVar("C", bound=Commit)


def is_large(view: View) -> bool:
    """Whether derived data of a view is kept on disk; never of one that shows files other than they are."""
    if view.stored is None:
        return False
    ids, stamps = view.ids("all"), view.stored.stamps
    return len(ids) > SMALL_DOCUMENTS or sum(stamps[doc_id].size for doc_id in ids) > SMALL_BYTES


@contextmanager
def exclusive(folder: Path, wait: bool) -> Iterator[Writer | None]:
    """Be the only one that writes, in this process and all others.

    Args:
        folder: as `cache_folder` gave it.
        wait: whether to wait for another holder.

    Yields:
        None if another holds it and `wait` is false, or if nobody can.
    """
    with ExitStack() as stack:
        here = _locked(folder, wait, stack)
        yield None if here is None else Writer(folder, here)


def _locked(folder: Path, wait: bool, stack: ExitStack) -> int | None:
    """A descriptor of the locked folder; the stack lets go of it."""
    while True:
        with ExitStack() as opened:
            try:
                here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                opened.callback(os.close, here)
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                lock = os.open(LOCK, flags, 0o600, dir_fd=here)
                opened.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError:
                return None
            opened.callback(fcntl.flock, lock, fcntl.LOCK_UN)
            if _stands(folder, here):
                stack.push(opened.pop_all())
                return here


def _stands(folder: Path, here: int) -> bool:
    """Whether a path still leads to the folder that was opened."""
    try:
        return os.path.samestat(folder.lstat(), os.fstat(here))
    except OSError:
        return False


def read_manifest(folder: Path, layout: str) -> dict[str, Any] | None:
    """What the last commit said; None if there is none, it is garbled, or of another format."""
    try:
        data, _, checksum = (folder / MANIFEST).read_bytes().rstrip().rpartition(b"\n")
        if int(checksum) != zlib.crc32(data):
            return None
        found = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == layout else None


def newest(folder: Path, layout: str, known: C | None, load: Callable[[dict[str, Any]], C]) -> C | None:
    """The last commit; None where there is none, or what it names is garbled.

    Args:
        folder: as `cache_folder` gave it.
        layout: of its files.
        known: what was loaded last.
        load: reads what a manifest names.
    """
    for _ in range(3):
        manifest = read_manifest(folder, layout)
        if manifest is None or (known is not None and known.manifest == manifest):
            return known if manifest else None
        with suppress(OSError, ValueError, LookupError, TypeError, OverflowError):
            return load(manifest)  # a newer commit may have swept a file: then look again
    return None


def as_stored(files: Files, doc_id: str, stamp: Stamp) -> bytes | None:
    """The bytes of a document's file, if it can be read and is in the state that a snapshot says.

    What is held in memory may be of before a `forget`, and must not come back into the cache.
    """
    try:
        data, found = files.read_stamped(f"{doc_id}.md", stamp.size)
    except LibraryError:
        return None
    return data if found == stamp else None


def mapped(path: Path, size: int = 0) -> mmap.mmap | bytes:
    """A file, as far as it is read.

    Args:
        path: of a file.
        size: bytes of it; 0 for all.

    Raises:
        OSError: there is no such file.
        ValueError: it is shorter than that.
    """
    with path.open("rb") as file:
        whole = os.fstat(file.fileno()).st_size
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if whole else b""


def new_name(stem: str) -> str:
    """A file name that was never used; commits share no name, so no file changes under a reader."""
    return f"{stem}.{secrets.token_hex(8)}"


class Writer:
    """The one that writes into a folder, as long as it holds the lock.

    Args:
        folder: as `cache_folder` gave it.
        here: descriptor of it; after a `forget` the path may lead to another.
    """

    def __init__(self, folder: Path, here: int) -> None:
        self._folder = folder
        self._here = here

    def write(self, name: str, *buffers: bytes | bytearray | memoryview) -> None:
        """Write a new file.

        Raises:
            OSError: the disk refused, or the folder was deleted meanwhile; the file is gone.
        """
        with self.file(name) as file:
            for buffer in buffers:
                file.write(buffer)

    @contextmanager
    def file(self, name: str) -> Iterator[IO[bytes]]:
        """A new file to write to.

        Raises:
            OSError: the disk refused, or the folder was deleted meanwhile; the file is gone.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=self._here)
        try:
            with os.fdopen(descriptor, "wb", buffering=1 << 20) as file:
                yield file
            if not _stands(self._folder, self._here):  # a `forget` that deletes it may have looked already
                raise FileNotFoundError(f"{self._folder} was deleted")
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._here)
            raise

    def commit(self, manifest: dict[str, Any], keep: Collection[str]) -> None:
        """Name what was written, and remove the files that are not named.

        Args:
            manifest: JSON, its format under "format".
            keep: the files that it names.

        Raises:
            OSError: the disk refused, or the folder was deleted meanwhile; nothing has changed.
        """
        name, data = new_name(MANIFEST), json.dumps(manifest).encode()
        self.write(name, data, b"\n%d\n" % zlib.crc32(data))
        os.replace(name, MANIFEST, src_dir_fd=self._here, dst_dir_fd=self._here)
        with suppress(OSError), os.scandir(self._here) as found:
            for name in [item.name for item in found if item.is_file(follow_symlinks=False)]:
                if name not in (MANIFEST, LOCK, *keep):
                    with suppress(OSError):
                        os.unlink(name, dir_fd=self._here)
