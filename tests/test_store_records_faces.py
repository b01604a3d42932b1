"""Records where git commits them, watch tells of them, and two strategies keep one library."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest
from allmem_records import LISBON, NUTS, PORTO, applied, buffer, consolidated, doc, put, unit, written
from git_repository import Repository
from trusting import write_trusted

from infinimem.memory import Memory, open_memory
from infinimem.model import Move, NewEntry, Plan, Put, Turn
from infinimem.operations.doctor.examine import examine
from infinimem.store.create import init
from infinimem.store.outcome import Applied
from infinimem.strategies.records.record import record_id
from infinimem.watch import DocumentChange, watch


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return consolidated(tmp_path / "m")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_an_archiving_as_a_rename(tmp_path: Path) -> None:
    place = Repository.begun(tmp_path / "repo")
    place.memory.mkdir()
    write_trusted(place.memory, 'format = 1\ngit = true\nstrategy = "allmem"\n')
    init(place.memory)
    memory = consolidated(place.memory)
    assert "?? " not in place.git("status", "--porcelain", "--", "memory/allmem")
    assert place.subjects()[1:] == [
        "record: 4 turns",
        "write: 5 files",
        "consolidate: 5 files",
    ]
    told = place.git("show", "--format=", "--name-status", "-M50")
    assert f"\tmemory/{doc(LISBON)}.md\tmemory/{doc(LISBON, archived=True)}.md" in told
    memory.undo()
    memory.forget([NUTS])
    assert place.subjects()[4:] == ["undo: 5 files", "forget: 1 line"]
    assert place.git("status", "--porcelain", "--", *(f"memory/{one}" for one in ("allmem", "journal"))) == ""
    assert examine(memory.library) == []


def test_watch_tells_of_records(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    changes = watch(memory)
    applied(memory, Put(doc(LISBON), None), put(unit(LISBON, archived=True)), buffer())
    told = list(islice(changes, 4))
    changes.close()
    assert told == [
        DocumentChange("created", doc(LISBON, archived=True)),
        DocumentChange("saved", "allmem/buffer"),
        DocumentChange("created", "journal/0002-consolidate"),
        DocumentChange("deleted", doc(LISBON)),
    ]


def test_a_person_decides_over_lines_whoever_keeps_the_library(memory: Memory) -> None:
    other = open_memory(memory.library.root, model="offline", strategy="infini")
    other.library.apply(
        Plan(adds=(NewEntry("I live in Lisbon.", (LISBON,)), NewEntry("I live in Porto.", (PORTO,))))
    )
    old, new = (place.seq for place in other.view.buffer.entries)
    other.library.apply(Plan("consolidate", moves=(Move(old, "topics/home"), Move(new, "topics/home"))))
    path = memory.library.root / "topics/home.md"
    path.write_text(path.read_text().replace("source=user", "source=human"))
    outcome = other.library.apply(
        Plan("consolidate", moves=(Move(old, "topics/home", "", "superseded", new),))
    )
    assert isinstance(outcome, Applied)
    other.library.apply(Plan("consolidate", moves=(Move(new, "topics/flat"),)))
    (row,) = memory.review()
    assert (row.seq, row.void) == (old, "")
    memory.decide(approve=[row.item])
    place = other.view.entry(old)
    assert place
    assert place.doc_id == "archive/flat"


def test_a_strategy_s_own_work_is_taken_back_byte_for_byte(tmp_path: Path) -> None:
    """Whatever All-Mem writes by itself, with the offline model."""
    memory = open_memory(tmp_path / "m", model="offline", strategy="allmem", create=True)
    texts = ("I live in Lisbon.", "I moved to Porto.", "My dog is Rex.", "I live in Lisbon.")
    texts += ("I live in Porto now.", "Rex is three.", "My dog is called Rex.", "I like tea and I run.")
    talk = [
        Turn(text, speaker="Nora", session=f"s{number // 4}", time=f"2025-03-0{1 + number // 4}")
        for number, text in enumerate(texts)
    ]
    memory.library.record(talk)
    memory.observe([])
    memory.consolidate()
    root = memory.library.root / "allmem"

    def files() -> dict[str, bytes]:
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.md"))}

    last = files()
    count = len(memory.receipts())
    assert count
    for receipt in memory.receipts()[::-1]:
        memory.undo(receipt.id)
    assert files() == {}
    assert len(memory.view.uncited()) == len(talk)
    for receipt in memory.receipts()[count:][::-1]:
        memory.undo(receipt.id)
    assert files() == last
    assert memory.doctor() == []
    for seq in (1, 3):
        memory.forget([seq])
    assert record_id("u", 1) not in str(memory.view.ids("all"))
    memory.observe([])
    assert [item for item in memory.doctor() if item.level == "error"] == []
    assert memory.view.uncited() == ()
