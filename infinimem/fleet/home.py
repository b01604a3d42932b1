"""Where the libraries are: in an object store, which decides races, and in folders of this machine.

One conditional PUT is the commit point. docs/FLEET.md (At rest) says what is in the store; anybody may have
put bytes there, so they are checked. A head is stored and sorted: the same folder gives the same bytes.

    CACHE/processes/P/lock              held by a process as long as it lives
                      T/                a library: a head as it was fetched or committed
    DIR/.infinimem/exported             of one written out for a person: which head

No two processes share a folder, nor do two callers in one: who works on a library takes a folder of it, or
has a new one written, and gives it back as a head, or never. What the killed leave, the next one deletes.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import secrets
import shutil
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple

from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PreconditionError
from obstore.store import S3Store

from infinimem.errors import FleetError, LibraryError, UsageError
from infinimem.store import sequence, state
from infinimem.store.files import MAX_OWNED, STAGED, Files
from infinimem.store.folders import explained, is_inside
from infinimem.user_folders import delete_cache

# ── heads ───────────────────────────────────────────────────────────────────────────────────────

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


# ── the store ───────────────────────────────────────────────────────────────────────────────────

MAX_OBJECT = 16 << 20
"""Bytes of an inbox object."""
RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}\Z", re.ASCII)
_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,62})((?:/[\w.@-]+)*)/?\Z", re.ASCII)
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(rf"([{_DIGITS}]{{26}})\.jsonl\Z")
_THERE = (AlreadyExistsError, PreconditionError)


class Moved(Exception):
    """The head is another by now: what was made from the one before is not to be committed."""


class Listing(NamedTuple):
    """ETag of a library's head, "" where there is none, and names of its objects as they were made."""

    etag: str
    inbox: list[str]
    refused: list[str]


def ulid() -> str:
    """A name that sorts by when it was made, here to the nanosecond. Source: github.com/ulid/spec."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    number = milliseconds << 80 | rest << 60 | secrets.randbits(60)
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -5, -5))


def checked(library: str) -> str:
    """Return the name of a library; UsageError if it is none."""
    if not isinstance(library, str) or not _NAME.match(library):
        raise UsageError(
            f"{str(library)[:60]!r} is no name for a library; use up to 128 letters, digits and . _ @ -, "
            "a letter or digit first"
        )
    return library


class Home:
    """The store of a fleet, at s3://BUCKET/PREFIX (else UsageError); keys and endpoint are in AWS_…."""

    def __init__(self, url: str) -> None:
        parts = _URL.match(url)
        if parts is None or {".", ".."}.intersection(url.split("/")):
            raise UsageError(f"{url[:80]!r} is no address of a fleet; write s3://BUCKET/PREFIX")
        self.url = url.rstrip("/")
        self.store: Any = S3Store(parts[1], prefix=parts[2].strip("/") or None, retry_config=RETRIES)

    def fetch(self, library: str, known: str = "") -> Head | None:
        """Return the head, in one request; None if `known` is its ETag, an empty one if there is none."""
        try:
            data, meta = self._get(f"{library}/head.zip", known)
        except FileNotFoundError:
            return Head()
        except NotModifiedError:
            return None
        return unpack(data, str(meta["e_tag"]), meta["version"])

    def commit(self, library: str, data: bytes, etag: str) -> str:
        """Put a head in the place of the one with this ETag ("": of none); return its own, or raise Moved."""
        path = f"{library}/head.zip"
        with suppress(*_THERE, FileNotFoundError), self._told(path):
            done = self.store.put(path, data, mode={"e_tag": etag} if etag else "create")
            return str(done["e_tag"])
        # The answer to a first try may be lost, and the second has met its own work.
        with suppress(FileNotFoundError):
            found, meta = self._get(path)
            if found == data:  # no two commits have the same bytes
                return str(meta["e_tag"])
        raise Moved

    def append(self, library: str, name: str, data: bytes) -> None:
        """Create an inbox object; that it is there already is the store's second try."""
        with suppress(*_THERE), self._told(f"{library}/inbox"):
            self.store.put(f"{library}/inbox/{name}.jsonl", data, mode="create")

    def look(self, library: str) -> Listing:
        """What there is of a library, in one request."""
        etag, names = "", dict[str, list[str]](inbox=[], refused=[])
        for meta in self._list(f"{library}/"):
            folder, _, name = str(meta["path"]).removeprefix(f"{library}/").rpartition("/")
            if name == "head.zip":
                etag = str(meta["e_tag"])
            elif folder in names and (ulid := _ULID.match(name)):
                names[folder].append(ulid[1])
        return Listing(etag, sorted(names["inbox"]), sorted(names["refused"]))

    def take(self, library: str, name: str) -> bytes:
        """Return an inbox object; FileNotFoundError if it is gone by now, LibraryError if it is too large."""
        return self._get(f"{library}/inbox/{name}.jsonl", most=MAX_OBJECT)[0]

    def drop(self, library: str, names: Sequence[str], folder: str = "inbox") -> None:
        """Delete objects; those that are gone count as deleted."""
        if names:
            with self._told(f"{library}/{folder}"):
                self.store.delete([f"{library}/{folder}/{name}.jsonl" for name in names])

    def refuse(self, library: str, name: str) -> None:
        """Move an inbox object out of the way of the others."""
        with suppress(FileNotFoundError), self._told(f"{library}/inbox/{name}"):
            self.store.rename(f"{library}/inbox/{name}.jsonl", f"{library}/refused/{name}.jsonl")

    def waiting(self) -> list[str]:
        """Libraries with something in their inbox."""
        found = (str(meta["path"]).split("/") for meta in self._list())
        return sorted({path[0] for path in found if path[1:2] == ["inbox"] and _NAME.match(path[0])})

    def _get(self, path: str, known: str = "", most: int = MAX_HEAD) -> tuple[bytes, Any]:
        with self._told(path):
            found = self.store.get(path, options={"if_none_match": known} if known else {})
            if found.meta["size"] > most:  # what is not asked for is not sent
                raise LibraryError(f"{path} is refused: it has more than {most >> 20} MiB")
            return bytes(found.bytes()), found.meta

    def _list(self, folder: str | None = None) -> list[Any]:
        with self._told(folder or "all"):
            return [meta for batch in self.store.list(folder) for meta in batch]

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Turn the store's errors into one line; those that are answers stay what they are."""
        try:
            yield
        except (*_THERE, NotModifiedError):
            raise
        except (BaseError, FileNotFoundError, PermissionError) as error:
            said = str(error)
            code = re.search(r"<Code>(\w+)</Code>", said)
            why = f"{code[1] if code else said.splitlines()[0][:160]}; try again"
            if "NoSuchBucket" in said:
                why = "there is no such bucket; make it, or correct the URL"
            elif isinstance(error, FileNotFoundError):
                raise
            elif re.search(r"40[13] (Forbidden|Unauthorized)", said):
                why = "the store refuses the key; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            raise FleetError(f"{self.url}, {what}: {why}") from error


# ── folders here ────────────────────────────────────────────────────────────────────────────────

SWEEP, KEPT = 60.0, 600.0
"""Seconds between two looks for what can go; for which a folder stays that nobody uses. What was forgotten is
gone then from each: one that is used is the new head."""


def lay_out(files: Mapping[str, bytes], tree: Path) -> None:
    """Write a head's files to an empty folder."""
    for path, data in files.items():
        at = tree / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(data)
    if sequence.MARK in files:
        sequence.settle(Files(tree))  # a head is whole: nothing of it was torn when another machine stopped


@dataclass
class Place:
    """A folder and the head that it is, without its files; one without an ETag is not given back."""

    tree: Path
    head: Head
    used: float = 0.0


class Places:
    """The folders of this process, in `cache`, for its owner alone; LibraryError if they cannot be made."""

    def __init__(self, cache: Path) -> None:
        self._cache, self._lock = cache.absolute() / "processes", threading.Lock()
        self._free: dict[str, list[Place]] = {}
        self._looked = -SWEEP
        with explained("make", cache):
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._own = Path(mkdtemp(dir=self._cache))
            self._held = os.open(self._own / "new", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX)
            (self._own / "new").rename(self._own / "lock")  # nobody sees it free

    def close(self) -> None:
        """Delete them; none is in use."""
        _delete_all(self._own)
        os.close(self._held)

    @contextmanager
    def taken(self, library: str, newer: Callable[[str], Head | None]) -> Iterator[Place]:
        """Give a folder that is a library's head, the caller's alone; `newer` gives its head, None if
        known."""
        with self._lock:
            free = self._free.pop(library, [])
            place = free.pop() if free else None
            if free:
                self._free[library] = free
        try:
            if head := newer(place.head.etag if place else ""):
                with explained("write", self._own):
                    stale, place = place, Place(Path(mkdtemp(dir=self._own)), Head())
                    if stale:
                        _delete(stale.tree)
                    lay_out(head.files, place.tree)
                    state.check(Files(place.tree), claim=True)
                place.head = replace(head, files={})
            assert place is not None
            yield place
        finally:
            if place and place.head.etag:
                place.used = time.monotonic()
                with self._lock:
                    self._free.setdefault(library, []).append(place)
            elif place:
                _delete(place.tree)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the time of the block, which the killed leave for the next sweep."""
        with explained("make", self._own):
            made = TemporaryDirectory(dir=self._own, ignore_cleanup_errors=True)
        with made as folder:
            yield Path(folder)

    def sweep(self) -> None:
        """Delete what is unused, and what the dead left. Once in SWEEP."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked < SWEEP:
                return
            self._looked = now
            unused = [name for name, free in self._free.items() if now - free[0].used > KEPT]
            places = [place for name in unused for place in self._free.pop(name)]
        for place in places:
            _delete(place.tree)
        for lock in self._cache.glob("*/lock"):
            with suppress(FileNotFoundError, BlockingIOError), lock.open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete_all(lock.parent)


def _delete_all(process: Path) -> None:
    """The folder of a process; the lock goes last, so that nothing is left that nobody finds."""
    for tree in process.glob("*/"):
        _delete(tree)
    shutil.rmtree(process, ignore_errors=True)


def _delete(tree: Path) -> None:
    delete_cache(str(tree))
    shutil.rmtree(tree, ignore_errors=True)
