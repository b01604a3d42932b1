"""The measurement of surface against full bank, on a few units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def script(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return load("surface")


def test_vectors_are_drawn_by_the_text(script: Any) -> None:
    rows = script.Drawn().embed(["a", "b", "a"])
    assert rows.shape == (3, 384) and (rows[0] == rows[2]).all() and abs(rows[0] @ rows[1]) < 0.3
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def test_the_bank_has_the_ratio_and_is_sound(script: Any, tmp_path: Path) -> None:
    memory = script.library(tmp_path / "m", 60, 0.7, script.Drawn())
    status = memory.status()
    assert (status["visible"], status["archived"], status["pending"]) == (42, 18, 0)
    assert not memory.doctor(), "every archived unit is reached, and what is quoted is the evidence"
    row = script.measured(memory, 3, 10)
    assert row.ratio == 0.7
    assert [len(each) for each in (row.surface, row.full, row.question, row.question_full)] == [3] * 4


def test_median_and_least_are_shown(script: Any) -> None:
    row = script.Row(0.7, (4.0, 2.0, 3.0), (6.0, 8.0, 5.0), (9.0, 9.0, 7.0), (10.0, 9.0, 11.0))
    told = "| 0.700 | 3.00 / 2.00 | 6.00 / 5.00 | 0.50 / 0.40 | 9.00 / 7.00 | 10.00 / 9.00 |"
    assert str(row) == told
