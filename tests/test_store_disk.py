"""A library's folder as others use it: file systems, threads, forks, odd names, planted machine state."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fault_disk import Crash
from fault_library import problems

from infinimem.errors import LibraryError
from infinimem.model import CURRENT, Move, NewEntry, Plan, Turn
from infinimem.store import disk
from infinimem.store.disk import At
from infinimem.store.folders import located, opened
from infinimem.store.library import Library, init
from infinimem.store.view import Applied, Rejected


@pytest.fixture(params=["in one step", "with hard links", "without"])
def places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[tuple[Path, At, At]]:
    """A folder, and two names in two folders of it."""

    def refuses(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param != "in one step":
        monkeypatch.setattr(disk, "_atomic_rename", lambda: None)  # private: no test mounts such a disk
    if request.param == "without":
        monkeypatch.setattr(os, "link", refuses)
    with located(tmp_path, "a/one", make=True) as one, located(tmp_path, "b/other", make=True) as other:
        (tmp_path / "a/one").write_text("1")
        yield tmp_path, one, other


def standing(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def test_a_file_is_put_where_none_is(places: tuple[Path, At, At]) -> None:
    root, one, other = places
    disk.put(one, other)
    assert standing(root) == {"b/other": "1"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["file", "link"])
def test_nothing_is_put_over_another(places: tuple[Path, At, At], kind: str) -> None:
    root, one, other = places
    (root / "b/mine").write_text("2")
    if kind == "file":
        (root / "b/other").write_text("2")
    else:
        (root / "b/other").symlink_to("mine")
    before = standing(root)
    with pytest.raises(FileExistsError):
        disk.put(one, other)
    assert standing(root) == before


def test_two_files_are_exchanged(places: tuple[Path, At, At]) -> None:
    root, one, other = places
    (root / "b/other").write_text("2")
    disk.exchange(one, other)
    assert standing(root) == {"a/one": "2", "b/other": "1"}


def test_an_exchange_with_a_link_brings_in_nothing_from_behind_it(places: tuple[Path, At, At]) -> None:
    root, one, other = places
    (root / "secret").write_text("s")
    (root / "b/other").symlink_to("../secret")
    try:
        disk.exchange(one, other)
    except OSError:
        assert (root / "a/one").read_text() == "1"
    else:
        assert (root / "a/one").is_symlink()
    assert (root / "secret").read_text() == "s"


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "path", ["..", "a/..", "a/../b", "/b", "a//b", ".", "a/./b", "a\0b", "linked", "linked/b"]
)
def test_no_way_leads_out(tmp_path: Path, path: str) -> None:
    for name in ("a", "b", "a/b"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked").symlink_to("a")
    with pytest.raises(NotADirectoryError), opened(tmp_path, path, make=True):
        pass
    with pytest.raises(NotADirectoryError), located(tmp_path, f"{path}/new", make=True):
        pass
    assert not list(tmp_path.rglob("new"))


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


SECRET, PLANTED = b"a private line\n", b"planted\n"
OUTSIDE = "../outside"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def step(path: str, slot: str, old: str = "-", new: str = "-") -> dict[str, Any]:
    moves = {"gone": [], "come": [[7, "- <seq=7> planted", 0, ""]] if new != "-" else []}
    return {"path": path, "old": old, "new": new, "slot": slot, **moves}


SLOT = ".infinimem/tx/0001/1.bin"
NEW, OLD = sha(PLANTED), sha(SECRET)
STEPS = {
    "creates": step(f"{OUTSIDE}/new.md", SLOT, new=NEW),
    "replaces": step(f"{OUTSIDE}/secret.md", SLOT, OLD, NEW),
    "deletes": step(f"{OUTSIDE}/secret.md", SLOT, OLD),
    "fetches": step("topics/mine.md", f"{OUTSIDE}/secret.md", new=OLD),
    "fetches by an absolute path": step("topics/mine.md", "/ROOT/outside/secret.md", new=OLD),
    "writes what git runs": step(".git/hooks/post-commit", SLOT, new=NEW),
    "replaces settings": step("infinimem.toml", SLOT, "SETTINGS", NEW),
    "names no path": step("topics/\0.md", SLOT, new=NEW),
}


def transaction(root: Path, planted: dict[str, Any]) -> None:
    text = json.dumps({"steps": [planted], "notice": {}}).replace("/ROOT", str(root.parent))
    (root / ".git/hooks").mkdir(parents=True)
    (root / SLOT).parent.mkdir(parents=True)
    (root / SLOT).write_bytes(PLANTED)
    settings = sha((root / "infinimem.toml").read_bytes())
    (root / SLOT).with_name("manifest").write_text(text.replace("SETTINGS", settings))


def displaced(root: Path, kept: dict[str, Any]) -> None:
    folder = root / ".infinimem/displaced/0001"
    folder.mkdir(parents=True)
    (folder / "1.bin").write_bytes(PLANTED)
    (folder / "done").write_text(json.dumps({"steps": [kept], "notice": {}}))


def cuts(root: Path) -> None:
    data = SECRET[3:] + b"more"
    head = f"{disk.boot()}\n{OUTSIDE}/secret.md\n3 {len(data)}\n".encode()
    (root / ".infinimem/append").write_bytes(head + data)


PLANTS: dict[str, Callable[[Path], None]] = {
    **{name: partial(transaction, planted=planted) for name, planted in STEPS.items()},
    "fetches what was displaced": partial(displaced, kept=step("topics/mine.md", f"../{OUTSIDE}/secret.md")),
    "brings back what was displaced": partial(displaced, kept=step(f"{OUTSIDE}/new.md", SLOT, new=sha(b"x"))),
    "cuts": cuts,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("plant", PLANTS)
def test_it_leads_nowhere(tmp_path: Path, plant: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(SECRET)
    library = init(tmp_path / "memory")
    PLANTS[plant](library.root)
    (line,) = Library(library.root).record([Turn("hello")])
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret.md": SECRET}
    for path in library.root.rglob("*"):
        assert not path.is_file() or SECRET.strip() not in path.read_bytes(), path
        assert not path.is_file() or ".infinimem" in path.parts or PLANTED not in path.read_bytes(), path
    assert problems(library.root, {line.seq: "hello"}) == []


@pytest.mark.parametrize("name", ["lock", "append", "seq.given", ".infinimem.new"])
def test_nobody_waits_for_the_other_end_of_a_pipe(tmp_path: Path, name: str) -> None:
    library = init(tmp_path)
    library.record([Turn("hello")])
    (tmp_path / ".infinimem" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".infinimem" / name)

    def ended(*_: object) -> None:
        raise Crash("it waits")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(20)
    try:
        with suppress(LibraryError):
            Library(tmp_path).record([Turn("hello again")])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
