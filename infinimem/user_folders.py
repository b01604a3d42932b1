"""What makes a folder a library, and where this user keeps things outside of libraries.

Source: XDG Base Directory Specification 0.8.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

NAME = "infinimem"
SETTINGS = "infinimem.toml"
"""The file of a library's settings; a folder that has it is one."""
_BASES = {"CACHE": (".cache",), "CONFIG": (".config",), "DATA": (".local", "share")}


def user_folder(kind: Literal["CACHE", "CONFIG", "DATA"]) -> Path | None:
    """The program's folder of a kind, be it there or not; None without a home folder.

    Args:
        kind: as in $XDG_CACHE_HOME; a relative path there is ignored.
    """
    base = Path(os.environ.get(f"XDG_{kind}_HOME", ""))
    if base.is_absolute():
        return base / NAME
    home = Path(os.environ.get("HOME", ""))
    return home.joinpath(*_BASES[kind], NAME) if home.is_absolute() else None


def cache_root() -> Path | None:
    """The folder of what is derived from libraries, be it there or not; it can be deleted at any time."""
    return user_folder("CACHE")


def caches() -> tuple[Path, ...]:
    """Folders that may hold what is derived from any library, also those that `forget` could not delete."""
    root = cache_root()
    return () if root is None else (root, *sorted(root.parent.glob(f"{NAME}.*.gone")))


def default_library() -> Path | None:
    """The library of whoever names none."""
    data = user_folder("DATA")
    return data / "default" if data else None


def first_today(note: Path) -> bool:
    """Whether this is the first call of the day for a note; True where that cannot be noted.

    Args:
        note: an empty file, which is made or touched.
    """
    with suppress(OSError):
        told = note.stat().st_mtime if note.exists() else 0.0
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch()
        return time.localtime(told)[:3] != time.localtime()[:3]
    return True
