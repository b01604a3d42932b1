"""The contract of the facade, on libraries that went through a fleet: whenever a test opens a folder again,
it has been in the store meanwhile, and comes from there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import test_memory
from fleet_library import fleet as fleet

from infinimem import open_memory
from infinimem.fleet.edited import EXPORTED
from infinimem.fleet.fleet import Fleet
from infinimem.memory import Memory

PROMISES = (
    "a_line_that_a_person_deleted_does_not_come_back",
    "a_superseded_fact_moves_to_the_archive_with_its_reason",
    "an_endpoint_that_dies_while_consolidating_leaves_the_buffer",
    "offline_a_conversation_becomes_topics_and_answers",
    "what_was_recorded_is_drawn_from_at_the_next_call",
)
globals().update({f"test_{name}": getattr(test_memory, f"test_{name}") for name in PROMISES})


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
