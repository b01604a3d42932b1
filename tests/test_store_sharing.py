"""One library used at once: threads that read while another writes, views that last, forks, odd folders."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from infinimem.errors import LibraryError
from infinimem.model import CURRENT, Move, NewEntry, Plan, Turn
from infinimem.store import disk
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied, Rejected


def draw(library: Library, text: str) -> int:
    told = library.record([Turn(text, session="s")])
    outcome = library.apply(Plan(adds=(NewEntry(text, (told[0].seq,)),)))
    assert isinstance(outcome, Applied)
    return outcome.added[0].seq


def test_readers_beside_a_writer_see_what_is_on_the_disk(tmp_path: Path) -> None:
    library = init(tmp_path / "memory")
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            view = library.view()
            for doc_id in view.ids("all"):
                assert view.document(doc_id).entries is not None

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(60):
            draw(library, f"fact {number}")
    finally:
        done.set()
        for reader in readers:
            reader.join()
    view = library.view()
    for doc_id in view.ids("all"):
        assert view.document(doc_id).to_bytes() == (library.root / f"{doc_id}.md").read_bytes()


def test_a_view_says_the_same_as_long_as_it_lives(tmp_path: Path) -> None:
    library = init(tmp_path / "memory")
    draw(library, "one")
    view = library.view()
    before = view.document(CURRENT).to_bytes()
    draw(library, "two")
    assert view.document(CURRENT).to_bytes() == before
    assert library.view().document(CURRENT).to_bytes() != before


def test_an_append_into_a_file_that_was_replaced_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = init(tmp_path / "memory")
    draw(library, "one")
    path = library.root / "CURRENT.md"
    real, times = disk.write, iter([True])

    def write(descriptor: int, data: bytes | memoryview) -> int:
        if os.fstat(descriptor).st_ino == path.stat().st_ino and next(times, False):
            other = path.with_name("editor.tmp")
            other.write_bytes(path.read_bytes() + b"typed\n")
            other.replace(path)
        return real(descriptor, data)

    monkeypatch.setattr(disk, "write", write)
    seq = draw(library, "two")
    assert "typed\n" in path.read_text()
    assert library.view().entry(seq) is not None


def test_an_append_into_a_folder_that_was_moved_away_meanwhile_stands_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = init(tmp_path / "memory")
    folder, away = library.root / "evidence", tmp_path / "away"
    library.record([Turn("one", session="s")])
    real, times = disk.write, iter([True])

    def write(descriptor: int, data: bytes | memoryview) -> int:
        if b"two" in bytes(data) and next(times, False):
            folder.rename(away)
        return real(descriptor, data)

    monkeypatch.setattr(disk, "write", write)
    library.record([Turn("two", session="s")])
    assert [b"two" in path.read_bytes() for path in (*folder.iterdir(), *away.iterdir())] == [True, False]


def test_a_child_that_was_forked_under_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    library = init(tmp_path / "memory")
    with library.locked():
        child = os.fork()
        if not child:
            signal.pause()
    try:
        draw(library, "after the fork")
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_file_in_the_place_of_a_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("mine")
    with pytest.raises(LibraryError, match="archive"):
        init(tmp_path)
    assert (tmp_path / "archive").read_text() == "mine"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name",
    [
        "topics/.secret",
        "topics/a\u200db",
        "topics/a\u00a0b",
        "topics/a\nb",
        "topics/\udc80",
        "topics/a\0b",
        f"topics/{'x' * 201}",
        "topics/",
        "topics/../a",
    ],
)
def test_no_line_goes_where_nobody_would_read_it(tmp_path: Path, name: str) -> None:
    library = init(tmp_path / "memory")
    seq = draw(library, "one")
    outcome = library.apply(Plan("consolidate", moves=(Move(seq, name),)))
    assert isinstance(outcome, Rejected)
    assert [reason.code for reason in outcome.reasons] == ["BAD_TARGET"]


def test_no_two_documents_differ_by_case_alone(tmp_path: Path) -> None:
    library = init(tmp_path / "memory")
    one, two = draw(library, "one"), draw(library, "two")
    assert isinstance(library.apply(Plan("consolidate", moves=(Move(one, "topics/tea"),))), Applied)
    outcome = library.apply(Plan("consolidate", moves=(Move(two, "topics/Tea"),)))
    assert isinstance(outcome, Rejected)
    assert "another's name" in str(outcome.reasons[0])


def test_a_library_lets_nothing_go_that_another_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infinimem.markdown.document.HELD", 2)
    one, other = init(tmp_path / "one"), init(tmp_path / "other")
    for number in range(3):
        one.record([Turn(f"turn {number}", session=f"s{number}")])
        other.record([Turn(f"turn {number}", session=f"s{number}")])
    first, *_, last = map(one.view().document, one.view().ids("evidence"))
    known, lost = last.entries, first.entries
    assert last.entries is known
    assert [other.view().document(doc_id).entries for doc_id in other.view().ids("evidence")]
    assert last.entries is known and first.entries is lost
    assert [document.entries for document in map(one.view().document, one.view().ids("evidence"))]
    assert first.entries == lost and first.entries is not lost
