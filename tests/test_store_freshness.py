"""What lies in a library now: seen at the next call where infinimem wrote it, soon where anybody else did."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from fault_disk import Crash, die, fail, hooked, nothing
from fault_work import copy, work
from fault_work import prepared as prepared
from freshness_library import Reader

from infinimem.errors import LibraryError
from infinimem.model import Turn
from infinimem.store import dirty_list
from infinimem.store.freshness import BOUND
from infinimem.store.library import Library
from infinimem.store.listing import Stamp, listed, state_of
from infinimem.store.lock import exclusive


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copy(prepared, tmp_path / "m")


def settled(root: Path) -> Reader:
    """A reader that has seen the list of touched documents; from here on it looks at what that names."""
    write(root)
    reader = Reader(root)
    assert reader.scans == 1
    return reader


# ── by people, and by programs that are not infinimem ───────────────────────────────────────────


def test_of_a_small_library_every_call_looks_at_all(root: Path) -> None:
    reader = Reader(root, large=300)
    (root / "note.md").write_text("x")
    assert "note" in reader.look().ids
    (root / "note.md").write_text("xy")
    assert reader.look().stamps["note"].size == 2
    (root / "note.md").unlink()
    assert "note" not in reader.look().ids


def test_of_a_large_one_a_call_looks_at_nothing(root: Path) -> None:
    reader = settled(root)
    before = reader.look()
    (root / "note.md").write_text("x")
    assert reader.look() is before
    assert reader.scans == 1


def test_an_edit_by_hand_is_seen_within_the_bound(root: Path) -> None:
    reader = settled(root)
    (root / "note.md").write_text("x")
    reader.wait(BOUND + 0.001)
    assert reader.wrong() == set()
    assert reader.scans == 2


def test_another_file_of_the_same_size_and_time_is_seen(root: Path) -> None:
    reader = settled(root)
    path = root / "topics/home.md"
    info = path.stat()
    (root / "other").write_bytes(path.read_bytes().replace(b"Porto", b"Lagos"))
    os.utime(root / "other", ns=(info.st_atime_ns, info.st_mtime_ns))
    (root / "other").rename(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (info.st_size, info.st_mtime_ns)
    reader.wait(BOUND + 1)
    assert reader.wrong() == set()
    view = reader.library.view()
    assert "Lagos" in view.document("topics/home").body


def test_a_save_that_a_read_finds_first_is_seen_by_the_next_call(root: Path) -> None:
    reader = settled(root)
    view = reader.library.view()
    (root / "topics/home.md").write_text("# Else\n")
    assert "Else" in view.document("topics/home").body
    assert reader.wrong() == set()
    assert reader.scans == 1


# ── what stays the same ─────────────────────────────────────────────────────────────────────────


def test_a_listing_is_the_same_as_long_as_nothing_changes(root: Path) -> None:
    reader = settled(root)
    before, view = reader.look(), reader.library.view()
    reader.wait(BOUND + 1)
    assert reader.look() is before
    assert reader.library.view() is view
    (root / "topics/home.md").write_text("# Else\n")
    reader.wait(BOUND + 1)
    after = reader.look()
    assert after is not before
    assert after.ids is before.ids
    assert before.stamps["topics/home"] != after.stamps["topics/home"]
    assert reader.library.view() is not view


def test_files_over_the_size_that_is_read_come_and_go(root: Path) -> None:
    reader = settled(root)
    (root / "big.md").write_text("x" * 20_000)
    reader.fresh.doubt("big.md")
    assert ("big" in reader.look().ids, list(reader.look().oversized)) == (False, ["big"])
    (root / "big.md").write_text("x")
    reader.fresh.doubt("big.md")
    assert ("big" in reader.look().ids, list(reader.look().oversized)) == (True, [])
    (root / "big.md").write_text("x" * 20_000)
    reader.fresh.doubt("big.md")
    assert ("big" in reader.look().ids, list(reader.look().oversized)) == (False, ["big"])
    (root / "big.md").unlink()
    reader.fresh.doubt("big.md")
    assert list(reader.look().oversized) == []


@pytest.mark.parametrize("path", [".hidden.md", ".h/a.md", "a.txt", "no\u200bne.md", "link.md", "down/a.md"])
def test_a_name_is_looked_at_as_the_listing_would(root: Path, path: str) -> None:
    (root / ".h").mkdir()
    (root / "real").mkdir()
    for name in (".hidden.md", ".h/a.md", "a.txt", "no\u200bne.md", "real/a.md"):
        (root / name).write_text("x")
    (root / "link.md").symlink_to(root / "real/a.md")
    (root / "down").symlink_to(root / "real")
    assert state_of(root, path) is None
    assert path.removesuffix(".md") not in listed(root)
    assert state_of(root, "real/a.md") == listed(root)["real/a"]


# ── through infinimem ───────────────────────────────────────────────────────────────────────────


def infinimem(root: Path, *args: str) -> None:
    command = [sys.executable, "-m", "infinimem", "--library", str(root), "--model", "offline", *args]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def test_what_other_processes_write_is_seen_by_the_next_call(root: Path) -> None:
    reader = settled(root)
    for step in (
        ("add", "My bike is red.", "--session", "s", "--time", "2025-03-02"),
        ("consolidate",),
        ("forget", "--match", "peanuts", "--yes"),
        ("add", "I have a cat.", "--session", "s", "--time", "2025-03-02"),
    ):
        infinimem(root, *step)
        assert reader.wrong() == set(), step
    assert reader.scans == 3  # forgetting drops the list, and the next begins a new one


def test_what_the_process_itself_writes_is_seen_by_the_next_call(root: Path) -> None:
    reader = settled(root)
    library = reader.library
    library.record([Turn("My bike is red.", session="new", time="2025-03-02")])
    assert reader.wrong() == set()
    assert reader.scans == 1
    (root / "CURRENT.md").write_text("- typed\n")
    assert library.adopt_edits() is not None  # which looks at all that people did
    assert reader.wrong() == set()
    assert reader.scans == 2


def test_a_writer_that_thinks_it_large_does_the_same_work(root: Path, tmp_path: Path) -> None:
    from fault_work import state

    def small(path: Path) -> None:
        work(path, len)

    small(copy(root, tmp_path / "small"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infinimem.store.freshness.LARGE", 0)
        small(copy(root, tmp_path / "large"))
    assert state(tmp_path / "small") == state(tmp_path / "large")


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
    """Wherever it dies, the next call sees the files as they lie there, and again after the next writer."""
    settled(root)
    found = {}
    for number in range(1, len(points(root, tmp_path)) + 1, 7):
        at = copy(root, tmp_path / "m2")
        reader = Reader(at)
        with hooked(die(number)), suppress(Crash):
            work(at, len)
        found[number] = reader.wrong()
        with hooked(nothing):
            work(at, len)
        found[-number] = reader.wrong()
    assert {number: wrong for number, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("onward", [False, True])
def test_a_disk_that_refuses_hides_nothing(root: Path, tmp_path: Path, onward: bool) -> None:
    settled(root)
    found = {}
    for number, name in enumerate(points(root, tmp_path), 1):
        if number % 7:
            continue
        at = copy(root, tmp_path / "m2")
        reader = Reader(at)
        with hooked(fail(number, errno.ENOSPC, onward=onward)), suppress(LibraryError):
            work(at, len)
        found[f"{number} {name}"] = reader.wrong()
    assert {number: wrong for number, wrong in found.items() if wrong} == {}


def test_who_cannot_name_what_it_writes_still_writes_and_sees_it(root: Path) -> None:
    """There is no list and none can be made: another process learns of it under the lock, at the latest."""
    (root / dirty_list.PATH).unlink()
    writer, reader = Reader(root), Reader(root)
    (root / dirty_list.PATH).mkdir()
    writer.library.record([Turn("My bike is red.", session="new", time="2025-03-02")])
    (root / dirty_list.PATH).rmdir()
    assert writer.wrong() == set()
    with reader.library.locked() as view:
        assert set(view.ids("all")) == set(listed(root))


# ── the list of touched documents ───────────────────────────────────────────────────────────────


def write(root: Path, path: str = "CURRENT.md") -> None:
    with exclusive(files := Library(root).files):
        files.append(path, b"more\n", durable=False)


def damaged(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "copied":
        path.unlink()
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(data[:-3])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "zeros":
        path.write_bytes(b"\0" * len(data))
    elif how == "junk":
        path.write_bytes(data + b"\xff\xfe junk \0\nno path\n")
    elif how == "other head":
        path.write_bytes(b"infinimem touched 0000000000000000\n" + b"\ntopics/home.md\n.\n" * 9)
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    elif how == "a link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")


HOW = ["missing", "copied", "cut", "empty", "zeros", "junk", "other head", "a folder", "a link"]


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_list_hides_no_later_write(root: Path, how: str) -> None:
    reader = settled(root)
    damaged(root / dirty_list.PATH, how)
    write(root)
    assert reader.wrong() == set()
    write(root, "topics/home.md")
    assert reader.wrong() == set()


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_list_that_is_seen_in_between_hides_nothing(root: Path, how: str) -> None:
    reader = settled(root)
    damaged(root / dirty_list.PATH, how)
    reader.look()
    write(root)
    assert reader.wrong() == set()
    write(root, "topics/home.md")
    assert reader.wrong() == set()


def test_a_list_that_grew_long_is_begun_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_list, "LONGEST", 400)
    reader = settled(root)
    for number in range(60):
        write(root, f"topics/n{number}.md")
        assert reader.wrong() == set(), number
        assert (root / dirty_list.PATH).stat().st_size < 500
    assert 1 < reader.scans < 10


def test_a_row_that_was_cut_short_does_not_swallow_the_next(root: Path) -> None:
    reader = settled(root)
    with (root / dirty_list.PATH).open("ab") as file:
        file.write(b"topics/ho")
    write(root, "topics/home.md")
    assert reader.wrong() == set()


def test_nobody_reads_what_only_names_state(root: Path) -> None:
    settled(root)
    before = (root / dirty_list.PATH).read_bytes()
    with exclusive(files := Library(root).files):
        files.replace(".infinimem/x", b"x")
        files.replace(".infinimem/x.md", b"x")
    assert (root / dirty_list.PATH).read_bytes() == before


def test_what_is_being_written_is_looked_at_at_every_call(root: Path) -> None:
    """It is named before it changes, and may change until the lock is given back."""
    reader = settled(root)
    with exclusive(files := Library(root).files):
        files.append("topics/home.md", b"one\n", durable=False)
        assert reader.wrong() == set()
        with (root / "topics/home.md").open("ab") as file:
            file.write(b"two\n")
        assert reader.wrong() == set()
    assert reader.scans == 1


def test_forgetting_drops_the_list(root: Path) -> None:
    write(root, "topics/psoriasis.md")
    assert b"psoriasis" in (root / dirty_list.PATH).read_bytes()
    infinimem(root, "forget", "--match", "peanuts", "--yes")
    assert not (root / dirty_list.PATH).exists()


def test_stamps_compare_by_time_size_and_inode() -> None:
    looks: list[Callable[[Stamp], int]] = [lambda s: s.mtime_ns, lambda s: s.size, lambda s: s.inode]
    assert [look(Stamp(1, 2, 3)) for look in looks] == [1, 2, 3]
    assert len({Stamp(1, 2, 3), Stamp(1, 2, 3), Stamp(1, 2, 4)}) == 2
