"""Nearness in meaning joins the ranking, in every scope; a text is embedded once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each
from in_memory import LISBON, view_of

from infinimem.embedders.base import unit
from infinimem.errors import ModelUnavailable
from infinimem.retrieval.disk import in_memory
from infinimem.retrieval.searcher import searcher
from infinimem.settings import SearchSettings, Settings
from infinimem.store.view import Scope, View

MEANINGS = ("move moved settled lives", "gift gave give present", "violin fiddle", "tea coffee latte drink")


class Meanings:
    """Knows a few words that mean the same, and keeps what it was asked."""

    semantic = True
    size = len(MEANINGS)

    def __init__(self, name: str = "meanings", order: int = 1) -> None:
        self.name = name
        self.asked: list[str] = []
        self._axes = {word: at for at, words in enumerate(MEANINGS[::order]) for word in words.split()}

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()):
                if word in self._axes:
                    row[self._axes[word]] += 1
        return unit(rows)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lisbon(embedder: Meanings, **search: Any) -> View:
    return view_of(LISBON, Settings(search=SearchSettings(**search)), embedder=lambda: embedder)


def found(view: View, query: str, scope: Scope = "default") -> list[int]:
    """Seqs of the entries found; 0 for a passage."""
    return [row.seq for row, _ in in_memory(view).best("entries", query, [], scope, 50)]


def test_what_shares_no_word_with_a_query_is_found_by_its_meaning() -> None:
    view = lisbon(Meanings())
    assert found(view, "settled")[0] == 13
    assert found(view, "present")[0] == 12
    assert searcher(view).blocks("fiddle")[0].doc_id == "notes/todo"


@each(("scope", "seqs"), [("archive", {11}), ("evidence", {2, 4, 6}), ("all", {2, 4, 6, 11, 12, 13, 15})])
def test_each_scope_has_its_own(scope: Scope, seqs: set[int]) -> None:
    assert set(found(lisbon(Meanings()), "settled, a present, coffee", scope)) >= seqs
    live = found(lisbon(Meanings()), "settled, a present, coffee")
    assert not {2, 4, 6, 11} & set(live)


def test_a_server_that_does_not_answer_leaves_words(caplog: pytest.LogCaptureFixture) -> None:
    class Down(Meanings):
        def embed(self, texts: Sequence[str]) -> Any:
            raise ModelUnavailable("no answer; try later")

    places = in_memory(lisbon(Down())).best("entries", "Lisbon", ["lisbon"], "default", 9)
    assert places == in_memory(view_of(LISBON)).best("entries", "Lisbon", ["lisbon"], "default", 9)
    assert "ranked by words alone: no answer; try later" in caplog.text
