"""Where an installed package lies, without running it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def folder_of(package: str) -> Path | None:
    """Its folder; None where it is not installed."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None
