"""The generated export is one that ChatGPT could have made, and the same every time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from infinimem.importers import read_turns


def test_the_export_is_recognised_and_the_same_every_time(
    load: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    bench = load("import_export")
    for name in ("a.json", "b.json"):
        bench.make(tmp_path / name, 0.1)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    found = read_turns(tmp_path / "a.json")
    assert found.format == "chatgpt"
    assert sum(1 for _ in found.turns) > 50
    assert set(found.skipped) == {"system prompts", "messages of branches that were edited away"}


@pytest.mark.soak
def test_an_import_that_is_killed_twice_goes_on(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    bench = load("import_export")
    bench.make(tmp_path / "export.json", 5)
    (tmp_path / "run").mkdir()
    bench.resume(tmp_path / "export.json", tmp_path / "run")
