"""The index in the cache directory finds what one built in memory finds, whatever changed in between."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from disk_library import answers, assert_same, index_folder, large_library, write_note

from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.retrieval import cache, disk
from infinimem.retrieval.disk import DiskIndex, in_memory
from infinimem.retrieval.scoring import Ranking
from infinimem.retrieval.searcher import ranking

memory = pytest.fixture(large_library, name="memory")


def test_an_index_on_disk_ranks_as_one_in_memory(memory: Memory) -> None:
    found = answers(ranking(memory.view))
    assert found == answers(in_memory(memory.view))
    assert sum(map(bool, found)) > len(found) / 3


def again(memory: Memory) -> Memory:
    """The library as another process opens it."""
    return open_memory(memory.library.root, model="offline")


def test_another_process_finds_the_same(memory: Memory) -> None:
    found = answers(ranking(memory.view))
    manifest = (index_folder(memory) / cache.MANIFEST).read_bytes()
    assert answers(ranking(again(memory).view)) == found
    assert manifest == (index_folder(memory) / cache.MANIFEST).read_bytes()


@pytest.mark.parametrize("seed", range(2))
def test_random_changes(memory: Memory, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(disk, "BESIDE_DOCUMENTS", 4)
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


def lose_documents(folder: Path) -> None:
    for path in folder.glob("documents.*"):
        path.unlink()


def empty_manifest(folder: Path) -> None:
    (folder / cache.MANIFEST).write_text("{")


def lose_tables(folder: Path) -> None:
    for path in folder.glob("index.*"):
        shutil.rmtree(path)


def lose_files(folder: Path) -> None:
    for path in folder.glob("index.*/*/*"):
        path.unlink()


@pytest.mark.sample(2)
@pytest.mark.parametrize("harm", [lose_documents, empty_manifest, lose_tables, lose_files, shutil.rmtree])
def test_a_harmed_index_is_built_anew(memory: Memory, harm: Callable[[Path], None]) -> None:
    found = answers(ranking(memory.view))
    harm(index_folder(memory))
    assert answers(ranking(again(memory).view)) == found


def kind_of(path: Path) -> str:
    return path.suffix if path.parent.parent.name.startswith("index.") else path.name.partition(".")[0]


@pytest.mark.parametrize("cut", [False, True])
def test_a_byte_of_any_file_that_was_harmed_changes_no_answer(memory: Memory, cut: bool) -> None:
    """The largest file of each kind in turn: a bit of one byte, or the last bytes lost."""
    found, folder, chance = answers(ranking(memory.view)), index_folder(memory), random.Random(7)
    kinds = {kind_of(path) for path in folder.rglob("*") if path.is_file() and path.stat().st_size}
    assert kinds >= {"manifest", "documents", ".json", ".term", ".idx", ".fast", ".fieldnorm", ".store"}
    for kind in sorted(kinds):
        there = [path for path in folder.rglob("*") if path.is_file() and kind_of(path) == kind]
        path = max(there, key=lambda path: path.stat().st_size)
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.unlink()
        path.write_bytes(data[: len(data) * 3 // 4] if cut else data)
        assert answers(ranking(again(memory).view)) == found, path


def test_where_nothing_can_be_written_memory_serves(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert answers(ranking(memory.view)) == answers(in_memory(memory.view))


def test_an_index_that_another_process_builds_is_waited_for_and_shared(memory: Memory) -> None:
    code = (
        "import sys\nfrom infinimem.memory import open_memory\n"
        "found = open_memory(sys.argv[1], model='offline').tools.search(query='violin')\n"
        "print(found['hits'][0]['doc_id'])"
    )
    command = [sys.executable, "-c", code, str(memory.library.root)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {process.communicate()[0] for process in running} == {"notes/n0\n"}
    assert len(list(index_folder(memory).glob("index.*"))) == 1
    before = (index_folder(memory) / cache.MANIFEST).read_bytes()
    assert_same(memory.view)
    assert before == (index_folder(memory) / cache.MANIFEST).read_bytes()


def test_threads_take_turns_at_one_index(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    index, view, start = DiskIndex(index_folder(memory)), memory.view, threading.Barrier(3)
    commit = cache.Writer.commit
    written: list[object] = []

    def ask(_: int) -> Ranking:
        start.wait(timeout=60)
        return index.of(view)

    def counted(*commit_of: Any) -> None:
        written.append(1)
        commit(*commit_of)

    monkeypatch.setattr(cache.Writer, "commit", counted)
    with ThreadPoolExecutor(3) as threads:
        found = [answers(one) for one in threads.map(ask, range(3))]
    assert found == [answers(in_memory(view))] * 3
    assert len(written) == 1
