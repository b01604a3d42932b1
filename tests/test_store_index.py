"""The derived index: it may be deleted, garbled, of another version or in use, and answers stay right."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from infinimem import Memory, Turn, open_memory
from infinimem.errors import LibraryError
from infinimem.index.search import searcher
from infinimem.store.library import Library
from infinimem.store.lines import ID, SPEAKER, held_by

TURNS = [Turn(f"Nora keeps lamp {n} on shelf {n}.", session="s1", turn=str(n)) for n in range(8)]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = open_memory(tmp_path / "m", create=True, model="offline")
    memory.observe(TURNS[:4])
    return memory


def index_of(memory: Memory) -> Path:
    assert memory.library.view().lines
    return next(Path(os.environ["XDG_CACHE_HOME"]).glob("infinimem/*/index-infini/index.db"))


def told(root: Path) -> tuple[object, ...]:
    """What a new process answers."""
    view = Library(root).view()
    places = {place.seq: place.text for place in view.entries()}
    assert all((found := view.entry(seq)) and found.text == text for seq, text in places.items())
    return view.max_seq, sorted(view.cited), [place.seq for place in view.uncited()], places


def copied(path: Path) -> Path:
    """All that stands in an index, as one file beside it."""
    copy = path.with_name("copy")
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    return copy


def garble(path: Path) -> None:
    path.write_bytes(b"no database at all" * 500)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_newer(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("pragma user_version = 999")
    db.close()


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [garble, halve, make_newer, empty, Path.unlink])
def test_an_index_that_cannot_be_used_is_made_anew(memory: Memory, harm: Callable[[Path], None]) -> None:
    path, before = index_of(memory), told(memory.library.root)
    kept = copied(path)
    for left in path.parent.glob("index.db*"):
        left.unlink()
    kept.rename(path)
    harm(path)
    assert told(memory.library.root) == before


def test_answers_do_not_hang_on_the_index(memory: Memory) -> None:
    before = told(memory.library.root)
    shutil.rmtree(index_of(memory).parent.parent)
    assert told(memory.library.root) == before


def test_an_index_that_is_deleted_under_a_running_process(memory: Memory) -> None:
    view = memory.library.view()
    seqs = [place.seq for place in view.entries("evidence")]
    shutil.rmtree(index_of(memory).parent.parent)
    memory.observe(TURNS[4:6])
    now = memory.library.view()
    assert all(now.entry(seq) for seq in seqs)
    assert now.max_seq > view.max_seq
    assert told(memory.library.root)[0] == now.max_seq


def test_a_view_says_the_same_while_others_write(memory: Memory) -> None:
    view = memory.library.view()
    highest, cited = view.max_seq, sorted(view.cited)
    open_memory(memory.library.root, model="offline").observe(TURNS[4:])
    assert (view.max_seq, sorted(view.cited)) == (highest, cited)
    assert memory.library.view().max_seq > highest


def test_a_cache_that_cannot_be_written(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    before = told(memory.library.root)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert told(memory.library.root) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_opens_its_own(memory: Memory) -> None:
    before, (read, write) = memory.library.view().max_seq, os.pipe()
    child = os.fork()
    if child == 0:
        memory.observe(TURNS[4:5])
        os.write(write, str(memory.library.view().max_seq).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 20)) > before
    assert memory.library.view().max_seq == told(memory.library.root)[0]


def test_a_turn_waits_until_something_says_it(memory: Memory) -> None:
    memory.record(TURNS[6:7])
    assert [place.text for place in memory.library.view().uncited()] == [TURNS[6].text]
    memory.draw()
    assert not memory.library.view().uncited()


@pytest.mark.parametrize("strategy", ["gam", "recmem", "xmemory"])
def test_what_is_open_and_who_spoke_follow_the_files(tmp_path: Path, strategy: str) -> None:
    memory = open_memory(tmp_path / "m", create=True, model="offline", strategy=strategy)
    for day in range(1, 7):
        said = [f"Our dog Rolf ate shoe {n} in the garden." for n in range(4)]
        turns = [
            Turn(text, session=f"s{day}", speaker=("Nora", f"Tomas {day}")[at % 2])
            for at, text in enumerate(said)
        ]
        memory.observe(turns)
    memory.consolidate()
    records = memory.view.below(memory.view.spec.writes[0])
    assert len(records) > 1
    for doc_id in (*records[: len(records) // 2], memory.view.ids("evidence")[1]):
        (tmp_path / "m" / f"{doc_id}.md").unlink()
    view = Library(tmp_path / "m").view()
    held = {doc_id: {*held_by(view.document(doc_id))} for doc_id in view.below(view.spec.writes[0])}
    turns = [*view.entries("evidence")]
    expected = [
        (turn.doc_id, turn.seq) for turn in turns if not any(turn.seq in seqs for seqs in held.values())
    ]
    assert expected and view.lines.open() == expected and memory.view.lines.open() == expected
    assert view.lines.uncited() == sorted(seq for _, seq in expected)
    for doc_id in view.ids("evidence"):
        assert view.lines.open(doc_id) == [one for one in expected if one[0] == doc_id]
    assert {*view.lines.names(SPEAKER)} == {turn.entry.fields["speaker"] for turn in turns}


def test_an_older_view_does_not_take_the_index_back(memory: Memory) -> None:
    root = memory.library.root
    older = memory.library.view()
    assert searcher(older).blocks("lamp 0")
    memory.observe(TURNS[4:6])
    newer = memory.library.view()
    assert searcher(newer).blocks("lamp 4")
    with (root / "CURRENT.md").open("a") as file:  # a state that no view has seen
        file.write("- typed by hand\n")
    del older.__dict__["lines"]
    assert older.entry(newer.max_seq) is None
    assert searcher(newer).blocks("lamp 4")
    assert searcher(older).blocks("lamp 0")
    assert searcher(memory.library.view()).blocks("typed")


def test_an_older_copy_in_place_of_the_library_while_the_disk_fails(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index of what the folder does not have refuses plans, and looks for documents that are gone."""
    root, before = memory.library.root, told(memory.library.root)
    shutil.copytree(root, root.with_name("older"))
    memory.observe([Turn("Nora moved to Lisbon.", session="s2")])
    assert told(root) != before
    shutil.rmtree(root)
    root.with_name("older").rename(root)

    def fail(*_: object) -> None:
        raise LibraryError("cannot read it: Input/output error")

    monkeypatch.setattr("infinimem.store.index.state_of", fail)
    assert told(root) == before


def test_what_came_and_went_between_two_looks_leaves_the_index(memory: Memory) -> None:
    root = memory.library.root
    path = root / "topics" / "short.md"
    assert memory.library.view().lines.highest()
    (root / "one.md").write_text("one\n")
    older = memory.library.view()
    path.write_text("said for a moment\n")
    assert Library(root).view().lines.named(ID, "topics/short")  # another process takes it in
    assert older.lines.highest()
    path.unlink()
    (root / "two.md").write_text("two\n")
    assert memory.library.view().lines.named(ID, "topics/short") == ()


def test_what_a_forget_deleted_is_not_held_open(memory: Memory) -> None:
    """Open files stay on the disk, with what was forgotten in them, and are as many as a process may have."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux tells a process what it has open")

    own = hashlib.sha256(str(memory.library.root).encode()).hexdigest()[:16]

    def held(end: str) -> set[str]:
        links = {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}
        return {path for path in links if own in path and "index.db" in path and path.endswith(end)}

    for turn in TURNS[4:]:
        view = memory.library.view()
        assert view.lines.highest() and memory.tools.search("lamp")["hits"]
        memory.forget([place.seq for place in view.entries("evidence")][-1:])
        memory.observe([turn])
        assert memory.tools.search("lamp")["hits"] and view.lines.highest()
        del view
        assert held("index.db") and not held("(deleted)")
