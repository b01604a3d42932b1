"""The index in the cache directory finds what one built in memory finds, whatever changed in between."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from disk_library import QUESTIONS, answers, assert_same, index_folder, large_library, write_note

from infinimem.memory import Memory
from infinimem.model import Turn
from infinimem.retrieval import cache, committed, disk
from infinimem.retrieval.disk import DiskIndex, disk_index
from infinimem.retrieval.index import Indexed, in_memory
from infinimem.retrieval.searcher import indexed, searcher
from infinimem.store.view import View

memory = pytest.fixture(large_library, name="memory")


def test_both_engines_rank_alike(memory: Memory) -> None:
    assert_same(memory.view)
    found = answers(indexed(memory.view))
    assert sum(map(bool, found)) > len(found) / 3  # type: ignore[arg-type]


def test_pieces_read_the_same_from_disk(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    view = memory.view
    found = {question: searcher(view).entries(question) for question in QUESTIONS}
    blocks = {question: searcher(view).blocks(question, scope="all") for question in QUESTIONS}
    near = searcher(view).documents("pottery and paint")
    searcher.cache_clear()
    monkeypatch.setattr(cache, "SMALL_DOCUMENTS", 10_000)
    assert found == {question: searcher(view).entries(question) for question in QUESTIONS}
    assert blocks == {question: searcher(view).blocks(question, scope="all") for question in QUESTIONS}
    assert near == searcher(view).documents("pottery and paint")


def test_a_changed_note_is_laid_over_and_nothing_is_written(memory: Memory) -> None:
    indexed(memory.view)
    before = sorted(path.name for path in index_folder(memory).iterdir())
    write_note(memory.library.root, 3, "a zither instead\n")
    write_note(memory.library.root, 40, "a second zither\n")
    (memory.library.root / "notes" / "n4.md").unlink()
    assert_same(memory.view)
    places = [
        place.doc_id
        for place, _ in indexed(memory.view).best("blocks", "zither", ["zither"], "default", 9, 9)
    ]
    assert sorted(places) == ["notes/n3", "notes/n40"]
    assert before == sorted(path.name for path in index_folder(memory).iterdir())


def test_much_that_changed_is_committed_and_nothing_dead_is_found(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "OVERLAY_DOCUMENTS", 2)
    indexed(memory.view)
    for turn in range(4):
        for number in range(3):
            write_note(memory.library.root, number, f"zither {turn}\n")
        (memory.library.root / "notes" / f"n{11 - turn}.md").unlink()
        manifest = (index_folder(memory) / cache.MANIFEST).read_bytes()
        assert_same(memory.view)
        assert manifest != (index_folder(memory) / cache.MANIFEST).read_bytes()
    assert not indexed(memory.view).rows.overlaid


@pytest.mark.parametrize("seed", range(2))
def test_random_changes(memory: Memory, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(committed, "OVERLAY_DOCUMENTS", 4)
    monkeypatch.setattr(committed, "MANY", 3)
    chance = random.Random(seed)
    words = "tea violin lake pottery adoption family zither replication lag Caroline Melanie".split()
    for _ in range(8):
        text = " ".join(chance.choices(words, k=8))
        kind = chance.choice(("note", "note", "gone", "said", "consolidate", "typed"))
        if kind == "note":
            write_note(memory.library.root, chance.randrange(14), f"# {text}\n\n{text}\n")
        elif kind == "gone":
            (memory.library.root / "notes" / f"n{chance.randrange(14)}.md").unlink(missing_ok=True)
        elif kind == "said":
            session = f"s{chance.randrange(3)}"
            memory.observe([Turn(role="user", text=f"I like {text}.", time="2024-01-02", session=session)])
        elif kind == "consolidate":
            memory.consolidate()
        else:
            with (memory.library.root / "CURRENT.md").open("a") as file:
                file.write(f"- {text}\n")
        assert_same(memory.view)


def test_an_index_of_another_layout_is_built_anew(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed(memory.view)
    old = {path.name for path in index_folder(memory).glob("segment.*")}
    monkeypatch.setattr(disk, "LAYOUT", disk.LAYOUT + 1)
    assert_same(memory.view)
    assert not old & {path.name for path in index_folder(memory).glob("segment.*")}
    assert len(list(index_folder(memory).glob("lexical.*"))) == 1


def shorten(folder: Path) -> None:
    for path in folder.glob("segment.*"):
        path.write_bytes(path.read_bytes()[:100])


def lose_segments(folder: Path) -> None:
    for path in folder.glob("segment.*"):
        path.unlink()


def garble_manifest(folder: Path) -> None:
    (folder / cache.MANIFEST).write_text("{")


def lose_engine(folder: Path) -> None:
    for path in folder.glob("lexical.*"):
        shutil.rmtree(path)


@pytest.mark.parametrize("harm", [shorten, lose_segments, garble_manifest, lose_engine, shutil.rmtree])
def test_a_harmed_index_is_built_anew(memory: Memory, harm: Callable[[Path], None]) -> None:
    indexed(memory.view)
    disk_index.cache_clear()
    harm(index_folder(memory))
    assert_same(memory.view)


def test_a_commit_that_was_cut_off_does_no_harm(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "OVERLAY_DOCUMENTS", 0)
    indexed(memory.view)
    write_note(memory.library.root, 3, "a zither instead\n")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "write_manifest", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        assert_same(memory.view)
    disk_index.cache_clear()
    assert_same(memory.view)
    write_note(memory.library.root, 5, "one more zither\n")
    assert_same(memory.view)


def test_where_nothing_can_be_written_memory_serves(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert answers(indexed(memory.view)) == answers(in_memory(memory.view))


def test_an_index_that_another_process_builds_is_waited_for_and_shared(memory: Memory) -> None:
    code = (
        "import sys\nfrom infinimem.retrieval import cache\ncache.SMALL_DOCUMENTS = 0\n"
        "from infinimem.memory import open_memory\n"
        "found = open_memory(sys.argv[1], model='offline').tools.search(query='violin')\n"
        "print(found['hits'][0]['doc_id'])"
    )
    command = [sys.executable, "-c", code, str(memory.library.root)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {process.communicate()[0] for process in running} == {"notes/n0\n"}
    assert len(list(index_folder(memory).glob("lexical.*"))) == 1
    before = (index_folder(memory) / cache.MANIFEST).read_bytes()
    assert_same(memory.view)
    assert before == (index_folder(memory) / cache.MANIFEST).read_bytes()


def test_threads_take_turns_at_one_index(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    index, view, start = DiskIndex(index_folder(memory)), memory.view, threading.Barrier(3)
    inside: list[int] = []
    most: list[int] = []
    changes, write = committed.Comparison.changes, cache.write_manifest
    written: list[object] = []

    def slow(self: committed.Comparison, view: View) -> committed.Changes:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)  # long enough for the others to come in, were they let
        inside.pop()
        return changes(self, view)

    def ask(_: int) -> Indexed:
        start.wait(timeout=60)
        return index.of(view)

    monkeypatch.setattr(committed.Comparison, "changes", slow)
    monkeypatch.setattr(cache, "write_manifest", lambda *given: (written.append(1), write(*given)))
    with ThreadPoolExecutor(3) as threads:
        found = [answers(one) for one in threads.map(ask, range(3))]
    assert found == [answers(in_memory(view))] * 3
    assert max(most) == 1
    assert len(written) == 1
