"""A library, sessions of an agent program, and the process that answers hooks, for tests."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from infinimem import Memory, Turn, open_memory
from infinimem.hooks import Event, answer
from infinimem.hooks.answer import Rendezvous, rendezvous, serve

FACTS = (
    "The deploy key of Heron lies in the safe.",
    "Heron runs on port 8443.",
    "Nora is allergic to cashews.",
    "Pepper sees the vet on 3 May.",
    "The choir meets on Mondays.",
)


def facts(library: Path) -> Memory:
    """A library in which `FACTS` are remembered, offline."""
    memory = open_memory(library, model="offline", create=True)
    memory.observe([Turn(text, session="s0", time="2025-03-03", key=text) for text in FACTS])
    return memory


def said(event: str, cwd: Path, **more: Any) -> str:
    """A hook's input, with the fields that Claude Code gives to all."""
    common = {
        "session_id": "abc123",
        "transcript_path": str(cwd / "none.jsonl"),
        "cwd": str(cwd),
        "hook_event_name": event,
    }
    return json.dumps({**common, **more})


def transcript(path: Path, *texts: str, session: str = "abc123") -> Path:
    """A session's log: the person and the assistant in turn, and what a hook put in."""
    lines = [
        {
            "type": ("user", "assistant")[number % 2],
            "sessionId": session,
            "uuid": f"{session}-{number}",
            "timestamp": f"2025-04-01T09:{number:02}:00Z",
            "message": {"role": ("user", "assistant")[number % 2], "content": text},
        }
        for number, text in enumerate(texts)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@contextmanager
def meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of the test's own, with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="im-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setattr(answer, "PATIENCE", 60.0)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def serving(library: Path, first: Event) -> Iterator[None]:
    """The process that answers, as a thread, from its first answer on; it ends when its library is gone."""
    place = rendezvous(library)
    assert place is not None
    thread = threading.Thread(target=serve, args=(library, first))
    thread.start()
    while not answered(place.socket) and thread.is_alive():
        pass
    try:
        yield
    finally:
        end(place, library, thread)


def end(place: Rendezvous, library: Path, thread: threading.Thread | None = None) -> None:
    """End the process that answers: the next question finds its library gone."""
    away = library.rename(library.with_name(f"{library.name}-away"))
    while answered(place.socket):
        pass
    if thread:
        thread.join()
    away.rename(library)


def answered(path: Path) -> bool:
    """Whether somebody takes an empty question and hangs up."""
    with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
        line.connect(str(path))
        line.shutdown(socket.SHUT_WR)
        return line.recv(1) == b""
    return False
