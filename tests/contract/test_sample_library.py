"""The sample library is what the program makes of its conversation, and holds what it is there to show."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from infinimem import open_memory

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_library"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("build_sample")


def files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".infinimem" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def test_building_it_again_gives_the_same_files(builder: ModuleType, tmp_path: Path) -> None:
    """If not, something changed what is written: run python benchmarks/build_sample.py sample_library."""
    builder.build(tmp_path / "again")
    again, here = files(tmp_path / "again"), files(SAMPLE)
    assert sorted(again) == sorted(here)
    assert [name for name in again if again[name] != here[name]] == []


def test_it_is_sound_and_shows_change_correction_and_sources() -> None:
    memory = open_memory(SAMPLE, model="offline")
    assert memory.doctor() == []
    view = memory.view
    assert sum(doc_id.startswith("topics/") for doc_id in view.ids()) == 12
    assert len(view.buffer.entries) == 9
    archived = {place.entry.text: place.headings[-1] for place in view.entries("archive")}
    assert "Title is data analyst" in archived
    assert "We fly out on 12 June from Bristol" in archived
    live = [place.entry for place in view.entries()]
    assert any(entry.source == "AI" and "5:40" in entry.text for entry in live)
    assert any(entry.fields.get("by") == "model" for entry in live)
