"""The index in the cache directory finds what one built in memory finds, whatever changed or befell it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
from fault_strace import traceable as traceable

from infinimem.errors import LibraryError
from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.retrieval import cache, disk
from infinimem.retrieval.disk import in_memory
from infinimem.retrieval.rows import KINDS
from infinimem.retrieval.scoring import Ranking
from infinimem.index.search import ranking, searcher
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


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """The sample library with some notes; in a cache of its own."""
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


# ── the same answers ─────────────────────────────────────────────────────────────────────────────────


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


# ── what befalls it ──────────────────────────────────────────────────────────────────────────────────


def found(memory: Memory, word: str) -> list[str]:
    return [item.doc_id for item in searcher(memory.view).blocks(word, limit=50)]


def test_what_a_snapshot_holds_does_not_come_back_into_the_cache(memory: Memory) -> None:
    write_note(memory.library.root, 3, "xyzzy is a secret\n")
    view = memory.view
    assert "xyzzy" in view.document("notes/n3").text(1, 1)
    write_note(memory.library.root, 3, "nothing here\n")  # another process may not know of it yet
    tables = ranking(view).tables
    assert all(tables.table(kind).frequency("own", "xyzzi") == 0 for kind in KINDS)
    assert "notes/n3" not in tables.uids
    assert_same(memory.view)


def test_a_note_that_could_not_be_read_is_found_once_it_can(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_note(memory.library.root, 3, "a zither\n")
    read = disk.Files.read_stamped

    def refused(self: disk.Files, path: str, *bounds: int) -> tuple[bytes, object]:
        if path == "notes/n3.md":
            raise LibraryError("too many open files")
        return read(self, path, *bounds)

    with monkeypatch.context() as patch:
        patch.setattr(disk.Files, "read_stamped", refused)
        assert found(memory, "zither") == []
    assert found(open_memory(memory.library.root, model="offline"), "zither") == ["notes/n3"]


def test_evidence_that_comes_after_its_entries_is_taken_in(memory: Memory) -> None:
    root = memory.library.root
    (root / "topics" / "late.md").write_text("# Late\n- <seq=9001,source=user,origin=9000> plays it daily\n")
    (root / "topics" / "later.md").write_text("# Later\n- <seq=9002,source=user,origin=9001> plays it well\n")
    assert_same(memory.view)
    (root / "evidence" / "late.md").write_text(
        "---\nkind: evidence\n---\n- <seq=8999,source=user> the zither\n"
        "- <seq=9000,source=user> plays it daily\n"
    )
    assert_same(memory.view)
    assert {item.doc_id for item in searcher(memory.view).entries("zither")} >= {
        "topics/late",
        "topics/later",
    }


WRITER = """
import itertools, sys
from pathlib import Path
from infinimem.memory import open_memory
from infinimem.retrieval import disk
from infinimem.index.search import searcher

disk.BESIDE_DOCUMENTS = 0
memory = open_memory(sys.argv[1], model="offline")
for number in itertools.count():
    note = Path(sys.argv[1], "notes", f"n{number % 9}.md")
    note.with_suffix(".new").write_text(f"# Tea\\n\\nviolin {number}\\n")
    note.with_suffix(".new").replace(note)
    assert searcher(memory.view).blocks("violin")
    print(number, flush=True)
"""


def killed(memory: Memory, times: int) -> None:
    """Kill a process that commits all the time, somewhere in a commit, and look at what it left."""
    chance = random.Random(times)
    for _ in range(times):
        command = [sys.executable, "-c", WRITER, str(memory.library.root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            for _ in range(chance.randint(1, 3)):
                writer.stdout.readline()
            time.sleep(chance.uniform(0, 0.3))
            writer.kill()
        assert_same(open_memory(memory.library.root, model="offline").view)
        assert_same(memory.view)


def test_a_writer_that_is_killed_leaves_what_can_be_read_or_is_built_anew(memory: Memory) -> None:
    killed(memory, 3)


@pytest.mark.soak
def test_many_writers_that_are_killed(memory: Memory) -> None:
    killed(memory, 200)
