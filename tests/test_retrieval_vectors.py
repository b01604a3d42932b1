"""Vectors that were computed once: found again by any process, garbled ones computed anew, a killed writer's
left out; and the nearest rows, exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each

from infinimem.embedders.local import Lexical
from infinimem.index.pieces import text_key
from infinimem.retrieval import cache
from infinimem.retrieval.vectors import Vectors

ROOT = "/library"
TEXTS = [f"entry number {at} of the library" for at in range(50)]


class Counting(Lexical):
    """Keeps what it was asked."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return super().embed(texts)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def keys(texts: Sequence[str] = TEXTS) -> list[bytes]:
    return [text_key(text) for text in texts]


def folder_of(store: Vectors) -> Path:
    folder = store.folder()
    assert folder
    return folder


def is_whole(store: Vectors, texts: Sequence[str] = TEXTS) -> bool:
    """Whether each of these texts has its own vector."""
    held = store.held
    at = held.rows(keys(texts))
    return bool((at >= 0).all()) and np.array_equal(held.matrix[at], Lexical().embed(texts))


def test_another_process_finds_them() -> None:
    Vectors(ROOT, Counting()).add(TEXTS)
    embedder = Counting()
    other = Vectors(ROOT, embedder)
    assert is_whole(other)
    other.add(TEXTS)
    assert embedder.asked == []


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def harmed(store: Vectors, part: str, harm: str) -> None:
    folder = folder_of(store)
    name = cache.MANIFEST if part == "manifest" else (cache.read_manifest(folder, "vectors-1") or {})[part]
    path = folder / name
    data = path.read_bytes()
    if harm == "gone":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif harm == "empty":
        path.write_bytes(b"")
    else:
        middle = len(data) // 2
        path.write_bytes(
            data[:middle] + bytes(byte ^ 0x55 for byte in data[middle : middle + 4]) + data[middle + 4 :]
        )


@each("harm", ["gone", "cut", "empty", "garbled"])
@each("part", ["manifest", "keys", "rows"])
def test_what_was_harmed_is_computed_anew(part: str, harm: str) -> None:
    first = Vectors(ROOT, Counting())
    first.add(TEXTS)
    harmed(first, part, harm)
    embedder = Counting()
    store = Vectors(ROOT, embedder)
    store.add(TEXTS)
    assert is_whole(store) and sorted(embedder.asked) == sorted(TEXTS)
    assert is_whole(Vectors(ROOT, Counting()))
    assert len(list(folder_of(store).iterdir())) == 4, "what is of no use is removed"


WRITER = """
import sys
from infinimem.embedders.local import Lexical
from infinimem.retrieval.vectors import Vectors
store = Vectors("/library", Lexical())
for at in range(int(sys.argv[1]), int(sys.argv[2]), 5):
    store.add([f"entry number {number} of the library" for number in range(at, at + 5)])
"""


def test_two_processes_write_at_once() -> None:
    spans = [(0, 40), (20, 60)]
    started = [subprocess.Popen([sys.executable, "-c", WRITER, *map(str, span)]) for span in spans]
    reader = Vectors(ROOT, Lexical())
    while any(process.poll() is None for process in started):
        held = reader.held
        at = held.rows(keys())
        assert np.array_equal(
            held.matrix[at[at >= 0]], Lexical().embed([TEXTS[n] for n in np.flatnonzero(at >= 0)])
        )
    assert [process.returncode for process in started] == [0, 0]
    texts = [f"entry number {number} of the library" for number in range(60)]
    assert is_whole(reader, texts) and len(reader.held.matrix) == 60


def test_a_disk_that_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Counting()
    store = Vectors(ROOT, embedder)
    store.add(TEXTS[:20])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store.add(TEXTS[20:40])
    store.add(TEXTS)
    assert is_whole(store) and embedder.asked == TEXTS
    assert caplog.text.count("No space left") == 1
    monkeypatch.undo()
    assert len(Vectors(ROOT, Counting()).held.matrix) in (0, 20)


# ── forgetting ──────────────────────────────────────────────────────────────────────────────────


def gone(own_cache: Path) -> None:
    """What `forget` does to the caches."""
    (own_cache / "infinimem").rename(own_cache / "aside")


def test_what_was_forgotten_is_not_known_any_more(own_cache: Path) -> None:
    store = Vectors(ROOT, Counting())
    store.add(TEXTS)
    gone(own_cache)
    assert len(store.held.matrix) == 0
    store.add(TEXTS[:5])
    assert is_whole(store, TEXTS[:5]) and len(store.held.matrix) == 5
    assert len(Vectors(ROOT, Counting()).held.matrix) == 5


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_forget_while_vectors_are_computed(made_anew: bool, own_cache: Path) -> None:
    class Forgetting(Counting):
        def embed(self, texts: Sequence[str]) -> Any:
            if len(self.asked) == 0:
                gone(own_cache)
                assert not made_anew or len(Vectors(ROOT, Counting()).held.matrix) == 0  # somebody looks
            return super().embed(texts)

    store = Vectors(ROOT, Forgetting())
    held = store.add(TEXTS)
    assert (held.rows(keys()) >= 0).all(), "the call itself is answered"
    assert len(store.held.matrix) == 0 and len(Vectors(ROOT, Counting()).held.matrix) == 0, (
        "and nothing is kept"
    )
    store.add(TEXTS)
    assert is_whole(Vectors(ROOT, Counting())), "the next call keeps it"
