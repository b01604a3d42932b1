"""What the system tells of a folder's changes, and how long that is relied on."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_work import copy
from fault_work import prepared as prepared
from freshness_library import Reader, rest

from infinimem.store.freshness import BOUND, REST
from infinimem.store.watcher import Watcher

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


@pytest.fixture
def reader(root: Path) -> Reader:
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


def test_a_watcher_that_misses_an_edit_is_given_up(root: Path, reader: Reader) -> None:
    edit(root / "topics/home.md", age=4.0)
    reader.wait(REST)
    assert reader.wrong() == set()
    assert not reader.watcher.living
    edit(root / "topics/home.md")
    reader.wait(BOUND)
    assert reader.wrong() == set()


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


def test_nothing_watches_in_a_forked_child(real: Watcher) -> None:
    if hasattr(os, "fork") and sys.version_info < (3, 12):  # later ones warn of forking with threads
        child = os.fork()
        if not child:
            os._exit(int(real.living))
        assert os.waitpid(child, 0)[1] == 0
    assert real.living
