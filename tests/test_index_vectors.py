"""Vectors that were computed once: found again by any process, garbled ones computed anew, a killed writer's
left out; and the nearest rows, exactly."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each

from infinimem import Turn, open_memory
from infinimem.embedders.base import Kind
from infinimem.embedders.local import Lexical
from infinimem.index.vectors import Vectors, nearest
from infinimem.markdown.characters import text_key

ROOT = "/library"
TEXTS = [f"entry number {at} of the library" for at in range(50)]


class Counting(Lexical):
    """Keeps what it was asked."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Any:
        self.asked += texts
        return super().embed(texts, kind)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def keys(texts: Sequence[str] = TEXTS) -> list[bytes]:
    return [text_key(text) for text in texts]


def file_of(cache: Path) -> Path:
    (path,) = (cache / "infinimem").glob("*/vectors/*.rows")
    return path


def is_whole(store: Vectors, texts: Sequence[str] = TEXTS) -> bool:
    """Whether each of these texts has its own vector."""
    at = store.rows.places(keys(texts))
    return min(at) >= 0 and np.array_equal(store.rows.matrix[at], Lexical().embed(texts))


def test_another_process_finds_them() -> None:
    Vectors(ROOT, Counting()).add(TEXTS)
    embedder = Counting()
    other = Vectors(ROOT, embedder)
    assert is_whole(other)
    other.add(TEXTS)
    assert embedder.asked == []


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


RECORD = 16 + 4 + 4 * Lexical.size


@each(
    ("harm", "lost"),
    [
        (lambda data: b"", 50),
        (lambda data: data[: 20 * RECORD], 30),
        (lambda data: data[: 20 * RECORD + 100], 30),
        (lambda data: data[: 49 * RECORD + 100] + bytes(len(data) - 49 * RECORD - 100), 1),
        (lambda data: data[: 20 * RECORD + 5] + b"garbled" + data[20 * RECORD + 12 :], 1),
        (lambda data: data[: 20 * RECORD + 900] + b"garbled" + data[20 * RECORD + 907 :], 1),
        (lambda data: b"\x55" * len(data), 50),
        (lambda data: bytes(len(data)), 50),
    ],
)
def test_what_was_harmed_is_computed_anew(harm: Callable[[bytes], bytes], lost: int, own_cache: Path) -> None:
    shutil.rmtree(own_cache, ignore_errors=True)
    Vectors(ROOT, Counting()).add(TEXTS)
    path = file_of(own_cache)
    path.write_bytes(harm(path.read_bytes()))
    embedder = Counting()
    store = Vectors(ROOT, embedder)
    store.add(TEXTS)
    assert is_whole(store) and len(embedder.asked) == lost
    embedder = Counting()
    assert is_whole(Vectors(ROOT, embedder)) and not embedder.asked


WRITER = """
import sys
from infinimem.embedders.local import Lexical
from infinimem.index.vectors import Vectors
store = Vectors("/library", Lexical())
for at in range(int(sys.argv[1]), int(sys.argv[2]), 5):
    store.add([f"entry number {number} of the library" for number in range(at, at + 5)])
"""


def test_two_processes_write_at_once() -> None:
    spans = [(0, 40), (20, 60)]
    started = [subprocess.Popen([sys.executable, "-c", WRITER, *map(str, span)]) for span in spans]
    reader = Vectors(ROOT, Lexical())
    while any(process.poll() is None for process in started):
        at = dict(zip(TEXTS, reader.rows.places(keys()), strict=True))
        known = {text: place for text, place in at.items() if place >= 0}
        assert np.array_equal(reader.rows.matrix[[*known.values()]], Lexical().embed([*known]))
    assert [process.returncode for process in started] == [0, 0]
    texts = [f"entry number {number} of the library" for number in range(60)]
    assert is_whole(reader, texts) and len(reader.rows.matrix) == 60


def test_a_disk_that_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Counting()
    store = Vectors(ROOT, embedder)
    store.add(TEXTS[:20])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(fcntl, "flock", full)
        store.add(TEXTS[20:40])
        store.add(TEXTS)
    assert is_whole(store) and embedder.asked == TEXTS
    assert caplog.text.count("No space left") == 1
    assert len(Vectors(ROOT, Counting()).rows.matrix) == 20


# ── forgetting ──────────────────────────────────────────────────────────────────────────────────


def gone(own_cache: Path) -> None:
    """What `forget` does to the caches."""
    (own_cache / "infinimem").rename(own_cache / "aside")


def test_what_was_forgotten_is_not_known_any_more(own_cache: Path) -> None:
    store = Vectors(ROOT, Counting())
    store.add(TEXTS)
    gone(own_cache)
    assert len(store.rows.matrix) == 0
    store.add(TEXTS[:5])
    assert is_whole(store, TEXTS[:5]) and len(store.rows.matrix) == 5
    assert len(Vectors(ROOT, Counting()).rows.matrix) == 5


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_forget_while_vectors_are_computed(made_anew: bool, own_cache: Path) -> None:
    class Forgetting(Counting):
        def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Any:
            if len(self.asked) == 0:
                gone(own_cache)
                assert not made_anew or len(Vectors(ROOT, Counting()).rows.matrix) == 0  # somebody looks
            return super().embed(texts)

    store = Vectors(ROOT, Forgetting())
    rows = store.add(TEXTS)
    assert min(rows.places(keys())) >= 0, "the call itself is answered"
    assert len(store.rows.matrix) == 0 and len(Vectors(ROOT, Counting()).rows.matrix) == 0, (
        "and nothing is kept"
    )
    store.add(TEXTS)
    assert is_whole(Vectors(ROOT, Counting())), "the next call keeps it"


def test_what_the_files_do_not_say_any_more_is_not_kept() -> None:
    store = Vectors(ROOT, Counting())
    rows = store.add(TEXTS, lambda: False)
    assert min(rows.places(keys())) >= 0, "the call itself is answered"
    assert len(store.rows.matrix) == 0 and len(Vectors(ROOT, Counting()).rows.matrix) == 0


# ── the nearest ─────────────────────────────────────────────────────────────────────────────────


@each("among", [None, [3, 5, 7, 11, 13], [*range(0, 300, 2)]])
def test_the_nearest_are_those_that_a_sort_finds(among: list[int] | None) -> None:
    matrix = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    matrix[8] = matrix[4]
    looked_at = np.array(among) if among else None
    _, (places, scores) = nearest(matrix, matrix[[2, 4]], 4, looked_at)
    rows = matrix if among is None else matrix[among]
    exact = np.round(rows.astype(np.float64) @ matrix[4].astype(np.float64), 6)
    assert sorted(scores, reverse=True)[:4] == sorted(exact.tolist(), reverse=True)[:4]
    assert scores == exact[places].tolist()
    assert not nearest(matrix, np.zeros((1, 8), np.float32), 4)[0][1]
    assert not nearest(matrix, matrix[:1], 0)[0][1]


def test_after_a_forget_search_knows_where_all_vectors_stand(tmp_path: Path, own_cache: Path) -> None:
    """Bug guarded: rows that the first search after it did not look at kept the places from before."""
    embedder = Counting()
    embedder.semantic = True
    memory = open_memory(tmp_path / "m", model="offline", embedder=embedder, create=True)
    (tmp_path / "m/notes.md").write_text("".join(f"# Note {at}\n\nThe {at}th note.\n\n" for at in range(40)))
    memory.record([Turn(text, session="s1") for text in TEXTS[:5]])
    asked = [("the 7th note", "default"), ("entry number 3", "evidence"), ("the 7th note", "default")]
    before = [memory.tools.search(query, scope=scope)["hits"] for query, scope in asked]
    file_of(own_cache).unlink()  # as a `forget` does
    after = [memory.tools.search(query, scope=scope)["hits"] for query, scope in [*asked[1:], asked[1]]]
    assert after == [*before[1:], before[1]]
