"""What lies in a library now: seen at the next call where infinimem wrote it, soon where anybody else did."""

from __future__ import annotations

import errno
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from fault_disk import Crash, die, fail, hooked, nothing
from fault_work import copy, work
from fault_work import prepared as prepared
from freshness_library import Reader, rest, stamps

from infinimem.errors import LibraryError
from infinimem.model import Turn
from infinimem.store.freshness import BOUND
from infinimem.store.listing import listed


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copy(prepared, tmp_path / "m")


@pytest.fixture
def reader(root: Path) -> Reader:
    """A reader that has seen everything; its folders have been at rest for some time."""
    rest(root)
    reader = Reader(root)
    assert (reader.looks, reader.lists) == (1, 0)
    return reader


def test_what_the_process_itself_writes_is_seen_by_the_next_call(root: Path, reader: Reader) -> None:
    library = reader.library
    library.record([Turn("My bike is red.", session="new", time="2025-03-02")])
    assert reader.wrong() == set()
    assert reader.looks == 1
    (root / "CURRENT.md").write_text("- typed\n")
    assert library.adopt_edits() is not None  # which looks at all that people did
    assert reader.wrong() == set()


def test_writers_in_threads_lose_nothing(root: Path) -> None:
    """Each is a library of its own that takes itself for large; they see each other's receipts and seqs."""
    readers = [Reader(root) for _ in range(3)]

    def write(number: int) -> None:
        for turn in range(8):
            text = f"Fact {number} {turn}."
            readers[number].library.record([Turn(text, session=f"s{turn % 2}", time="2025-03-02")])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reader.wrong() for reader in readers] == [set()] * 3
    said = [place.seq for place in readers[0].library.view().entries("evidence")]
    assert len(said) == len(set(said)) == 3 + 24


def points(root: Path, tmp_path: Path) -> list[str]:
    with hooked(nothing) as calls:
        work(copy(root, tmp_path / "count"), len)
    return calls


def test_a_writer_that_dies_hides_nothing(root: Path, tmp_path: Path) -> None:
    """Wherever it dies, the next writer knows the files as they lie there, and so does any call in time."""
    found = {}
    for number in range(1, len(points(root, tmp_path)) + 1, 7):
        at = copy(root, tmp_path / "m2")
        writer, reader = Reader(at), Reader(at)
        with hooked(die(number)), suppress(Crash):
            work(at, len)
        with writer.library.locked() as view:
            found[number] = set(view.ids("all")) ^ set(stamps(listed(at))) | {
                doc_id
                for doc_id in view.ids("all")
                if not _shows(view.document(doc_id).to_bytes(), at, doc_id)
            }
        assert writer.wrong() == set()
        reader.wait(BOUND)
        found[-number] = reader.wrong()
    assert {number: wrong for number, wrong in found.items() if wrong} == {}


def _shows(data: bytes, root: Path, doc_id: str) -> bool:
    return data == (root / f"{doc_id}.md").read_bytes()


@pytest.mark.parametrize("onward", [False, True])
def test_a_disk_that_refuses_hides_nothing(root: Path, tmp_path: Path, onward: bool) -> None:
    found = {}
    for number, name in enumerate(points(root, tmp_path), 1):
        if number % 7:
            continue
        at = copy(root, tmp_path / "m2")
        reader = Reader(at)
        with hooked(fail(number, errno.ENOSPC, onward=onward)), suppress(LibraryError):
            work(at, len)
        if name == "touch" or onward:
            reader.wait(BOUND)
        found[f"{number} {name}"] = reader.wrong()
    assert {number: wrong for number, wrong in found.items() if wrong} == {}
