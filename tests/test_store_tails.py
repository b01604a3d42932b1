"""Appends that a kill or a loss of power cut short: taken back, asked for again, or left; and lists that are
damaged or lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fault_disk import Call, Crash, Hook, fail, hooked, nothing

from infinimem import open_memory
from infinimem.errors import LibraryError
from infinimem.model import NewEntry, Plan, RejectedReply, Turn
from infinimem.store import disk
from infinimem.store.library import Library, init
from infinimem.store.view import Applied
from infinimem.store.withheld import KEPT, REJECTED, keep_replies
from infinimem.testing import ScriptedLLM

DAY = "2025-03-01"
SAID = f"evidence/{DAY}.md"
TORN = (
    b"- <seq=9,source=us",
    b"- <seq=9,source=user> tea",
    b"- <se",
    b"-",
    b"\0\0\0",
    b"- <seq=9,source=user> t\0",
)
Restart = Callable[[], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library in which one turn was said and drawn from, and one was only said."""
    library = init(tmp_path / "m")
    tell(library, "I drink tea", key="first")
    (place,) = library.view().entries("evidence")
    assert isinstance(library.apply(Plan(adds=(NewEntry("Drinks tea", (place.seq,)),))), Applied)
    tell(library, "Perhaps", key="second")
    return library.root


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch) -> Restart:
    """The machine goes down and is started again."""
    boots = count(1)

    def start() -> None:
        name = f"boot {next(boots)}"
        monkeypatch.setattr(disk, "boot", lambda: name)

    start()
    return start


def tell(library: Library, *texts: str, key: str | None = None, session: str | None = None) -> list[int]:
    turns = [Turn(text, time=DAY, key=key, session=session) for text in texts]
    return [place.seq for place in library.record(turns)]


def said(root: Path) -> list[str]:
    return [place.text for place in Library(root).view().entries("evidence")]


def at_write(path: Path, act: Callable[[Call], Any]) -> Hook:
    """Do something in the place of the write to one file."""
    opened: set[int] = set()

    def hook(call: Call) -> Any:
        if call.name == "open_append":
            descriptor = call()
            (opened.add if call.names(path) else opened.discard)(descriptor)
            return descriptor
        return act(call) if call.name == "write" and call.args[0] in opened else call()

    return hook


def killed(root: Path, path: str, how: Callable[[Call], Any], act: Callable[[Library], object]) -> None:
    """Die at the write to a file, as `how` leaves it."""

    def die(call: Call) -> None:
        how(call)
        raise Crash

    library = Library(root)
    with hooked(at_write(root / path, die)), pytest.raises(Crash):
        act(library)


def draw(library: Library) -> None:
    (place,) = library.view().uncited()
    library.apply(Plan(adds=(NewEntry("Drinks coffee", (place.seq,)),)))


def append(path: Path, data: bytes) -> bytes:
    """A person, or a disk, leaves these bytes at the end of a file; gives all that it holds then."""
    with path.open("ab") as file:
        file.write(data)
    return path.read_bytes()


# ── after a kill ────────────────────────────────────────────────────────────────────────────────


def test_half_an_append_is_taken_back_before_a_library_that_is_open_writes(root: Path) -> None:
    other = Library(root)
    killed(root, SAID, Call.half, lambda library: tell(library, "I was about to say"))
    tell(other, "Something else")
    assert said(root) == ["I drink tea", "Perhaps", "Something else"]


def test_half_an_append_behind_an_open_line_leaves_that_line_as_it_was_typed(root: Path) -> None:
    typed = append(root / "CURRENT.md", b"- typed, and no newline")
    killed(root, "CURRENT.md", Call.half, draw)
    assert (root / "CURRENT.md").read_bytes().startswith(typed + b"\n- <")
    Library(root)
    assert (root / "CURRENT.md").read_bytes() == typed


def test_what_a_person_wrote_where_an_append_should_have_come_stays(root: Path) -> None:
    killed(root, "CURRENT.md", lambda call: None, draw)
    typed = append(root / "CURRENT.md", b"- typed by hand\n")
    Library(root)
    assert (root / "CURRENT.md").read_bytes() == typed


def test_an_import_that_a_full_disk_stops_leaves_nothing(root: Path) -> None:
    library = Library(root)
    tell(library, "one", session="a")
    tell(library, "two", session="b")
    before = {path: path.read_bytes() for path in (root / "evidence").iterdir()}

    def fail(call: Call) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    turns = [Turn("three", time=DAY, session="a"), Turn("four", time=DAY, session="b")]
    with hooked(at_write(root / f"evidence/{DAY}-b.md", fail)), pytest.raises(LibraryError):
        library.record(turns)
    assert {path: path.read_bytes() for path in (root / "evidence").iterdir()} == before


# ── after a loss of power ───────────────────────────────────────────────────────────────────────


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", [SAID, "CURRENT.md"])
@pytest.mark.parametrize("tail", TORN)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_a_torn_tail_is_cut_after_a_boot_and_kept_aside(
    root: Path, restart: Restart, path: str, tail: bytes, bom: bytes
) -> None:
    before = bom + (root / path).read_bytes()
    (root / path).write_bytes(before + tail)
    restart()
    Library(root)
    assert (root / path).read_bytes() == before
    (aside,) = (root / ".infinimem/conflicts").iterdir()
    assert aside.read_bytes() == tail


def test_a_torn_tail_is_left_alone_as_long_as_the_machine_runs(root: Path, restart: Restart) -> None:
    tell(Library(root), "now")
    torn = append(root / SAID, TORN[0])
    Library(root)
    assert (root / SAID).read_bytes() == torn


@pytest.mark.sample(2)
@pytest.mark.parametrize("typed", [b"- call Bo", b"Some prose", b"  more of it"])
def test_what_a_person_typed_without_a_newline_outlives_a_boot(
    root: Path, restart: Restart, typed: bytes
) -> None:
    text = append(root / "CURRENT.md", typed)
    restart()
    Library(root)
    assert (root / "CURRENT.md").read_bytes() == text


LONG = "What I said,\n\nat some length"


def test_a_turn_that_was_cut_at_a_line_s_end_is_recorded_whole_when_it_comes_again(
    root: Path, restart: Restart
) -> None:
    library = Library(root)
    tell(library, LONG, key="long")
    (root / SAID).write_bytes(b"".join((root / SAID).read_bytes().splitlines(keepends=True)[:-2]))
    assert said(root)[-1] == "What I said,"
    restart()
    assert len(tell(Library(root), LONG, key="long")) == 1
    assert said(root)[-2:] == ["What I said,", LONG]
    assert tell(Library(root), "Perhaps", key="second") == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [LONG, LONG[:10], "Something else, that is longer than what was said"])
def test_a_turn_that_is_whole_after_a_boot_is_not_recorded_again(
    root: Path, restart: Restart, text: str
) -> None:
    tell(Library(root), LONG, key="long")
    restart()
    assert tell(Library(root), text, key="long") == []
    assert said(root)[-1] == LONG


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize("opening", ["sound", "refused", "unknown boot", "garbled"])
def test_no_seq_is_given_again_where_a_boot_took_the_newest_hint(
    root: Path, restart: Restart, opening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(root)
    tell(library, "one")
    hint = (root / ".infinimem/seq.given").read_bytes()
    given = tell(library, "two", "three", session="gone")
    (root / f"evidence/{DAY}-gone.md").unlink()
    (root / ".infinimem/seq.given").write_bytes(hint)
    restart()
    if opening == "unknown boot":
        monkeypatch.setattr(disk, "boot", lambda: "")
    if opening == "garbled":
        (root / ".infinimem/seq.given").write_text(f"1x {disk.boot()}\n")
    with hooked(fail(1, errno.EROFS, onward=True) if opening == "refused" else nothing):
        library = Library(root)
    assert tell(library, "four")[0] > max(given)


def test_a_lost_mark_does_not_give_the_seq_of_a_line_that_a_person_deleted(root: Path) -> None:
    library = Library(root)
    (line,) = library.view().buffer.entries
    draw(library)
    deleted = library.view().buffer.entries[-1].seq
    assert deleted > line.seq
    kept = (root / "CURRENT.md").read_bytes().splitlines(keepends=True)[:-1]
    (root / "CURRENT.md").write_bytes(b"".join(kept))
    (root / ".infinimem/seq").unlink()
    assert tell(Library(root), "later")[0] > deleted


# ── replies that were refused ───────────────────────────────────────────────────────────────────


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return init(tmp_path / "memory")


def refuse(library: Library, count: int) -> None:
    replies = [RejectedReply("extract", str(number), ("EMPTY",)) for number in range(count)]
    keep_replies(library.files, replies, "2025-05-01T09:00:00Z")


def test_the_newest_hundred_refused_replies_stay(library: Library) -> None:
    for number in (60, 60, 60, KEPT + 7):
        refuse(library, number)
    kept = sorted((library.root / REJECTED).iterdir())
    assert len(kept) == KEPT
    assert kept[0].name == "000188-extract.txt"
    assert kept[0].read_text().endswith("\n7\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["make_folder", "open_new", "write", "unlink", "sync_folder"])
def test_a_disk_that_refuses_them_stops_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fails(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, call, fails)
    refuse(library, KEPT + 2)


def test_what_a_model_said_wrongly_is_there_to_read_and_no_tool_shows_it(tmp_path: Path) -> None:
    llm = ScriptedLLM({"extract": ["Sorry, quuxley.", '{"entries": []}']})
    memory = open_memory(tmp_path / "m", model=llm, create=True)
    memory.observe([Turn("Thanks!")])
    (path,) = (tmp_path / "m" / REJECTED).iterdir()
    assert "reason: JSON_PARSE_FAIL" in path.read_text()
    assert path.read_text().endswith("Sorry, quuxley.\n")
    assert memory.doctor() == []
    for scope in ("evidence", "journal", "all"):
        assert memory.tools.call("grep", {"pattern": "quuxley", "scope": scope})["matches"] == []
    assert memory.retrieve("quuxley").items == ()
