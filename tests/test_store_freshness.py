"""What lies in a library now: seen at the next call where infinimem wrote it, soon where anybody else did."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest
from fault_disk import Crash, die, fail, hooked, nothing
from fault_work import copy, work
from fault_work import prepared as prepared
from freshness_library import Reader, rest, stamps

from infinimem.errors import LibraryError
from infinimem.model import Turn
from infinimem.store import listing
from infinimem.store.disk import Folder
from infinimem.store.freshness import BOUND
from infinimem.store.library import Library
from infinimem.store.listing import RACE_NS, FolderState, Stamp, listed, state_of
from infinimem.store.lock import exclusive


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


# ── by people, and by programs that are not infinimem ───────────────────────────────────────────


def test_of_a_small_library_every_call_looks_at_all(root: Path) -> None:
    (root / "note.md").write_text("x")
    rest(root)
    reader = Reader(root, small=300)
    (root / "note.md").write_text("xy")
    assert reader.look().stamps["note"].size == 2
    assert (reader.looks, reader.lists) == (1, 0)
    (root / "note.md").unlink()
    assert "note" not in reader.look().ids


def test_of_a_large_one_at_rest_a_call_lists_nothing(root: Path, reader: Reader) -> None:
    before = reader.look()
    (root / "CURRENT.md").write_text("- in place\n")
    assert reader.look() is before
    assert (reader.looks, reader.lists) == (1, 0)


def _exchanged(root: Path) -> None:
    library = Library(root)
    (root / ".other").write_text("y")
    library.files.exchange(".other", "topics/home.md")


STEPS: dict[str, Callable[[Path], object]] = {
    "created": lambda root: (root / "note.md").write_text("x"),
    "deleted": lambda root: (root / "topics/home.md").unlink(),
    "renamed": lambda root: (root / "topics/home.md").rename(root / "topics/house.md"),
    "moved": lambda root: (root / "topics/home.md").rename(root / "home.md"),
    "saved by renaming": lambda root: [
        (root / "swap").write_text("y"),
        (root / "swap").rename(root / "topics/home.md"),
    ],
    "exchanged": _exchanged,
    "a folder made": lambda root: [(root / "a/b").mkdir(parents=True), (root / "a/b/c.md").write_text("x")],
    "a folder renamed": lambda root: (root / "topics").rename(root / "subjects"),
    "a folder removed": lambda root: [
        *(path.unlink() for path in (root / "topics").iterdir()),
        (root / "topics").rmdir(),
    ],
    "a folder behind a link": lambda root: [
        (root / "topics").rename(root.parent / "t"),
        (root / "topics").symlink_to(root.parent / "t"),
    ],
    "a folder in its place": lambda root: [
        (root / "topics").rename(root / "old"),
        (root / "topics").mkdir(),
        (root / "topics/home.md").write_text("z"),
    ],
}


@pytest.mark.parametrize("step", STEPS)
def test_what_comes_or_goes_is_seen_by_the_next_call(root: Path, reader: Reader, step: str) -> None:
    STEPS[step](root)
    assert reader.wrong() == set()
    rest(root)
    assert reader.wrong() == set()
    assert reader.looks == 1


def test_a_folder_that_just_changed_is_not_known_by_its_time(root: Path) -> None:
    (root / "one.md").write_text("x")
    assert listed(root)[""].state is None
    rest(root)
    assert listed(root)[""].state is not None


def test_a_folder_is_settled_when_a_later_change_would_show() -> None:
    at = 1_700_000_000_123_456_789
    assert not FolderState(at, at, 1).settled(at + RACE_NS)
    assert FolderState(at, at, 1).settled(at + RACE_NS + 1)
    assert not FolderState(at, at, 1).settled(at - 10**9)  # the clock was set back
    whole = at // 10**9 * 10**9  # a disk that counts in seconds
    assert not FolderState(whole, whole, 1).settled(whole + 2 * 10**9)
    assert FolderState(whole, whole, 1).settled(whole + 3 * 10**9)


def test_an_edit_in_place_is_seen_within_the_bound(root: Path, reader: Reader) -> None:
    (root / "topics/home.md").write_text("x")
    assert reader.wrong() == {"topics/home"}
    reader.wait(BOUND)
    assert reader.wrong() == set()
    assert (reader.looks, reader.lists) == (2, 0)


def test_a_look_is_recent_within_the_bound_unless_somebody_doubts_it(reader: Reader) -> None:
    for path in (None, "note.md"):
        reader.look()
        assert reader.fresh.is_recent("evidence/")
        reader.fresh.doubt(path)
        assert not reader.fresh.is_recent("evidence/")
    reader.look()
    reader.wait(BOUND)
    assert not reader.fresh.is_recent("evidence/")


def test_a_look_is_recent_as_long_as_nothing_changed_elsewhere(root: Path, reader: Reader) -> None:
    reader = Reader(root, small=300)
    assert reader.fresh.is_recent("evidence/")
    (root / "topics/home.md").write_text("edited in its place")
    assert reader.fresh.is_recent("topics/") and not reader.fresh.is_recent("evidence/")
    (root / "notes.md").write_text("new")
    assert not reader.fresh.is_recent("topics/")


def test_another_file_of_the_same_size_and_time_is_seen(root: Path, reader: Reader) -> None:
    path = root / "topics/home.md"
    info = path.stat()
    (root / "other").write_bytes(path.read_bytes().replace(b"Porto", b"Lagos"))
    os.utime(root / "other", ns=(info.st_atime_ns, info.st_mtime_ns))
    (root / "other").rename(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (info.st_size, info.st_mtime_ns)
    assert reader.wrong() == set()
    view = reader.library.view()
    assert "Lagos" in view.document("topics/home").body


def test_a_save_that_a_read_finds_first_is_seen_by_the_next_call(root: Path, reader: Reader) -> None:
    view = reader.library.view()
    (root / "topics/home.md").write_text("# Else\n")
    assert "Else" in view.document("topics/home").body
    assert reader.wrong() == set()
    assert reader.looks == 1


def test_a_folder_that_may_not_be_read_is_passed_over_until_it_may(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "private").mkdir()
    (root / "private/note.md").write_text("x")
    rest(root)
    reader, real = Reader(root), listing.opened

    def refused(root: Path, path: str) -> AbstractContextManager[Folder]:
        if path == "private/":
            raise PermissionError(errno.EACCES, "not yours", path)
        return real(root, path)

    (root / "private").chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr(listing, "opened", refused)
        assert "private/note" not in reader.look().ids
    assert "private/note" in reader.look().ids
    assert reader.looks == 1


# ── what stays the same ─────────────────────────────────────────────────────────────────────────


def test_a_listing_is_the_same_as_long_as_nothing_changes(root: Path, reader: Reader) -> None:
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


def test_files_over_the_size_that_is_read_come_and_go(root: Path, reader: Reader) -> None:
    (root / "big.md").write_text("x" * 20_000)
    assert ("big" in reader.look().ids, list(reader.look().oversized)) == (False, ["big"])
    (root / "big.md").write_text("x")
    reader.fresh.doubt("big.md")
    assert ("big" in reader.look().ids, list(reader.look().oversized)) == (True, [])
    (root / "big.md").write_text("x" * 20_000)
    reader.fresh.doubt("big.md")
    assert ("big" in reader.look().ids, list(reader.look().oversized)) == (False, ["big"])
    (root / "big.md").unlink()
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
    assert path.removesuffix(".md") not in stamps(listed(root))
    assert state_of(root, "real/a.md") == stamps(listed(root))["real/a"]


# ── through infinimem ───────────────────────────────────────────────────────────────────────────


def infinimem(root: Path, *args: str) -> None:
    command = [sys.executable, "-m", "infinimem", "--library", str(root), "--model", "offline", *args]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def test_what_other_processes_write_is_seen_by_the_next_call(root: Path, reader: Reader) -> None:
    for step in (
        ("add", "My bike is red.", "--session", "s", "--time", "2025-03-02"),
        ("consolidate",),
        ("forget", "--match", "peanuts", "--yes"),
        ("add", "I have a cat.", "--session", "s", "--time", "2025-03-02"),
    ):
        infinimem(root, *step)
        assert reader.wrong() == set(), step
    assert reader.looks == 1


def test_what_the_process_itself_writes_is_seen_by_the_next_call(root: Path, reader: Reader) -> None:
    library = reader.library
    library.record([Turn("My bike is red.", session="new", time="2025-03-02")])
    assert reader.wrong() == set()
    assert reader.looks == 1
    (root / "CURRENT.md").write_text("- typed\n")
    assert library.adopt_edits() is not None  # which looks at all that people did
    assert reader.wrong() == set()


def test_a_writer_that_thinks_it_large_does_the_same_work(root: Path, tmp_path: Path) -> None:
    from fault_work import state

    def small(path: Path) -> None:
        work(path, len)

    small(copy(root, tmp_path / "small"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infinimem.store.freshness.SMALL", 0)
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


def test_what_a_dying_writer_appended_the_next_one_knows(root: Path, tmp_path: Path) -> None:
    """It may die between the append and the folder's time."""

    def said(at: Path) -> None:
        Library(at).record([Turn("My bike is red.", session="old", time="2025-03-02")])

    with hooked(nothing) as calls:
        said(copy(root, tmp_path / "count"))
    found = {}
    for number, name in enumerate(calls, 1):
        at = copy(root, tmp_path / "m2")
        rest(at)
        writer = Reader(at)
        with hooked(die(number)), suppress(Crash):
            said(at)
        with writer.library.locked():
            found[f"{number} {name}"] = writer.wrong()
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


def test_what_is_appended_is_known_to_the_next_writer(root: Path) -> None:
    """Each appends where the other did, so soon after that nothing but the time tells of it."""
    one, two = Reader(root), Reader(root)
    for number in range(6):
        for writer in (one, two):
            with writer.library.locked() as view:
                before = view.document("CURRENT").body.count("more")
                writer.library.files.append("CURRENT.md", f"more {number}\n".encode(), durable=False)
            assert before == 2 * number + (writer is two)
            assert writer.wrong() == set()
    assert (one.looks, two.looks) == (1, 1)


def test_of_what_only_we_wrote_only_that_is_looked_at(root: Path, reader: Reader) -> None:
    """Then the folder's names are enough. A file that another program writes meanwhile is seen in time."""
    with reader.library.locked():
        reader.library.files.append("topics/home.md", b"more\n", durable=False)
        (root / "topics/food.md").write_text("in place")
        (root / "topics/new.md").write_text("new")
        reader.library.files.append("topics/home.md", b"more\n", durable=False)
    assert reader.wrong() <= {"topics/food"}
    rest(root)
    reader.wait(BOUND)
    assert reader.wrong() == set()


def test_a_folder_of_somebody_else_tells_of_appends_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the system lets nobody but the owner set a time."""
    real = os.utime

    def utime(path: int, *args: object, ns: object = None) -> None:
        if ns is not None:
            raise PermissionError(errno.EPERM, "not yours")
        real(path, *args)  # type: ignore[arg-type]

    reader, other = Reader(root), Reader(root)
    monkeypatch.setattr(os, "utime", utime)
    for library in (reader.library, other.library, reader.library):
        with library.locked():
            library.files.append("CURRENT.md", b"more\n", durable=False)
        assert (reader.wrong(), other.wrong()) == (set(), set())
    assert (reader.looks, other.looks) == (1, 1)


def test_names_of_state_touch_no_folder_of_documents(root: Path) -> None:
    before = root.stat().st_mtime_ns
    with exclusive(files := Library(root).files):
        files.append(".infinimem/x", b"x")
        files.append(".infinimem/x.md", b"x")
    assert root.stat().st_mtime_ns == before


def test_stamps_compare_by_time_size_and_inode() -> None:
    looks: list[Callable[[Stamp], int]] = [lambda s: s.mtime_ns, lambda s: s.size, lambda s: s.inode]
    assert [look(Stamp(1, 2, 3)) for look in looks] == [1, 2, 3]
    assert len({Stamp(1, 2, 3), Stamp(1, 2, 3), Stamp(1, 2, 4)}) == 2
