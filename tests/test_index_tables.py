"""The index finds what one built in memory finds, whatever changed or befell it."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from infinimem.index import tables, words
from infinimem.index.search import searcher
from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.store.view import Scope, View
from infinimem.user_folders import cache_folder

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
    folder = cache_folder(str(memory.library.files.root), "index-infini")
    assert folder
    return folder


def answers(view: View, limit: int = 50) -> list[list[tuple[object, ...]]]:
    """What is found for some questions, with scores."""
    search = searcher(view)
    found = []
    for scope in get_args(Scope):
        for question in QUESTIONS if scope == "default" else QUESTIONS[::3]:
            entries = search.entries(question, limit, scope)
            found.append([(item.doc_id, item.start_line, item.text, item.score) for item in entries])
            blocks = search.blocks(question, 10, scope)
            found.append([(item.doc_id, item.start_line, item.end_line, item.score) for item in blocks])
    return found


def in_memory(view: View) -> View:
    """The same snapshot, of no files."""
    documents = {doc_id: view.document(doc_id) for doc_id in view.ids("all")}
    return View(
        tuple(sorted(documents)),
        documents.__getitem__,
        view.settings,
        drawn=view.drawn,
        refused=view.refused,
        unanswered=view.tried,
        spec=view.spec,
    )


def assert_same(view: View) -> None:
    """What is on disk, with what is beside it, finds what an index built anew finds.

    Deleted rows count in how rare a term is until tantivy merges them away, so scores may differ, and with
    them the last of many.
    """
    found, wanted = answers(view, 500), answers(in_memory(view), 500)
    for mine, theirs in zip(found[::2], wanted[::2], strict=True):
        assert sorted(row[:3] for row in mine) == sorted(row[:3] for row in theirs)
        assert all(row[-1] > 0 for row in mine)


# ── the same answers ─────────────────────────────────────────────────────────────────────────────────


def test_an_index_on_disk_ranks_as_one_in_memory(memory: Memory) -> None:
    found = answers(memory.view)
    assert found == answers(in_memory(memory.view))
    assert sum(map(bool, found)) > len(found) / 3


def test_the_tail_scores_as_tantivy_does(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    found = answers(in_memory(memory.view))
    monkeypatch.setattr(tables, "TAIL", 1_000_000)
    for mine, theirs in zip(answers(in_memory(memory.view)), found, strict=True):
        assert [row[:-1] for row in mine] == [row[:-1] for row in theirs]
        assert [row[-1] for row in mine] == pytest.approx([row[-1] for row in theirs], abs=0.001)


def again(memory: Memory) -> Memory:
    """The library as another process opens it."""
    return open_memory(memory.library.root, model="offline")


def words_folder(memory: Memory) -> Path:
    (found,) = index_folder(memory).glob("words-*")
    return found


def test_another_process_finds_the_same_and_builds_nothing(memory: Memory) -> None:
    found = answers(memory.view)
    files = {path: path.stat().st_mtime_ns for path in words_folder(memory).rglob("*")}
    assert answers(again(memory).view) == found
    assert files == {path: path.stat().st_mtime_ns for path in words_folder(memory).rglob("*")}


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2))
def test_random_changes(memory: Memory, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(tables, "TAIL", 12)
    chance = random.Random(seed)
    some = "tea violin lake pottery adoption family zither replication lag Caroline Melanie".split()
    for _ in range(10):
        text = " ".join(chance.choices(some, k=8))
        kind = chance.choice(("note", "note", "gone", "said", "said", "consolidate", "typed", "edited"))
        if kind == "note":
            write_note(memory.library.root, chance.randrange(14), f"# {text}\n\n{text}\n")
        elif kind == "gone":
            (memory.library.root / "notes" / f"n{chance.randrange(14)}.md").unlink(missing_ok=True)
        elif kind == "said":
            session = f"s{chance.randrange(3)}"
            memory.observe([Turn(role="user", text=f"I like {text}.", time="2024-01-02", session=session)])
        elif kind == "consolidate":
            memory.consolidate()
        elif kind == "edited":
            path = chance.choice(sorted((memory.library.root / "evidence").rglob("*.md")))
            path.write_text(path.read_text().replace(" I ", f" I {text} ", 1))
        else:
            with (memory.library.root / "CURRENT.md").open("a") as file:
                file.write(f"- {text}\n")
        assert_same(memory.view)


def test_a_turn_that_comes_is_said_around_the_one_before_it(memory: Memory) -> None:
    """Neighbours are mended: what is said next finds the turn, and the entry that was drawn from it."""
    memory.observe([Turn(role="user", text="I keep a xylograph in the attic.", session="new")])
    searcher(memory.view).entries("xylograph")
    memory.observe([Turn(role="user", text="It needs varnish before Easter.", session="new")])
    found = searcher(memory.view).entries("varnish before Easter", 50, "all")
    assert any("xylograph" in item.text for item in found)
    assert_same(memory.view)


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
    found = {item.doc_id for item in searcher(memory.view).entries("zither")}
    assert found >= {"topics/late", "topics/later"}
    (root / "evidence" / "late.md").write_text(
        "---\nkind: evidence\n---\n- <seq=9000,source=user> plays it daily\n"
    )
    assert not searcher(memory.view).entries("zither"), "what was cut out is said around nothing"


def test_a_note_that_could_not_be_read_is_found_once_it_can(memory: Memory) -> None:
    write_note(memory.library.root, 3, "a zither\n")
    path = memory.library.root / "notes" / "n3.md"
    view = memory.view
    path.rename(path.with_suffix(".away"))
    assert searcher(view).scores("zither") == []
    path.with_suffix(".away").rename(path)
    assert [item.doc_id for item in searcher(again(memory).view).blocks("zither")] == ["notes/n3"]


def test_a_line_that_moved_since_is_shown_where_an_older_view_has_it(memory: Memory) -> None:
    current, topic = memory.library.root / "CURRENT.md", memory.library.root / "topics" / "late.md"
    before, line = current.read_text(), "- <seq=9001,source=user> keeps a zither\n"
    current.write_text(before + line)
    topic.write_text("# Late\n")
    view = memory.view
    assert view.document("topics/late") and searcher(view).scores("zither", 9, "kept")
    current.write_text(before)
    topic.write_text(f"# Late\n{line}")
    for one, name in ((again(memory).view, "topics/late"), (view, "CURRENT")):
        assert [hit[:2] for hit in searcher(one).scores("zither", 9, "kept")] == [(name, 9001)]


# ── what befalls it ──────────────────────────────────────────────────────────────────────────────────


def no_database(folder: Path) -> None:
    for path in folder.glob("index.db*"):
        path.unlink()


def garbled_database(folder: Path) -> None:
    path = folder / "index.db"
    for wal in folder.glob("index.db-*"):
        wal.unlink()
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"x" * (len(data) - 100))


def no_words(folder: Path) -> None:
    for path in folder.glob("words-*"):
        shutil.rmtree(path)


def no_files_of_words(folder: Path) -> None:
    for path in folder.glob("words-*/*/*"):
        path.unlink()


def other_version(folder: Path) -> None:
    with sqlite3.connect(folder / "index.db") as db:
        db.execute("update ranking set made_for = 'another version'")


HARMS = [no_database, garbled_database, no_words, no_files_of_words, other_version, shutil.rmtree]


@pytest.mark.sample(4)
@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_index_is_made_anew(memory: Memory, harm: Callable[[Path], None]) -> None:
    found = answers(memory.view)
    harm(index_folder(memory))
    assert answers(again(memory).view) == found


@pytest.mark.sample(3)
@pytest.mark.parametrize("harm", [no_database, no_words, no_files_of_words, other_version, shutil.rmtree])
def test_what_is_deleted_under_a_running_process_is_made_anew(
    memory: Memory, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TAIL", 4)
    found = answers(memory.view)
    harm(index_folder(memory))
    assert answers(memory.view) == found
    for number in range(9):
        write_note(memory.library.root, number, f"the zither {number}\n\n# Tea\n\nviolin and tea\n")
    assert len(searcher(memory.view).blocks("zither", 20)) == 9
    assert_same(memory.view)


@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("cut", [False, True])
def test_a_byte_of_any_file_that_was_harmed_changes_no_answer(memory: Memory, cut: bool, step: int) -> None:
    """The largest file of each kind of tantivy's in turn: a bit of one byte, or the last bytes lost."""
    found, chance = answers(memory.view), random.Random(7)
    kinds = {path.suffix for path in words_folder(memory).rglob("*") if path.is_file()} - {"", ".lock"}
    assert kinds >= {".json", ".term", ".idx", ".fast", ".fieldnorm", ".store"}
    for kind in sorted(kinds)[cut % step :: step]:
        there = [path for path in words_folder(memory).rglob(f"*{kind}") if path.stat().st_size]
        path = max(there, key=lambda path: path.stat().st_size)
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.unlink()
        path.write_bytes(data[: len(data) * 3 // 4] if cut else data)
        assert answers(again(memory).view) == found, path


def test_where_nothing_can_be_written_a_temporary_folder_serves(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert answers(again(memory).view) == answers(in_memory(memory.view))


def test_words_that_cannot_be_written_are_kept_beside(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise ValueError("another process writes")

    found = answers(in_memory(memory.view))
    monkeypatch.setattr(words.Words, "change", refused)
    assert [row[:-1] for rows in answers(again(memory).view) for row in rows] == [
        row[:-1] for rows in found for row in rows
    ]
    assert "cannot be written" in caplog.text


def test_an_index_that_another_process_builds_is_waited_for_and_shared(memory: Memory) -> None:
    code = (
        "import sys\nfrom infinimem.memory import open_memory\n"
        "found = open_memory(sys.argv[1], model='offline').tools.search(query='violin')\n"
        "print(found['hits'][0]['doc_id'])"
    )
    command = [sys.executable, "-c", code, str(memory.library.root)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {process.communicate()[0] for process in running} == {"notes/n0\n"}
    before = words_folder(memory)
    assert_same(memory.view)
    assert before == words_folder(memory)


def test_what_a_snapshot_holds_does_not_come_back_into_the_cache(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TAIL", 1_000_000)  # the terms of all rows stay in the database
    write_note(memory.library.root, 3, "xyzzy is a secret\n")
    view = memory.view
    assert "xyzzy" in view.document("notes/n3").text(1, 1)
    write_note(memory.library.root, 3, "nothing here\n")  # another process may not know of it yet
    assert searcher(view).blocks("xyzzy") == []
    with sqlite3.connect(index_folder(memory) / "index.db") as db:
        assert db.execute("select count(*) from row where own like '%xyzz%'").fetchone() == (0,)
    assert_same(again(memory).view)


WRITER = """
import itertools, sys
from pathlib import Path
from infinimem.memory import open_memory
from infinimem.index import tables, words
from infinimem.index.search import searcher

tables.TAIL = 0
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
    killed(memory, 2)


@pytest.mark.soak
def test_many_writers_that_are_killed(memory: Memory) -> None:
    killed(memory, 200)
