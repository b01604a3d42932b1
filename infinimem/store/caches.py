"""Where this user keeps what is derived from libraries: one folder that can be deleted at any time."""

from __future__ import annotations

import os
from pathlib import Path

NAME = "infinimem"
ASIDE = f"{NAME}.*.gone"
"""What `forget` moved out of the way and was kept from deleting."""


def cache_root() -> Path | None:
    """The folder, be it there or not; None where no home folder can be told.

    Source: XDG Base Directory Specification 0.8, which has relative paths ignored.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / NAME
    try:
        return Path.home() / ".cache" / NAME
    except RuntimeError:
        return None


def caches() -> tuple[Path, ...]:
    """Folders that may hold what is derived from any library."""
    root = cache_root()
    return () if root is None else (root, *sorted(root.parent.glob(ASIDE)))
