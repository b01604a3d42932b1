"""The measurement of vectors, on a few entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infinimem.embedders.lexical import Lexical


def test_entries_differ_and_are_the_same_each_time(load: Any) -> None:
    texts = load("vectors").texts
    assert len(set(texts(500))) == 500
    assert texts(20) == texts(20) != texts(20, 2)


def test_it_measures_a_small_store(
    load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = load("vectors")
    monkeypatch.setattr(script, "LOCAL", {"lexical": 20})
    script.rates()
    script.store(Lexical(), script.texts(60))
    said = capsys.readouterr().out
    assert "texts/s" in said and "60 entries" in said and "nearest 50" in said
