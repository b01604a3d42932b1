"""`infinimem watch`: a process that tells what changes in a folder, and signs what people type there."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from infinimem import Turn, open_memory
from infinimem.cli.app import app
from infinimem.memory import Memory
from infinimem.watch import DocumentChange, watch

PATIENCE = 60.0
"""Seconds to wait for what takes a second on a machine with nothing else to do."""


def _interruptible() -> None:
    """What runs in the background is started with Ctrl-C ignored, and so would be what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Watching:
    """A process that watches; what it told, in order."""

    def __init__(self, root: Path, *options: str) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("INFINIMEM_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "infinimem", "--library", str(root), "watch", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "HOME": str(root.parent)},
            preexec_fn=_interruptible,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.thread.join()
        with self.process:  # closes the pipes
            pass

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def begun(self) -> None:
        assert self.process.stderr is not None
        assert "Ctrl-C ends it" in self.process.stderr.readline()

    def until(self, wanted: str) -> None:
        """Wait for a line."""
        seen: list[str] = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                seen.append(self.lines.get(timeout=0.5))
            except queue.Empty:
                continue
            if seen[-1] == wanted:
                return
        raise AssertionError(f"{wanted!r} is not among {seen}")

    def end(self, by: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code and what it said of it."""
        assert self.process.stderr is not None
        self.process.send_signal(by)
        return self.process.wait(PATIENCE), self.process.stderr.read()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    memory.observe([Turn("I drink green tea.", session="s", time="2025-03-02")])
    return tmp_path / "m"


@pytest.fixture
def watching(request: pytest.FixtureRequest, root: Path) -> Iterator[Watching]:
    with Watching(root, *getattr(request, "param", ())) as found:
        yield found


def test_it_tells_and_signs_until_it_is_interrupted(root: Path, watching: Watching) -> None:
    watching.begun()
    (root / "my notes.md").write_text("x\n")
    watching.until("created\tmy notes\n")
    (root / "my notes.md").rename(root / "other.md")
    watching.until("renamed\tother\tmy notes\n")
    (root / "other.md").unlink()
    watching.until("deleted\tother\n")
    (root / "topics/tea.md").write_text("# Tea\n- Green, never black\n")
    watching.until("created\ttopics/tea\n")
    watching.until("stamped\ttopics/tea\tjournal/0001-stamp\n")
    text = (root / "topics/tea.md").read_text()
    assert text.endswith("source=human> Green, never black\n")
    watching.until("saved\ttopics/tea\n")
    assert watching.end() == (0, "")


@pytest.mark.parametrize("watching", [("--json", "-q")], indirect=True)
def test_as_json_it_tells_an_object_a_line(root: Path, watching: Watching) -> None:
    told: Mapping[str, Any] = {}
    number = 0
    while not told:  # it says nothing when it begins
        number += 1
        (root / "note.md").write_text("x" * number)
        try:
            told = json.loads(watching.lines.get(timeout=0.5))
        except queue.Empty:
            assert watching.process.poll() is None
    assert told in ({"event": "created", "doc_id": "note"}, {"event": "saved", "doc_id": "note"})
    assert watching.end(signal.SIGTERM) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_import_that_is_interrupted_is_no_failure(
    root: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numpy's turns what interrupts it into an ImportError."""

    def changes(_: Memory) -> Iterator[DocumentChange]:
        try:
            os.kill(os.getpid(), number)
            time.sleep(PATIENCE)
        except KeyboardInterrupt as error:
            raise ImportError("numpy") from error
        yield DocumentChange("saved", "note")

    monkeypatch.setattr("infinimem.watch.watch", changes)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert CliRunner().invoke(app, ["--library", str(root), "watch"]).exit_code == 0
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_what_other_processes_write_is_told(root: Path, watching: Watching) -> None:
    watching.begun()
    open_memory(root, model="offline").observe([Turn("I have a cat.", session="s", time="2025-03-02")])
    watching.until("saved\tCURRENT\n")


def test_in_a_folder_of_notes_it_only_tells(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "topics").mkdir(parents=True)
    (notes / "CURRENT.md").write_text("- mine\n")
    with Watching(notes) as watching:
        watching.begun()
        (notes / "topics/tea.md").write_text("- Green\n")
        watching.until("created\ttopics/tea\n")
        time.sleep(1.5)  # long enough to sign, were it to
        assert watching.end() == (0, "")
    assert (notes / "topics/tea.md").read_text() == "- Green\n"
    assert sorted(path.name for path in notes.iterdir()) == ["CURRENT.md", "topics"]


def test_where_there_is_no_library_it_says_so(tmp_path: Path) -> None:
    with Watching(tmp_path / "nowhere") as watching:
        assert watching.process.wait(PATIENCE) == 1
        assert watching.process.stderr is not None
        error = watching.process.stderr.read()
    assert watching.lines.empty()
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_what_is_still_being_typed_is_not_signed(root: Path) -> None:
    """Quiet is counted from the last change, whatever is saved in between."""
    memory, now = open_memory(root, model="offline"), [0.0]
    changes = watch(memory, clock=lambda: now[0])
    path = root / "topics/tea.md"
    for number in range(3):
        now[0] += 0.9
        path.write_text(f"# Tea\n- Green {number}\n")
        assert next(changes) == DocumentChange("saved" if number else "created", "topics/tea")
    now[0] += 0.9
    (root / "note.md").write_text("x")
    assert next(changes) == DocumentChange("created", "note")
    path.write_text("# Tea\n- Green at last\n")
    assert next(changes).event == "saved"
    now[0] += 1.1
    assert next(changes) == DocumentChange("stamped", "topics/tea", receipt="journal/0001-stamp")
    assert "Green at last" in path.read_text()
    changes.close()  # type: ignore[attr-defined]


def test_who_only_looks_signs_nothing(root: Path) -> None:
    """As a page in a browser does, however long it is quiet."""
    now = [0.0]
    changes = watch(open_memory(root, model="offline"), clock=lambda: now[0], signs=False)
    path = root / "topics/tea.md"
    path.write_text("# Tea\n- Green\n")
    assert next(changes) == DocumentChange("created", "topics/tea")
    for name in ("one", "two"):
        now[0] += 5
        (root / f"{name}.md").write_text("x")
        assert next(changes) == DocumentChange("created", name)
    changes.close()  # type: ignore[attr-defined]
    assert path.read_text() == "# Tea\n- Green\n"
