"""The contract of the facade, on libraries that went through a fleet: whenever a test opens a folder again,
it has been in the store meanwhile, and comes from there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import test_memory
from fleet_library import fleet as fleet
from test_memory import *  # noqa: F403

from infinimem import open_memory
from infinimem.fleet.edited import EXPORTED
from infinimem.fleet.fleet import Fleet
from infinimem.memory import Memory


@pytest.fixture(autouse=True)
def through_the_store(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another way to open a library: brought into the fleet, deleted, and written out of it."""
    trips: list[str] = []

    def opened(path: str | Path, **options: Any) -> Memory:
        folder = Path(path)
        if (folder / "infinimem.toml").exists():
            trips.append(f"l{len(trips)}")
            (folder / EXPORTED).unlink(missing_ok=True)
            assert fleet.import_(trips[-1], folder)
            shutil.rmtree(folder)
            fleet.export(trips[-1], folder)
        return open_memory(path, **options)

    monkeypatch.setattr(test_memory, "open_memory", opened)
