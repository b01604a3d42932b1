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

from infinimem.embedders.lexical import Lexical
from infinimem.memory import open_memory
from infinimem.model import Turn
from infinimem.retrieval import cache
from infinimem.retrieval.rows import text_key
from infinimem.retrieval.vectors import Vectors, as_keys, portions, top, unchanged, vectors_of

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


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest) -> str | None:
    return ROOT if request.param == "disk" else None


class TestTheStore:
    """The contract, on disk and in memory."""

    def test_it_knows_what_was_added(self, root: str | None) -> None:
        store = Vectors(root, Counting())
        assert store.held.matrix.shape == (0, Lexical.size)
        assert (store.held.rows(keys()) == -1).all() and len(store.held.rows([])) == 0
        held = store.add(TEXTS)
        assert is_whole(store) and (held.rows(keys()) == np.arange(len(TEXTS))).all()
        assert (store.held.rows(keys(["never said"])) == -1).all()

    def test_a_text_is_computed_once(self, root: str | None) -> None:
        embedder = Counting()
        store = Vectors(root, embedder)
        store.add(TEXTS[:30] + TEXTS[:3])
        store.add([*TEXTS[20:], "", ""])
        store.add(TEXTS)
        assert embedder.asked == [*TEXTS, ""]
        assert is_whole(store, [*TEXTS, ""])

    def test_what_is_held_does_not_change(self, root: str | None) -> None:
        store = Vectors(root, Counting())
        before = store.add(TEXTS[:10])
        was = before.matrix.copy()
        store.add(TEXTS[10:])
        assert np.array_equal(before.matrix, was) and (before.rows(keys()[10:]) == -1).all()

    def test_keys_may_come_as_an_array(self, root: str | None) -> None:
        store = Vectors(root, Counting())
        store.add(TEXTS)
        flat = np.frombuffer(b"".join(keys()), np.uint8).reshape(-1, 16)
        for array in (flat, flat.view("V16"), as_keys(keys())):
            assert (store.held.rows(array) == np.arange(len(TEXTS))).all()


def test_another_process_finds_them() -> None:
    Vectors(ROOT, Counting()).add(TEXTS)
    embedder = Counting()
    other = Vectors(ROOT, embedder)
    assert is_whole(other)
    other.add(TEXTS)
    assert embedder.asked == []


def test_two_that_stand_open_see_what_the_other_adds() -> None:
    one, other = Vectors(ROOT, Counting()), Vectors(ROOT, Counting())
    one.add(TEXTS[:20])
    other.add(TEXTS[10:40])
    assert is_whole(one, TEXTS[:40]) and is_whole(other, TEXTS[:40])
    assert len(one.held.matrix) == 40, "none twice"


def test_another_that_comes_first_is_not_repeated() -> None:
    class Slow(Counting):
        def embed(self, texts: Sequence[str]) -> Any:
            Vectors(ROOT, Counting()).add(texts[:30])
            return super().embed(texts)

    store = Vectors(ROOT, Slow())
    store.add(TEXTS)
    assert is_whole(store) and len(store.held.matrix) == len(TEXTS)


def test_each_embedder_and_each_library_has_its_own(own_cache: Path) -> None:
    stores = [Vectors(root, Counting(name)) for root in ("/a", "/b") for name in ("one", "two")]
    for number, store in enumerate(stores, 1):
        store.add(TEXTS[:number])
    assert [len(store.held.matrix) for store in stores] == [1, 2, 3, 4]
    assert len({folder_of(store) for store in stores}) == 4
    assert {path.stat().st_mode & 0o777 for path in own_cache.rglob("*") if path.is_file()} == {0o600}
    embedder = Counting()
    assert vectors_of("/a", embedder) is vectors_of("/a", Counting())
    assert vectors_of("/b", embedder) is not vectors_of("/a", embedder)
    assert vectors_of(None, embedder) is not vectors_of(None, embedder)


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


@pytest.mark.parametrize("harm", ["gone", "cut", "empty", "garbled"])
@pytest.mark.parametrize("part", ["manifest", "keys", "rows"])
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


@pytest.mark.parametrize(
    "said",
    [
        {"count": -1}, {"count": "many"}, {"count": 10**12}, {"size": 7}, {"keys": "../../x"}, {"keys": 3},
        {"checksums": []}, {"rows": None}, {"format": "vectors-0"}, {"embedder": "another"},
    ],
)  # fmt: skip
def test_a_manifest_that_says_what_cannot_be(said: dict[str, Any]) -> None:
    first = Vectors(ROOT, Counting())
    first.add(TEXTS)
    manifest = cache.read_manifest(folder_of(first), "vectors-1")
    assert manifest
    with cache.exclusive(folder_of(first), True) as writer:
        assert writer
        writer.commit(manifest | said, [manifest["keys"], manifest["rows"]])
    store = Vectors(ROOT, Counting())
    store.add(TEXTS)
    assert is_whole(store)


class Crash(BaseException):
    """The process died here."""


@pytest.mark.parametrize("after", [False, True])
def test_a_writer_that_dies_leaves_what_was_committed(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    Vectors(ROOT, Counting()).add(TEXTS[:20])
    replace = os.replace

    def die(*args: Any, **options: Any) -> None:
        if after:
            replace(*args, **options)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(Crash):
            Vectors(ROOT, Counting()).add(TEXTS)
    embedder = Counting()
    store = Vectors(ROOT, embedder)
    assert len(store.held.matrix) == (50 if after else 20)
    store.add(TEXTS)
    assert is_whole(store) and len(store.held.matrix) == len(TEXTS)
    assert embedder.asked == ([] if after else TEXTS[20:])


@pytest.mark.parametrize("part", ["keys", "rows"])
def test_rows_that_no_manifest_counts_are_written_over(part: str) -> None:
    first = Vectors(ROOT, Counting())
    first.add(TEXTS[:20])
    folder = folder_of(first)
    name = (cache.read_manifest(folder, "vectors-1") or {})[part]
    with (folder / name).open("ab") as file:
        file.write(b"\x7f" * 1001)
    store = Vectors(ROOT, Counting())
    assert is_whole(store, TEXTS[:20])
    store.add(TEXTS)
    assert is_whole(store) and is_whole(first) and is_whole(Vectors(ROOT, Counting()))


WRITER = """
import sys
from infinimem.embedders.lexical import Lexical
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


def test_a_killed_writer_hinders_nobody() -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, "0", "100000"])
    store = Vectors(ROOT, Lexical())
    while not len(store.held.matrix) and process.poll() is None:
        pass
    process.kill()
    process.wait()
    store.add(TEXTS)
    assert is_whole(store) and is_whole(Vectors(ROOT, Lexical()))


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


def test_a_long_wait_is_told_and_kept_in_portions(caplog: pytest.LogCaptureFixture) -> None:
    def sizes(count: int, speed: float) -> list[int]:
        """Of the portions of work of so many texts a second."""
        found: list[int] = []
        for portion in portions("model", count, lambda found=found: sum(found) / speed):
            found += [len(range(count)[portion])]
        return found

    assert sizes(200, 100) == [64, 64, 64, 8]
    assert caplog.text == ""
    assert sizes(20_000, 10_000)[:8] == [64, 128, 256, 512, 1024, 2048, 4096, 4096]
    assert caplog.text == "" and sum(sizes(20_000, 10_000)) == 20_000
    assert sizes(0, 1) == []
    assert len(sizes(2000, 100)) == 32 and caplog.text.count("model reads 2000 texts, once; about 20 s") == 1


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


def test_a_cache_that_is_deleted_just_after_it_was_written(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def then_gone(*given: Any, **named: Any) -> None:
        replace(*given, **named)
        gone(own_cache)
        monkeypatch.setattr(os, "replace", replace)

    monkeypatch.setattr(os, "replace", then_gone)
    held = Vectors(ROOT, Counting()).add(TEXTS)
    assert np.array_equal(held.matrix[held.rows(keys())], Lexical().embed(TEXTS))


def test_an_older_snapshot_brings_nothing_back(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "notes", model="offline", create=True)
    memory.observe([Turn(role="user", text="I moved to Lisbon.", time="2025-03-03", session="s1")])
    view = memory.view
    assert view.stored
    texts = ["I moved to Lisbon."]
    assert unchanged(view.stored, view.ids("all"))
    memory.forget(match="Lisbon")
    assert not unchanged(view.stored, view.ids("all"))
    store = Vectors(view.stored.root, Counting())
    held = store.add(texts, lambda: unchanged(view.stored, view.ids("all")) if view.stored else False)
    assert (held.rows(keys(texts)) == 0).all()
    assert len(store.held.matrix) == 0


# ── the nearest ─────────────────────────────────────────────────────────────────────────────────


def expected(matrix: Any, query: Any, k: int, among: Sequence[int]) -> list[int]:
    scores = {at: float(np.round(np.float32(matrix[at] @ query), 6)) for at in among}
    return sorted(among, key=lambda at: (-scores[at], at))[:k]


def test_the_nearest_are_exact_and_ties_go_by_position() -> None:
    rows = np.random.default_rng(3).integers(-2, 3, (400, 6)).astype(np.float32)  # many equal scores
    query = np.array([1, 2, 0, -1, 0, 1], np.float32)
    for k in (1, 7, 100, 400, 1000):
        for among in (None, np.arange(0, 400, 3), np.array([5, 9, 200]), np.array([], np.int64)):
            chosen = list(range(400)) if among is None else among.tolist()
            places, scores = top(rows, query, k, among)
            assert places.tolist() == expected(rows, query, k, chosen)
            assert np.array_equal(scores, np.round(rows[places] @ query, 6))


def test_nothing_is_near_to_nothing() -> None:
    rows = np.eye(3, dtype=np.float32)
    assert len(top(rows, np.zeros(3, np.float32), 5)[0]) == 0
    assert len(top(rows, rows[0], 0)[0]) == 0
    assert len(top(rows[:0], rows[0], 5)[0]) == 0


def test_heavy_packages_are_loaded_when_they_are_used() -> None:
    heavy = "{'tokenizers', 'safetensors', 'onnxruntime', 'openai', 'huggingface_hub'}"
    code = f"import sys, infinimem.memory; assert not {heavy} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
