"""What a hook does in its own process, which the person waits for, and in the two that it starts.

In: the JSON that Claude Code gives each hook on standard input (code.claude.com/docs/en/hooks, "Hook input").
To open a library takes longer than a person should wait, so one process (`serve LIBRARY`) holds it open and
answers through a socket; another (`remember LIBRARY [--create]`) brings a session's log in. They have nobody
to talk to: whatever fails, fails in silence. They meet at a socket and two locks, in a folder of this user
alone, where nothing that was said is ever written. A hook imports little.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import infinimem
from infinimem.errors import InfinimemError
from infinimem.hooks import REMEMBERS, Event, given
from infinimem.user_folders import SETTINGS

if TYPE_CHECKING:
    from subprocess import Popen

LONGEST = 100  # bytes of a socket's path; systems allow 104 to 108
PATIENCE = 1.0  # seconds that a hook waits for memory, and memory for a question; the rest comes later
WAKING = 1.5
"""Seconds that a prompt waits for a process that is only starting: the next one is too late for it."""
IDLE = 1800.0  # seconds without a question after which the process that answers ends
LONGEST_MESSAGE = 1 << 20  # bytes of a question, and of its answer
STILL, WRITTEN = 0.5, 5.0
"""Seconds without a change after which a log counts as written; seconds that it is waited for."""


class Rendezvous(NamedTuple):
    """The files of one library; the locks are held by the process that answers and the one that writes."""

    socket: Path
    serving: Path
    remembering: Path


def rendezvous(library: Path) -> Rendezvous | None:
    """Return a library's meeting place; None if its folder is someone else's."""
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(named) if Path(named).is_absolute() else Path("/tmp")
    folder = base / f"infinimem-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return None
    changed = Path(str(infinimem.__file__)).stat().st_mtime_ns
    what = f"{library.resolve()}\0{changed}\0{infinimem.__file__}"
    name = hashlib.sha256(os.fsencode(what)).hexdigest()[:16]
    made = Rendezvous(*(folder / f"{name}.{kind}" for kind in ("sock", "serving", "remembering")))
    return made if len(os.fsencode(made.socket)) <= LONGEST else None


@contextmanager
def held(path: Path, wait: bool) -> Iterator[int | None]:
    """Yield the descriptor of a lock, which any process that is given it holds as well, or None if it is
    taken and not waited for; the kernel frees that of a killed process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)


def answer(event: Event, library: Path, is_default: bool) -> str:
    """Do what an event asks for; return what the hook prints, JSON with recalled memory or nothing.
    ValueError if what is named is no library; one that nobody named is made when something is to be
    remembered."""
    if event.hook_event_name in REMEMBERS:
        if event.transcript_path and Path(event.transcript_path).is_file():  # else nothing was said in it
            if not is_default and not (library / SETTINGS).is_file():
                raise ValueError(f"{library} is not a library; run: infinimem init {library}")
            start("remember", library, event, *(["--create"] if is_default else [])).returncode = 0
        return ""
    if not library.is_dir() and not is_default:
        raise ValueError(f"there is no folder {library}")
    return _recalled(event, library) if library.is_dir() else ""


def _recalled(event: Event, library: Path) -> str:
    """Return what is printed, if a warm process gives it in time; start one if there is none."""
    place = rendezvous(library)
    if place is None:
        return ""
    until = time.monotonic() + (WAKING if event.prompt else 0)
    child = None
    try:
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as line:
                    line.settimeout(PATIENCE)
                    line.connect(str(place.socket))
                    line.sendall(event.as_json())
                    line.shutdown(socket.SHUT_WR)
                    return _message(line).decode()
            except TimeoutError:
                return ""
            except OSError:  # nobody there yet
                if child is None:
                    with held(place.serving, wait=False) as lock:  # the new process has it from its start
                        child = None if lock is None else start("serve", library, event, keep=lock)
                if (child and child.poll()) or time.monotonic() >= until:  # it failed, or takes too long
                    return ""
                time.sleep(0.02)
    finally:
        if child:
            child.returncode = 0  # nobody waits for it


def _message(line: socket.socket) -> bytes:
    """Read all that comes, in time; ValueError if it is too long."""
    until, message = time.monotonic() + PATIENCE, bytearray()
    line.settimeout(PATIENCE)
    while part := line.recv(1 << 16):
        message += part
        if len(message) > LONGEST_MESSAGE:
            raise ValueError("too long")
        line.settimeout(max(0.001, until - time.monotonic()))
    return bytes(message)


def start(what: str, library: Path, event: Event, *options: str, keep: int | None = None) -> Popen[bytes]:
    """Start a process of this file that outlives the hook and the program that ran it."""
    import subprocess  # seldom needed, and slow to import

    # Not in the session's folder, and with -P: what lies there must not be imported.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "infinimem.hooks.answer", what, str(library.resolve()), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        pass_fds=() if keep is None else (keep,),
    )
    assert child.stdin is not None
    with child.stdin as pipe:
        pipe.write(event.as_json())
    return child


def serve(library: Path, first: Event) -> None:
    """Answer until nobody asked for `IDLE` seconds. The `first` event found nobody, so a session's start is
    owed to it, and an offer; who starts this holds the lock, and gives it."""
    from infinimem.hooks.recall import Recall, offer
    from infinimem.memory import open_memory

    place = rendezvous(library)
    if place is None:
        return
    memory = open_memory(library, model="offline")
    recall, is_new = Recall(memory), True
    recall.preview(first.prompt or first.cwd, first.cwd)  # builds the index
    if recall.text(first):
        recall.missed(first)
    place.socket.unlink(missing_ok=True)  # of one that was killed
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as ending:
        listener.bind(str(place.socket))  # not before: whoever connects is answered at once
        ending.callback(place.socket.unlink, missing_ok=True)
        listener.listen(16)
        listener.settimeout(IDLE)
        while library.is_dir():
            try:
                line, _ = listener.accept()
            except TimeoutError:
                return
            with line, suppress(OSError, ValueError, InfinimemError):  # one that left, or asked nonsense
                event = given(_message(line))
                text, is_new = recall.text(event), is_new or event.source == "startup"
                shown = {"hookEventName": event.hook_event_name, "additionalContext": text}
                printed: dict[str, object] = {"hookSpecificOutput": shown} if text else {}
                if is_new and (offered := offer(memory)):
                    printed |= {"systemMessage": offered}
                try:
                    line.sendall(json.dumps(printed).encode() if printed else b"")
                    is_new = False
                except OSError:
                    if text:
                        recall.missed(event)


def remember(library: Path, transcript: Path, create: bool = False) -> int:
    """Bring in what a log holds that is new, and return how many turns that is. InfinimemError if log,
    library or model is not usable: what was recorded is drawn from the next time."""
    from infinimem.importers import survey
    from infinimem.memory import open_memory

    until, size = time.monotonic() + WRITTEN, -1
    while (now := transcript.stat().st_size) != size and time.monotonic() < until:
        size = now
        time.sleep(STILL)
    place = rendezvous(library)
    with held(place.remembering, wait=True) if place else nullcontext():
        memory = open_memory(library, create=create)
        recorded = sum(len(memory.record(batch)) for batch in survey(transcript, "claude-code").batches())
        left = memory.library.settings.hooks.daily_tokens - memory.spent_today()
        if left > 0:  # what is only recorded is drawn from on another day
            memory.observe((), max_tokens=left)
    return recorded


if __name__ == "__main__":
    try:
        what, library, *options = sys.argv[1:]
        event = given(sys.stdin.buffer.read())
        if what == "serve":
            serve(Path(library), event)
        else:
            os.nice(10)  # the person goes on working
            remember(Path(library), Path(event.transcript_path), "--create" in options)
    except Exception:
        sys.exit(1)
