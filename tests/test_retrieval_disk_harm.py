"""What befalls an index on disk: old snapshots, other writers, dead rows, harmed files, lines that went."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest
from disk_library import assert_same, large_library, write_note
from fault_strace import traceable as traceable

from infinimem.errors import LibraryError
from infinimem.memory import Memory, open_memory
from infinimem.retrieval import disk
from infinimem.retrieval.rows import KINDS
from infinimem.retrieval.searcher import ranking, searcher

memory = pytest.fixture(large_library, name="memory")


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
from infinimem.retrieval.searcher import searcher

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
