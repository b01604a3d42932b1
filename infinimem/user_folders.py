"""What this user keeps outside of libraries, and which libraries they trust (docs/SECURITY.md).

$XDG_DATA_HOME/infinimem/trusted/ has a file a library: its path, and the digest of those of its settings that
may act. Hooks write into a library that is in it, and MCP clients may.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from infinimem.errors import InfinimemError

NAME = "infinimem"
SETTINGS = "infinimem.toml"  # the file of a library's settings; a folder that has it is one
TRUST = "INFINIMEM_TRUST"
"""Paths that are trusted whatever their settings say, separated as in PATH. For CI and containers."""


def user_folder(kind: Literal["cache", "config", "data"]) -> Path | None:
    """Return the program's folder of a kind, even if it is not there; None without a home folder."""
    from platformdirs.unix import Unix  # the XDG folders on every system

    named = (os.environ.get(name, "") for name in (f"XDG_{kind.upper()}_HOME", "HOME"))
    known = any(Path(name).is_absolute() for name in named)  # of no home in the password database
    return Path(getattr(Unix(NAME), f"user_{kind}_dir")) if known else None


def caches() -> tuple[Path, ...]:
    """Return the folders that may hold derived files, also those that `forget` could not delete."""
    root = user_folder("cache")
    return () if root is None else (root, *sorted(root.parent.glob(f"{NAME}.*.gone")))


def default_library() -> Path | None:
    """Return the library of whoever names none."""
    data = user_folder("data")
    return data / "default" if data else None


def first_today(what: str, library: str = "") -> bool:
    """Tell whether this is the day's first call for what is told of a library, by its real path, or of none;
    True if it cannot be noted."""
    folder = cache_folder(library, "told") if library else user_folder("cache")
    with suppress(OSError):
        note = (folder or Path(os.devnull)) / what
        before = note.stat().st_mtime if note.exists() else 0.0
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch()
        return time.localtime(before)[:3] != time.localtime()[:3]
    return True


class Trusted(NamedTuple):
    """A library that `init` made here or `trust` named: its real path, the digest of approved settings."""

    path: str
    digest: str


def digest_of(settings: Mapping[str, object]) -> str:
    """Return the digest of settings by name, for `approve`."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def is_mine(library: Path) -> bool:
    """Tell whether it is the default library, or one that was made here or trusted."""
    default = default_library()
    if default and os.path.realpath(default) == os.path.realpath(library):
        return True
    return is_named(library) or approved(library) is not None


def is_named(library: Path) -> bool:
    """Tell whether $INFINIMEM_TRUST names it."""
    named = os.environ.get(TRUST, "").split(os.pathsep)
    return os.path.realpath(library) in {os.path.realpath(path) for path in named if Path(path).is_absolute()}


def approved(library: Path) -> str | None:
    """Return the digest of its approved settings; None if it is not trusted."""
    file = _file(library)
    found = _read(file) if file else None
    return found.digest if found and found.path == os.path.realpath(library) else None


def approve(library: Path, digest: str) -> bool:
    """Trust a library with the settings of this digest; False without a home folder, else InfinimemError."""
    from tempfile import NamedTemporaryFile  # hooks import this module, and never approve

    file = _file(library)
    if file is None:
        return False
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=file.parent, delete=False) as out:  # 0600
            json.dump({"library": os.path.realpath(library), "settings": digest}, out)
        Path(out.name).replace(file)
    except OSError as error:
        raise InfinimemError(
            f"cannot write to {file.parent}: {error.strerror}; nothing is trusted"
        ) from error
    return True


def revoke(library: Path) -> bool:
    """Trust a library no more; return False if it was not trusted."""
    file = _file(library)
    if file is None or not file.exists():
        return False
    file.unlink()
    return True


def trusted() -> Iterator[Trusted]:
    """Yield the libraries that are trusted, by path."""
    data = user_folder("data")
    rows = (_read(file) for file in (data / "trusted").glob("*.json")) if data else ()
    yield from sorted(row for row in rows if row)


def _file(library: Path) -> Path | None:
    data = user_folder("data")
    name = hashlib.sha256(os.fsencode(os.path.realpath(library))).hexdigest()[:32]
    return data / "trusted" / f"{name}.json" if data else None


def _read(file: Path) -> Trusted | None:
    """Return what a file says, if nobody else could have written it."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            about = os.fstat(descriptor)
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022:
                found = json.loads(opened.read(1 << 16))
                return Trusted(str(found["library"]), str(found["settings"]))
    return None


def cache_folder(root: str, *parts: str) -> Path | None:
    """Return the folder of a library's derived data, or one in it, its owner's alone, if there can be one."""
    top = user_folder("cache")
    if top is None:
        return None
    name = hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    folders = [top]
    for inner in (name, *parts):
        folders.append(folders[-1] / inner)
    try:
        top.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in folders:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            found = folder.lstat()
            if found.st_uid != os.geteuid() or folder.is_symlink():
                return None
            if found.st_mode & 0o777 != 0o700:
                folder.chmod(0o700)
    except (OSError, ValueError):
        return None
    return folders[-1]


def delete_cache(root: str) -> None:
    """Delete all that was derived from a library, which is gone itself, or goes."""
    if folder := cache_folder(root):
        shutil.rmtree(folder, ignore_errors=True)
