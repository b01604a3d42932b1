"""What the system tells of a folder's changes, and how long that is relied on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_work import copy
from fault_work import prepared as prepared
from freshness_library import Reader

from infinimem.store.freshness import BOUND
from infinimem.store.library import Library
from infinimem.store.watcher import GRACE, MANY, ChangeSet, Watcher
from infinimem.store.watching import REST

PATIENCE = 60.0
"""Seconds to wait for what comes in some milliseconds on a machine with nothing else to do."""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copy(prepared, tmp_path / "m")


# ── how a library uses it ───────────────────────────────────────────────────────────────────────


def watched(root: Path) -> Reader:
    """A reader whose watcher is relied on; its clock stands still after that."""
    reader = Reader(root, starts=True)
    reader.look()
    assert not reader.watcher.started  # most processes end before it would be of use
    reader.wait(BOUND + 1)
    reader.look()

    def sound() -> bool:
        before = reader.scans
        reader.wait(BOUND + 1)
        reader.look()
        return reader.scans == before

    until(sound)
    return reader


def test_of_what_is_watched_only_that_is_looked_at_which_is_told(root: Path) -> None:
    reader = watched(root)
    before = reader.scans
    (root / "note.md").write_text("x")
    assert reader.wrong() == {"note"}
    reader.watcher.tell("note.md")
    assert reader.wrong() == set()
    (root / "note.md").rename(root / "renamed.md")
    reader.watcher.tell("note.md")
    reader.watcher.tell("renamed.md")
    reader.wait(BOUND + 1)
    assert reader.wrong() == set()
    assert reader.scans == before


def test_of_a_folder_that_is_told_all_is_looked_at(root: Path) -> None:
    reader = watched(root)
    before = reader.scans
    (root / "a/b").mkdir(parents=True)
    for name in ("a/b/one.md", "a/two.md", "a-three.md", "a0.md"):
        (root / name).write_text("x")
        reader.watcher.tell(name)
    assert reader.wrong() == set()
    (root / "a").rename(root / "c")
    reader.watcher.tell("a", is_folder=True)
    reader.watcher.tell("c", is_folder=True)
    assert reader.wrong() == set()
    assert reader.scans == before


@pytest.mark.parametrize("path", ["x.txt", ".obsidian/x.md", ".git"])
def test_what_is_no_document_is_not_told(root: Path, path: str) -> None:
    watcher = Watcher(root)
    watcher.tell(path, is_folder=path == ".git")
    assert watcher.take() == ChangeSet()


def test_after_a_loss_all_is_looked_at_and_once_more_a_little_later(root: Path) -> None:
    """Folders that came meanwhile are watched only after the loss was told."""
    reader = watched(root)
    (root / "note.md").write_text("x")
    reader.watcher.lose()
    assert reader.wrong() == set()
    (root / "note.md").write_text("xy")
    reader.wait(GRACE)
    until(lambda: reader.wrong() == set())
    assert reader.watcher.living


def test_too_much_to_remember_is_a_loss(root: Path) -> None:
    watcher = Watcher(root)
    for number in range(MANY + 1):
        watcher.tell(f"n{number}.md")
    assert watcher.take() == ChangeSet(lost=True)


@pytest.mark.parametrize("how", ["never starts", "dies", "misses a change"])
def test_a_watcher_that_does_not_watch_is_given_up(root: Path, how: str) -> None:
    reader = Reader(root) if how == "never starts" else watched(root)
    if how == "dies":
        reader.watcher.lives = False
    elif how == "misses a change":
        (root / "missed.md").write_text("x")
        reader.wait(REST * 100)
        until(lambda: reader.wrong() == set())  # the look at everything found it
        reader.wait(GRACE + 1)
    else:
        reader.wait(BOUND + 1)
        reader.look()
    for number in range(3):
        (root / "note.md").write_text(f"{number}" * number)
        reader.wait(BOUND + 0.001)
        assert reader.wrong() == set()
    assert not reader.watcher.living
    assert reader.watcher.started == 1


def test_what_was_told_and_known_is_not_missed(root: Path) -> None:
    """Each of these happens while the folder is looked at; none says that the watcher is deaf."""
    reader = watched(root)
    watcher = reader.watcher
    watcher.tell("before.md")
    watcher.listen()
    watcher.tell("during.md")
    watcher.tell("folder", is_folder=True)
    watcher.take()
    watcher.report(["before.md", "during.md", "folder/x.md", "late.md"], expected=True)
    watcher.tell("late.md")
    reader.wait(GRACE + 1)
    assert not watcher.deaf
    watcher.listen()
    watcher.report(["never.md"], expected=True)
    assert not watcher.deaf
    reader.wait(GRACE + 1)
    assert watcher.deaf


# ── the real one ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def real(root: Path) -> Iterator[Watcher]:
    watcher = Watcher(root)
    if not watcher.start():
        pytest.skip("this system has no more watches to give")
    yield watcher
    watcher.stop()
    assert not watcher.living


def test_it_tells_what_people_do(root: Path, real: Watcher) -> None:
    told: set[str] = set()

    def hears(*names: str) -> None:
        def heard() -> bool:
            real.wait(0.1)
            now = real.take()
            told.update(now.paths, now.folders)
            return told >= set(names)

        until(heard)
        told.clear()

    (root / "note.md").write_text("x")
    hears("note.md")
    with (root / "note.md").open("a") as file:
        file.write("more")
        file.flush()
        hears("note.md")
    os.utime(root / "note.md", ns=(0, 0))
    hears("note.md")
    (root / "note.md").rename(root / "other.md")
    hears("note.md", "other.md")
    (root / ".swap").write_text("y")
    (root / ".swap").rename(root / "other.md")
    hears("other.md")
    (root / "other.md").unlink()
    hears("other.md")
    (root / "deep/er").mkdir(parents=True)
    hears("deep/")
    (root / "deep/er/note.md").write_text("x")
    hears("deep/er/note.md")
    (root / "deep").rename(root / "down")
    hears("deep/", "down/")


def test_a_library_hears_of_a_hand_edit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infinimem.store.freshness.LARGE", 1)
    library = Library(root)
    library.fresh.wait(0.01)
    for number in range(3):
        (root / "topics/home.md").write_text(f"# Edit {number}\n")
        until(lambda number=number: f"Edit {number}" in library.view().document("topics/home").body)  # type: ignore[misc]
    library.fresh.stop()


def test_nothing_watches_in_a_forked_child(real: Watcher) -> None:
    if hasattr(os, "fork") and sys.version_info < (3, 12):  # later ones warn of forking with threads
        child = os.fork()
        if not child:
            os._exit(int(real.living))
        assert os.waitpid(child, 0)[1] == 0
    assert real.living


OVERFLOW = Path("/proc/sys/fs/inotify/max_queued_events")
CHILD = """
import json, sys, time
from pathlib import Path
from infinimem.store.watcher import Watcher
watcher = Watcher(Path(sys.argv[1]))
print(json.dumps(watcher.start()), flush=True)
sys.stdin.readline()
deadline = time.monotonic() + 60
while not (lost := watcher.take().lost) and time.monotonic() < deadline:
    watcher.wait(0.1)
print(json.dumps(lost), flush=True)
"""


def test_events_that_the_kernel_dropped_are_a_loss(root: Path) -> None:
    """The watching process is stopped until the kernel's queue is full."""
    if not OVERFLOW.exists() or (most := int(OVERFLOW.read_text())) > 50_000:
        pytest.skip("no queue of the kernel's that could be filled in reasonable time")
    (root / "one.md").write_text("x")
    (root / "two.md").write_text("x")
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        assert json.loads(child.stdout.readline()) is True
        child.send_signal(signal.SIGSTOP)
        for number in range(2 * most):  # it may read some before it stops; equal events in a row are one
            os.utime(root / ("one.md", "two.md")[number % 2])
        os.utime(root / "one.md")
        child.send_signal(signal.SIGCONT)
        print(file=child.stdin, flush=True)
        assert json.loads(child.stdout.readline()) is True
