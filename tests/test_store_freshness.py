"""What lies in a library now: seen at the next call where infinimem wrote it, soon where anybody else did."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fault_disk import Crash, die, fail, hooked, nothing
from fault_work import copy, work
from fault_work import prepared as prepared
from freshness_library import Reader, rest, stamps
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.errors import LibraryError
from infinimem.model import Located, NewEntry, Plan, Turn
from infinimem.store.folders import listed
from infinimem.store.freshness import BOUND, REST, Watcher
from infinimem.store.library import Library, init


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


# ── through infinimem ───────────────────────────────────────────────────────────────────────────


def test_what_the_process_itself_writes_is_seen_by_the_next_call(root: Path, reader: Reader) -> None:
    library = reader.library
    library.record([Turn("My bike is red.", session="new", time="2025-03-02")])
    assert reader.wrong() == set()
    assert reader.looks == 1
    (root / "CURRENT.md").write_text("- typed\n")
    assert library.adopt_edits() is not None  # which looks at all that people did
    assert reader.wrong() == set()


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


PATIENCE = 60.0
"""Seconds to wait for what comes in some milliseconds on a machine with nothing else to do."""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


# ── how a library uses it ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def relying(root: Path) -> Reader:
    """A reader whose watcher is relied on; its clock stands still after that."""
    rest(root)
    reader = Reader(root)
    reader.look()
    assert not reader.watcher.begun  # most processes end before it would be of use
    reader.wait(BOUND)
    reader.look()
    assert (reader.watcher.begun, reader.looks) == (1, 2)
    reader.watcher.lives = True
    reader.look()
    assert reader.looks == 3  # once everything, for what changed before it lived
    return reader


def edit(path: Path, age: float = 0.0) -> None:
    """Write in place, so many seconds ago."""
    path.write_text(f"{path.read_text()}more\n")
    then = time.time_ns() - int(age * 1e9)
    os.utime(path, ns=(then, then))


def test_a_watcher_that_misses_an_edit_is_given_up(root: Path, relying: Reader) -> None:
    edit(root / "topics/home.md", age=4.0)
    relying.wait(REST)
    assert relying.wrong() == set()
    assert not relying.watcher.living
    edit(root / "topics/home.md")
    relying.wait(BOUND)
    assert relying.wrong() == set()


# ── the real one ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def real(root: Path) -> Iterator[Watcher]:
    watcher = Watcher(root)
    watcher.begin()
    until(lambda: watcher.living)
    yield watcher
    watcher.stop()
    assert not watcher.living


def test_it_names_what_people_write(root: Path, real: Watcher) -> None:
    named: set[str] = set()

    def hears(*names: str) -> None:
        def heard() -> bool:
            real.wait(0.1)
            named.update(real.take() or ())
            return named >= set(names)

        until(heard)
        named.clear()

    (root / "note.md").write_text("x")
    hears("note.md")
    with (root / "note.md").open("a") as file:
        file.write("more")
        file.flush()
        hears("note.md")
    os.utime(root / "note.md", ns=(0, 0))
    hears("note.md")
    (root / "deep/er").mkdir(parents=True)
    (root / "deep/er/note.md").write_text("x")
    hears("deep/er/note.md")
    (root / "deep").rename(root / "down")

    def renamed() -> bool:
        (root / "down/er/note.md").write_text("y")
        real.wait(0.1)
        return "down/er/note.md" in (real.take() or ())

    until(renamed)


def test_who_waits_is_woken_by_what_comes_and_goes(root: Path, real: Watcher) -> None:
    for step in (lambda: (root / "a").mkdir(), lambda: (root / "a").rmdir()):
        real.wait(0.0)
        step()
        began = time.monotonic()
        real.wait(PATIENCE)
        assert time.monotonic() - began < PATIENCE


NOW = "2025-03-03T10:00:00"


def said(library: Library, text: str, session: str, key: str | None = None) -> tuple[Located, ...]:
    return library.record([Turn(text, session=session, time=NOW, key=key)])


def two(root: Path) -> tuple[Library, Library]:
    """Two writers of one library, each with a session of its own, as two processes have it."""
    one, other = init(root), Library(root)
    for text in ("Hello.", "Hello again."):
        said(one, text, "a")
        said(other, text, "b")
        rest(root)
    return one, other


def test_a_seq_that_a_person_wrote_elsewhere_is_not_given_once_the_bound_is_over(tmp_path: Path) -> None:
    one, _ = two(tmp_path / "memory")
    writer = Reader(one.root)
    said(writer.library, "First.", "a")
    path = one.root / "evidence" / "2025-03-03-b.md"
    path.write_text(path.read_text() + "- <seq=900,source=user> Typed.\n")
    writer.wait(BOUND)
    (place,) = said(writer.library, "Second.", "a")
    assert place.seq == 901


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("record", "record", "record", "draw", "view", "type", "edit")),
        st.booleans(),
        st.sampled_from("abc"),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(ACTS)
def test_all_that_is_recorded_stands_where_it_was_said_to_once(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, bool, str]]
) -> None:
    root = tmp_path_factory.mktemp("library") / "memory"
    writers, placed = two(root), dict[int, str]()
    for number, (act, first, session) in enumerate(acts):
        library = writers[0 if first else 1]
        path = root / "evidence" / f"2025-03-03-{session}.md"
        if act == "record":
            (place,) = said(library, f"Number {number}.", session)
            assert place.seq not in placed
            assert Library(root).view().entry(place.seq) == place
            placed[place.seq] = place.text
        elif act == "draw":
            (place,) = said(library, f"Number {number}.", session)
            library.apply(Plan(adds=(NewEntry(f"Fact {number}", (place.seq,)),)))
            placed[place.seq] = place.text
        elif act == "view":
            assert library.view().max_seq >= max(placed, default=0)
        elif act == "type":
            (root / f"note-{number}.md").write_text("- a person's\n")
        elif act == "edit" and path.exists():
            path.write_text(path.read_text() + "\nA person's remark.")
    for library in writers:
        found = {place.seq: place.text for place in library.view().entries("evidence")}
        assert {seq: found[seq] for seq in placed} == placed
        assert len(found) == len(list(library.view().entries("evidence")))
