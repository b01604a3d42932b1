"""Which libraries this user trusts, by real path. The whole model: docs/SECURITY.md.

    $XDG_DATA_HOME/infinimem/trusted/NAME.json    one file a library: its path, the digest of its settings

Two questions. Is it mine? Then hooks write into it and MCP clients may. And may its settings act, those that
decide where text goes? Only while their digest is the one that was approved.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from infinimem.errors import InfinimemError
from infinimem.user_folders import default_library, user_folder

TRUST = "INFINIMEM_TRUST"
"""Paths that are trusted whatever their settings say, separated as in PATH. For CI and containers."""


class Trusted(NamedTuple):
    """A library that `init` made here or `trust` named.

    Args:
        path: its real path.
        digest: of the settings that were approved.
    """

    path: str
    digest: str


def digest_of(settings: Mapping[str, object]) -> str:
    """The digest of settings by name, for `approve`."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def is_mine(library: Path) -> bool:
    """Whether it is the default library, or one that was made here or trusted."""
    default = default_library()
    if default and _real(default) == _real(library):
        return True
    return is_named(library) or approved(library) is not None


def is_named(library: Path) -> bool:
    """Whether $INFINIMEM_TRUST names it."""
    named = os.environ.get(TRUST, "").split(os.pathsep)
    return _real(library) in {_real(Path(path)) for path in named if Path(path).is_absolute()}


def approved(library: Path) -> str | None:
    """The digest of its approved settings; None if it is not trusted."""
    file = _file(library)
    found = _read(file) if file else None
    return found.digest if found and found.path == _real(library) else None


def approve(library: Path, digest: str) -> bool:
    """Trust a library, with the settings of this digest.

    Returns:
        False where there is no home folder to note it in.

    Raises:
        InfinimemError: it cannot be written.
    """
    import tempfile  # hooks import this module, and never approve

    file = _file(library)
    if file is None:
        return False
    data = json.dumps({"library": _real(library), "settings": digest}).encode()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, new = tempfile.mkstemp(dir=file.parent)  # 0600
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        Path(new).replace(file)
    except OSError as error:
        raise InfinimemError(
            f"cannot write to {file.parent}: {error.strerror}; nothing is trusted"
        ) from error
    return True


def revoke(library: Path) -> bool:
    """Trust a library no more; False if it was not trusted."""
    file = _file(library)
    if file is None or not file.exists():
        return False
    file.unlink()
    return True


def trusted() -> Iterator[Trusted]:
    """All that are, by path."""
    folder = _folder()
    rows = (_read(file) for file in folder.glob("*.json")) if folder else ()
    yield from sorted((row for row in rows if row), key=lambda row: row.path)


def _folder() -> Path | None:
    data = user_folder("DATA")
    return data / "trusted" if data else None


def _file(library: Path) -> Path | None:
    folder = _folder()
    name = hashlib.sha256(os.fsencode(_real(library))).hexdigest()[:32]
    return folder / f"{name}.json" if folder else None


def _real(path: Path) -> str:
    return os.path.realpath(path)


def _read(file: Path) -> Trusted | None:
    """What a file says, if nobody else could have written it."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            about = os.fstat(descriptor)
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022:
                found = json.loads(opened.read(1 << 16))
                return Trusted(str(found["library"]), str(found["settings"]))
    return None
