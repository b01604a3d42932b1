"""The file of machine state: taken over, copied, damaged, planted, shared and lost, never a wrong answer."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import fault_strace as strace
import pytest
from fault_strace import traceable as traceable

from infinimem import open_memory
from infinimem.errors import LibraryError
from infinimem.model import LEFT, NewEntry, Plan, Turn, Usage
from infinimem.store import state
from infinimem.store.files import Files
from infinimem.store.library import Library, init
from infinimem.store.view import Applied, View

DAY = "2025-03-01"
STATE = ".infinimem/state.db"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library of which turn 1 has an entry, 2 came to nothing, 3 has no usable answer and 4 is new."""
    library = init(tmp_path / "memory")
    one, two, three = say(library, "one", "two", "three")
    plan = Plan(adds=(NewEntry("about one", (one,)),), empty=(two,), unanswered={three: "REFUSED"})
    assert isinstance(library.apply(plan, model="gpt 5"), Applied)
    say(library, "four")
    return library


def say(library: Library, *texts: str) -> list[int]:
    return [place.seq for place in library.record([Turn(text, time=DAY) for text in texts])]


def pending(view: View) -> list[int]:
    return [place.seq for place in view.uncited()]


def told(library: Library) -> tuple[Any, ...]:
    """What the machine state says."""
    view, seen = library.view(), library.seen_lines()
    return (
        *(pending(view), set(view.drawn or ()), set(view.refused), dict(view.unanswered())),
        *(state.usage_by_day(library.files), {seq: (one.doc_id, one.line) for seq, one in seen.items()}),
    )


def edited(library: Library, old: str, new: str) -> None:
    path = library.root / "CURRENT.md"
    path.write_text(path.read_text().replace(old, new))


def changes(library: Library) -> list[str]:
    """What a receipt says of a person's edits."""
    receipt = library.adopt_edits()
    return [row.why for row in receipt.rows] if receipt else []


@contextmanager
def tables(library: Library) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(library.root / STATE)) as opened:
        yield opened
        opened.commit()


# ── lists of earlier versions ───────────────────────────────────────────────────────────────────


def as_earlier(library: Library, torn: bool = False) -> dict[str, bytes]:
    """Leave the machine state as earlier versions did, perhaps with torn rows."""
    one, two, three = 1, 2, 3
    (entry,) = library.view().buffer.entries
    rows = [f"{entry.seq}\tCURRENT\t{line}".encode() for line in ("- old", entry.entry.line)]
    seen = b"".join(b"%08x\t%s\n" % (crc32(row), row) for row in rows)
    bad = b"\x00\xff 7-\n9-2;\n4" if torn else b""
    lists = {
        "drawn": b"%d;\n" % one + bad.replace(b"\n4", b"\n") + b"%d-%d;\n" % (one, two) + bad,
        "drawn-recmem": b"1-3;\n",
        "refused": b"%d;\n" % two + bad,
        "unanswered-infini": b"%d REFUSED gpt%%205;\n%d REFUSED gpt%%205;\n" % (three, three) + bad,
        "usage": b"2025-03-03 1 20 3\n2025-03-03 1 20 4\n" + bad,
        "seen": seen + b"00000000\t4\tCURRENT\twrong\n" * torn + bad,
    }
    (library.root / STATE).unlink()
    for name, data in lists.items():
        (library.root / ".infinimem" / name).write_bytes(data)
    return lists


@pytest.mark.parametrize("torn", [False, True])
def test_lists_of_earlier_versions_are_read_at_once_and_moved_by_the_first_that_writes(
    library: Library, torn: bool
) -> None:
    lists = as_earlier(library, torn)
    for reader in (Library(library.root, read_only=True), Library(library.root), library):
        said = told(reader)
        assert said[:3] == ([3, 5], {1, 2}, {2})
        assert [(seq, one.tries, one.model) for seq, one in said[3].items()] == [(3, 2, "gpt 5")]
        assert said[4] == {"2025-03-03": Usage(2, 40, 7)}
        assert [(seq, line.endswith("about one")) for seq, (_, line) in said[5].items()] == [(4, True)]
        assert {path.name for path in (library.root / ".infinimem").iterdir()} >= lists.keys()
        assert not (library.root / STATE).exists()
    other = Library(library.root)
    library.apply(Plan(empty=(5,)))
    assert not {path.name for path in (library.root / ".infinimem").iterdir()} & lists.keys()
    assert told(other)[:3] == ([3], {1, 2, 5}, {2})
    assert told(Library(library.root, strategy="recmem"))[1] == {1, 2, 3}
    edited(library, "about one", "about two")
    assert changes(other) == ["edited"]


# ── lost, damaged, another's ────────────────────────────────────────────────────────────────────


def planted(schema: str, anew: bool = False) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        if anew:
            path.unlink()
        with closing(sqlite3.connect(path)) as opened:
            opened.executescript(schema)

    return plant


def changed(at: int, data: bytes) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        old = path.read_bytes()
        path.write_bytes(old[:at] + data + old[at + len(data) :])

    return plant


def linked(path: Path) -> None:
    path.rename(path.parents[2] / "elsewhere.db")
    path.symlink_to(path.parents[2] / "elsewhere.db")


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "folder deleted": lambda path: shutil.rmtree(path.parent),
    "empty": lambda path: os.truncate(path, 0),
    "cut": lambda path: os.truncate(path, 5000),
    "NULs": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "text": lambda path: path.write_bytes(b"\x00 {nonsense\n" * 999),
    "first page": changed(100, b"\xff" * 900),
    "other pages": changed(4096, b"\xff" * 40_000),
    "another schema": planted(
        "CREATE TABLE turn (list TEXT, seq INTEGER); CREATE TABLE meta (id)", anew=True
    ),
    "a trigger": planted("CREATE TRIGGER t INSERT ON turn BEGIN DELETE FROM seen; END"),
    "a table more": planted("CREATE TABLE more (seq INTEGER)"),
    "a log": planted("PRAGMA journal_mode = WAL"),
    "a link": linked,
    "a pipe": piped,
}
IN_PLACE = ("first page", "other pages", "a trigger", "a table more", "a log")
"""What a process that has the file open does not look at again."""
CASES = [
    (name, running) for name in DAMAGE for running in (False, True) if not (running and name in IN_PLACE)
]


@pytest.mark.parametrize(("name", "running"), CASES)
def test_a_state_that_is_of_no_use_is_lost_and_made_anew(library: Library, name: str, running: bool) -> None:
    """All before the newest cited turn counts as drawn from; nothing is said to be edited or deleted."""
    (five,) = say(library, "five")
    library.apply(Plan(adds=(NewEntry("about five", (five,)),)))
    (later,) = say(library, "later")
    DAMAGE[name](library.root / STATE)
    library = library if running else Library(library.root)
    assert pending(Library(library.root, read_only=True).view()) == pending(library.view()) == [later]
    assert library.adopt_edits() is None
    edited(library, "about five", "about six")
    assert changes(library) == ["edited"]
    library.apply(Plan(empty=(later,)))
    assert pending(library.view()) == pending(Library(library.root).view()) == []
    assert (library.root / STATE).is_file() and not (library.root / STATE).is_symlink()
    assert open_memory(library.root, model="offline").doctor() == []


def test_a_copy_of_a_library_begins_anew_and_one_that_was_moved_goes_on(
    library: Library, tmp_path: Path
) -> None:
    shutil.copytree(library.root, tmp_path / "copy")
    assert Library(tmp_path / "copy").view().drawn is None
    said = told(library)
    library.root.rename(tmp_path / "moved")
    assert told(Library(tmp_path / "moved")) == said
    assert Library(tmp_path / "copy").view().drawn is None


def begun_journal(library: Library) -> bytes:
    """What lies beside the state while it is written to."""
    with tables(library) as opened:
        opened.execute("PRAGMA synchronous = OFF")
        opened.execute("DELETE FROM seen")
        begun = (library.root / f"{STATE}-journal").read_bytes()
        opened.rollback()
    return begun


def test_a_library_that_is_only_read_is_not_brought_back_from_a_journal(library: Library) -> None:
    journal, path = library.root / f"{STATE}-journal", library.root / STATE
    journal.write_bytes(begun := begun_journal(library))
    was = path.read_bytes()
    assert Library(library.root, read_only=True).view().drawn is None
    assert (path.read_bytes(), journal.read_bytes()) == (was, begun)
    assert Library(library.root).view().drawn == {1, 2} and not journal.exists()


def test_a_journal_that_is_a_link_changes_nothing_where_it_leads(library: Library, tmp_path: Path) -> None:
    journal, mine = library.root / f"{STATE}-journal", tmp_path / "mine"
    for data in (b"a person's", begun_journal(library)):
        mine.write_bytes(data)
        journal.symlink_to(mine)
        told(Library(library.root, read_only=True))
        Library(library.root).apply(Plan(empty=(5,)))
        assert mine.read_bytes() == data and not journal.is_symlink()


def test_a_journal_that_names_another_file_deletes_nothing(library: Library, tmp_path: Path) -> None:
    """SQLite takes one for what a crash left, and deletes the file that it names as another journal."""
    journal, mine = library.root / f"{STATE}-journal", tmp_path / "mine"
    begun, name = begun_journal(library), os.fsencode(mine)
    tail = (262145).to_bytes(4) + name + len(name).to_bytes(4) + sum(name).to_bytes(4)
    planted = begun + tail + begun[:8]
    twin = tmp_path / "twin.db"
    for path, look in ((twin, lambda: None), (library.root / STATE, lambda: told(Library(library.root)))):
        mine.write_text("a person's")
        if path is twin:  # this is what happens to whom nothing protects
            shutil.copy(library.root / STATE, twin)
            Path(f"{twin}-journal").write_bytes(planted)
            with closing(sqlite3.connect(twin)) as opened:
                opened.execute("SELECT * FROM seen").fetchall()
        else:
            journal.write_bytes(planted)
            look()
            say(library, "more")
            library.apply(Plan(empty=(5,)))
        assert mine.exists() == (path is not twin)
    assert not journal.exists()


# ── shared ──────────────────────────────────────────────────────────────────────────────────────


def test_what_another_program_holds_is_said_in_one_line(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "LOCK_TIMEOUT", 0.05)
    with tables(library) as opened:
        opened.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LibraryError, match=r"state\.db: another program holds it; try again$"):
            told(Library(library.root))
    assert pending(library.view()) == [3, 5]


def test_a_snapshot_keeps_what_it_saw_and_tells_what_came_since(library: Library) -> None:
    before = library.view().drawn
    six, seven = say(library, "six", "seven")
    library.apply(Plan(empty=(six,)))
    between = library.view().drawn
    Library(library.root).apply(Plan(empty=(seven,)))
    now = library.view().drawn
    assert isinstance(before, state.Seqs) and isinstance(now, state.Seqs)
    assert ({*before}, {*now}) == ({1, 2}, {1, 2, six, seven}) and between == {1, 2, six}
    assert list(now.since(before) or ()) == [six, seven] and list(now.since(now) or ()) == []
    assert before.since(now) is None and now.since({1, 2}) is None
    with library.locked():
        state.note(library.files, emptied="drawn")
        state.note(library.files, {"drawn": {six}})
    emptied = library.view().drawn
    assert (
        isinstance(emptied, state.Seqs) and {*emptied} == {six} and emptied.since(now) is None and not {*now}
    )
    (library.root / STATE).unlink()
    library.apply(Plan(empty=(6,)))
    anew = library.view().drawn
    assert isinstance(anew, state.Seqs) and anew.since(emptied) is None and {*emptied} == {six}


def test_a_view_stays_the_same_while_only_lines_are_seen(library: Library) -> None:
    library.adopt_edits()
    view = library.view()
    state.note_usage(library.files, DAY, Usage(1, 2, 3))
    assert library.view() is view and library.view().drawn is view.drawn


def test_threads_and_a_forked_child_use_it_side_by_side(library: Library) -> None:
    view, wrong = library.view(), list[object]()

    def read() -> None:
        for _ in range(60):
            view = library.view()
            if not {1, 2} <= set(view.drawn or ()):
                wrong.append(view.drawn)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(15):
        library.apply(Plan(empty=tuple(say(library, f"number {number}"))))
    for thread in threads:
        thread.join()
    child = os.fork()
    if not child:
        seqs = say(library, "of the child")
        library.apply(Plan(empty=tuple(seqs)))
        os._exit(0 if {*seqs} <= set(library.view().drawn or ()) else 1)
    assert os.waitpid(child, 0)[1] == 0
    library.apply(Plan(empty=tuple(say(library, "of the parent"))))
    assert wrong == [] and pending(library.view()) == [3, 5] and view.drawn == {1, 2}


@pytest.mark.usefixtures("traceable")
@pytest.mark.parametrize("fault", ["kill", "EIO", "ENOSPC"])
@pytest.mark.parametrize("count", [3, pytest.param(None, marks=pytest.mark.soak)])
def test_sqlite_dies_or_fails_at_any_of_its_calls(
    library: Library, tmp_path: Path, fault: str, count: int | None
) -> None:
    """A change is made whole or not at all, and is there when it is made again; an error is one line."""
    kept = library.root.rename(tmp_path / "kept")

    def job() -> None:
        files = Files(kept.with_name("memory"))
        with files.exclusive():
            state.note(files, {"drawn": {5}}, strategy="infini", unanswered={3: LEFT}, model="gpt 5")

    def fresh() -> None:
        shutil.rmtree(kept.with_name("memory"), ignore_errors=True)
        shutil.copytree(kept, kept.with_name("memory"))
        state.check(Library(kept.with_name("memory")).files, claim=True)

    fresh()
    kinds = ("pwrite64", "pread64", "fcntl", "unlink", "openat", "close", "fchown", "newfstatat", "lseek")
    points = [point for point in strace.points(job) if point[0] in kinds]
    assert len(points) > 30
    for point in strace.chosen(points, count):
        fresh()
        if fault == "kill":
            strace.killed(job, point)
        else:
            why = strace.failed(job, point, fault).splitlines()
            assert not why or why[-1].startswith("infinimem."), (point, why[-5:])
        again = Library(kept.with_name("memory"))
        drawn = set(again.view().drawn or ())
        assert drawn in ({1, 2}, {1, 2, 5}), point
        again.apply(Plan(empty=(5,), unanswered={3: LEFT}), model="gpt 5")
        assert told(again)[:2] == ([], {1, 2, 5}), point
        assert [*(kept.with_name("memory") / ".infinimem").glob("state.db-*")] == [], point


# ── forgotten ───────────────────────────────────────────────────────────────────────────────────


def test_nothing_of_a_forgotten_line_stays_in_the_file(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    memory.observe(
        [Turn(f"My neighbour Imogen keeps {n} quails in her yard.", session="s") for n in range(40)]
    )
    memory.observe([Turn("I moved to Lisbon in March.", session="t")])
    path = tmp_path / "m" / STATE
    assert b"quails" in path.read_bytes()
    done = memory.forget(match="quails")
    assert b"quails" not in path.read_bytes() and b"Lisbon" in path.read_bytes()
    assert STATE not in [one.path for one in done.left]
