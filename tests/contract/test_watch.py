"""`infinimem watch`: a process that reports what changes in a folder, and signs what people type there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from threading import Timer

import pytest
from cli_runner import Shell

from infinimem import Turn, open_memory
from infinimem.watch import DocumentChange, watch

PATIENCE = 60.0
"""Seconds to wait for what takes a second on a machine with nothing else to do."""


def _interruptible() -> None:
    """What runs in the background is started with Ctrl-C ignored, and so would be what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def watching(root: Path, *options: str, end: int = signal.SIGINT) -> Iterator[subprocess.Popen[str]]:
    """A process that watches; it is interrupted at the end, says nothing of it and ends well."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("INFINIMEM_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "infinimem", "--library", str(root), "watch", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**kept, "HOME": str(root.parent)},
        preexec_fn=_interruptible,
    )
    guard = Timer(PATIENCE, process.kill)
    guard.start()
    with process:
        assert process.stderr
        assert "--json" in options or "Ctrl-C ends it" in process.stderr.readline()
        yield process
        process.send_signal(end)
        assert (process.wait(), process.stderr.read()) == (0, "")
    guard.cancel()


def until(process: subprocess.Popen[str], wanted: str) -> None:
    assert process.stdout
    assert any(re.fullmatch(wanted, line) for line in process.stdout), f"{wanted!r} was not reported"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with open_memory(tmp_path / "m", model="offline", create=True) as memory:
        memory.observe([Turn("I drink green tea.", session="s", time="2025-03-02")])
    return tmp_path / "m"


def test_it_reports_and_signs_until_it_is_interrupted(root: Path) -> None:
    """What people and other processes save, create, delete and rename is reported; typed lines are signed."""
    with watching(root) as process:
        (root / "my notes.md").write_text("x\n")
        until(process, "created\tmy notes\n")
        (root / "my notes.md").rename(root / "other.md")
        until(process, "renamed\tother\tmy notes\n")
        (root / "other.md").unlink()
        until(process, "deleted\tother\n")
        (root / "topics/tea.md").write_text("# Tea\n- Green, never black\n")
        until(process, "created\ttopics/tea\n")
        until(process, "stamped\ttopics/tea\tjournal/0001-stamp-[0-9a-f]{6}\n")
        assert (root / "topics/tea.md").read_text().endswith("source=human> Green, never black\n")
        until(process, "saved\ttopics/tea\n")
        open_memory(root, model="offline").observe([Turn("I have a cat.", session="s", time="2025-03-02")])
        until(process, "saved\tCURRENT\n")


def test_a_folder_of_notes_is_not_written_to(tmp_path: Path, shell: Shell) -> None:
    """In a folder of notes it only reports; with `--json` an object a line."""
    shell("--library", "nowhere", "watch").failed(1, "nowhere")
    notes = tmp_path / "notes"
    (notes / "topics").mkdir(parents=True)
    (notes / "CURRENT.md").write_text("- mine\n")
    with watching(notes, "--json", end=signal.SIGTERM) as process:
        assert process.stdout
        while not select([process.stdout], [], [], 0.5)[0]:  # it does not say when it begins
            (notes / "topics/tea.md").write_text("- Green\n")
        told = json.loads(process.stdout.readline())
        assert (told.pop("event") in ("created", "saved"), told) == (True, {"doc_id": "topics/tea"})
        time.sleep(1.5)  # long enough to sign, were it to
    assert (notes / "topics/tea.md").read_text() == "- Green\n"
    assert sorted(path.name for path in notes.iterdir()) == ["CURRENT.md", "topics"]


def test_what_is_still_being_typed_is_not_signed(root: Path) -> None:
    """Quiet is counted from the last change of a topic."""
    now = [0.0]
    changes = watch(open_memory(root, model="offline"), clock=lambda: now[0])
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
    (root / "late.md").write_text("x")
    assert next(changes) == DocumentChange("created", "late")
    now[0] += 1.1
    change = next(changes)
    (receipt,) = (root / "journal").iterdir()
    assert change == DocumentChange("stamped", "topics/tea", receipt=f"journal/{receipt.stem}")
    changes.close()  # type: ignore[attr-defined]
    assert path.read_text().endswith("> Green at last\n")
