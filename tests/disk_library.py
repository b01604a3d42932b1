"""A library with an index in the cache directory, and what it must agree with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from infinimem.memory import Memory, open_memory
from infinimem.retrieval import cache
from infinimem.retrieval.disk import in_memory
from infinimem.retrieval.rows import KINDS
from infinimem.retrieval.scoring import Ranking
from infinimem.retrieval.searcher import ranking
from infinimem.store.view import Scope, View
from infinimem.terms import query_terms

SAMPLE = Path(__file__).parents[1] / "sample_library"
QUESTIONS = (
    "Where did I move to in March 2025?",
    "oat milk coffee in the morning",
    "What did I say about running in July 2025?",
    "Which router is in the cupboard?",
    "tea",
    "Which notes speak of replication lag?",
    "the name of my dog",
    "I",
)


def large_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """The sample library with some notes; the fixture `memory` of the tests of the index on disk."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(SAMPLE, tmp_path / "library")
    for number in range(12):
        write_note(tmp_path / "library", number, f"replication lag {number}\n\n# Tea\n\nviolin and tea\n")
    yield open_memory(tmp_path / "library", model="offline")


def write_note(root: Path, number: int, text: str) -> None:
    (root / "notes").mkdir(exist_ok=True)
    (root / "notes" / f"n{number}.md").write_text(text)


def index_folder(memory: Memory) -> Path:
    folder = cache.cache_folder(str(memory.library.files.root), "index", "infini")
    assert folder
    return folder


def answers(index: Ranking, limit: int = 10) -> list[list[tuple[object, ...]]]:
    """For some questions the rows found, without the uids of their documents, and their scores."""
    return [
        [(*row[1:], row.start, score) for row, score in found]
        for kind in KINDS
        for scope in get_args(Scope)
        for question in (QUESTIONS if scope == "default" else QUESTIONS[::3])
        for found in [index.best(kind, question, query_terms(question), scope, limit)]
    ]


def assert_same(view: View) -> None:
    """What is on disk, with what is beside it, finds what an index built anew finds.

    Deleted rows count in how rare a term is until tantivy merges them away, so scores may differ.
    """
    for found, wanted in zip(answers(ranking(view), 500), answers(in_memory(view), 500), strict=True):
        assert sorted(row[:-1] for row in found) == sorted(row[:-1] for row in wanted)
        assert all(row[-1] > 0 for row in found)
