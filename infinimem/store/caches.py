"""Where this user keeps what is derived from libraries: one folder that can be deleted at any time."""

from __future__ import annotations

from pathlib import Path

from infinimem.user_folders import NAME, user_folder

ASIDE = f"{NAME}.*.gone"
"""What `forget` moved out of the way and was kept from deleting."""


def cache_root() -> Path | None:
    """The folder, be it there or not; None where no home folder can be told."""
    return user_folder("CACHE")


def caches() -> tuple[Path, ...]:
    """Folders that may hold what is derived from any library."""
    root = cache_root()
    return () if root is None else (root, *sorted(root.parent.glob(ASIDE)))
