"""Settings of a library that its owner trusts."""

from __future__ import annotations

from pathlib import Path

from infinimem.settings import SETTINGS, configuration
from infinimem.user_folders import approve


def write_trusted(library: Path, text: str) -> None:
    """Write infinimem.toml, and trust it as `infinimem trust` does."""
    library.mkdir(parents=True, exist_ok=True)
    (library / SETTINGS).write_text(text)
    approve(library, configuration(text.encode()).digest)
