"""A library whose index lies in the cache directory however small it is, and what it must agree with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from infinimem.memory import Memory, open_memory
from infinimem.retrieval import cache
from infinimem.retrieval.disk import disk_index
from infinimem.retrieval.index import Indexed, in_memory
from infinimem.retrieval.lexical import KINDS
from infinimem.retrieval.searcher import indexed, searcher
from infinimem.store.view import SCOPES, View
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
    monkeypatch.setattr(cache, "SMALL_DOCUMENTS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    disk_index.cache_clear()
    searcher.cache_clear()
    shutil.copytree(SAMPLE, tmp_path / "library")
    for number in range(12):
        write_note(tmp_path / "library", number, f"replication lag {number}\n\n# Tea\n\nviolin and tea\n")
    yield open_memory(tmp_path / "library", model="offline")
    disk_index.cache_clear()
    searcher.cache_clear()


def write_note(root: Path, number: int, text: str) -> None:
    (root / "notes").mkdir(exist_ok=True)
    (root / "notes" / f"n{number}.md").write_text(text)


def index_folder(memory: Memory) -> Path:
    folder = cache.cache_folder(str(memory.library.files.root), "index", "infini")
    assert folder
    return folder


def answers(index: Indexed) -> list[object]:
    return [
        index.best(kind, question, query_terms(question), scope, 10, 512)
        for kind in KINDS
        for scope in SCOPES
        for question in (QUESTIONS if scope == "default" else QUESTIONS[::3])
    ]


def assert_same(view: View) -> None:
    """What is on disk, with what is laid over it, ranks as memory does."""
    on_disk = indexed(view)
    assert not isinstance(on_disk.engine, type(in_memory(view).engine))
    assert answers(on_disk) == answers(in_memory(view))
