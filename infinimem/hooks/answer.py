"""What a hook does in its own process, which the person waits for: so it imports little.

In: the JSON that Claude Code gives each hook on standard input (code.claude.com/docs/en/hooks, "Hook input").
A library's processes meet at a socket and two locks, in a folder of this user alone; nothing that was said is
ever written there.
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
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import infinimem
from infinimem import user_folders
from infinimem.user_folders import SETTINGS

if TYPE_CHECKING:
    from subprocess import Popen

RECALLS = ("SessionStart", "UserPromptSubmit")
REMEMBERS = ("PreCompact", "SessionEnd")
EVENTS = (*RECALLS, *REMEMBERS)

PROMPT_LENGTH = 2000
"""Characters of a prompt that are searched for: half from its start, half from its end, where people ask."""
_FIELDS = {
    "name": "hook_event_name",
    "session": "session_id",
    "cwd": "cwd",
    "prompt": "prompt",
    "transcript": "transcript_path",
    "source": "source",
}
"""Of an event, as the input calls them."""
LONGEST = 100  # bytes of a socket's path; systems allow 104 to 108
PATIENCE = 1.0  # seconds that a hook waits for memory; what comes later comes with the next prompt
WAKING = 1.5
"""Seconds that a prompt waits for a process that is only starting: later prompts come too late for what the
start of the session missed."""


class Event(NamedTuple):
    """A hook's occasion, one of `EVENTS`, with what the input says of it: the session's id, folder and log,
    and what the person typed, its middle left out where it is long."""

    name: str
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    transcript: str = ""
    source: str = ""

    def as_json(self) -> bytes:
        return json.dumps({theirs: getattr(self, ours) for ours, theirs in _FIELDS.items()}).encode()


def given(data: bytes, name: str | None = None) -> Event:
    """Return the event of a hook's input; `name` replaces the one that it gives. ValueError, in one line, if
    there is no such event, or the input is not a JSON object of texts."""
    try:
        found = json.loads(data) if name is None or name in EVENTS else {}
    except (ValueError, RecursionError) as error:
        raise ValueError("the hook's input is not JSON") from error
    if not isinstance(found, dict):
        raise ValueError("the hook's input is not a JSON object")
    values = {ours: found.get(theirs) or "" for ours, theirs in _FIELDS.items()}
    if wrong := [name for name, value in values.items() if not isinstance(value, str)]:
        raise ValueError(f"{_FIELDS[wrong[0]]} of the hook's input is not text")
    event = Event(**{**values, "name": values["name"] if name is None else name})
    if event.name not in EVENTS:
        raise ValueError(f"no hook for {event.name or 'nothing'}; use one of {', '.join(EVENTS)}")
    if len(event.prompt) > PROMPT_LENGTH:
        half = PROMPT_LENGTH // 2
        return event._replace(prompt=f"{event.prompt[:half]} {event.prompt[-half:]}")
    return event


class Rendezvous(NamedTuple):
    """The files of one library; the locks are held by the process that answers and the one that writes."""

    socket: Path
    serving: Path
    remembering: Path


def rendezvous(library: Path) -> Rendezvous | None:
    """Return a library's meeting place; None if its folder is someone else's."""
    folder = _folder()
    if folder is None:
        return None
    changed = Path(str(infinimem.__file__)).stat().st_mtime_ns
    name = _digest(f"{library.resolve()}\0{changed}\0{infinimem.__file__}")
    made = Rendezvous(*(folder / f"{name}.{kind}" for kind in ("sock", "serving", "remembering")))
    return made if len(os.fsencode(made.socket)) <= LONGEST else None


def first_today(library: Path) -> bool:
    """Return whether this is the first call of the day for a library; True if that cannot be noted."""
    folder = _folder()
    return folder is None or user_folders.first_today(folder / f"{_digest(str(library.resolve()))}.told")


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def _folder() -> Path | None:
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(named) if Path(named).is_absolute() else Path("/tmp")
    folder = base / f"infinimem-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if ours else None


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
    ValueError if what is named is no library; one that nobody named is made when
    something is to be remembered."""
    if event.name not in RECALLS:
        if not event.transcript or not Path(event.transcript).is_file():
            return ""  # a session in which nothing was said has none
        if not is_default and not (library / SETTINGS).is_file():
            raise ValueError(f"{library} is not a library; run: infinimem init {library}")
        start("remember", library, event, *(["--create"] if is_default else [])).returncode = 0
        return ""
    if not library.is_dir():
        if is_default:
            return ""
        raise ValueError(f"there is no folder {library}")
    text = _recalled(event, library)
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})


def _recalled(event: Event, library: Path) -> str:
    """Return memory for an event, if a warm process gives it in time; start one if there is none."""
    place = rendezvous(library)
    if place is None:
        return ""
    until = time.monotonic() + (WAKING if event.prompt else 0)
    child = None
    try:
        while True:
            try:
                return _asked(place, event)
            except TimeoutError:
                return ""
            except OSError:  # nobody there yet
                if child is None:
                    with held(place.serving, wait=False) as lock:  # the new process has it from its start
                        child = None if lock is None else start("serve", library, event, "--alone", keep=lock)
                if (child and child.poll()) or time.monotonic() >= until:  # it failed, or takes too long
                    return ""
                time.sleep(0.02)
    finally:
        if child:
            child.returncode = 0  # nobody waits for it


def _asked(place: Rendezvous, event: Event) -> str:
    until = time.monotonic() + PATIENCE
    said = bytearray()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE)
        line.connect(str(place.socket))
        line.sendall(event.as_json())
        line.shutdown(socket.SHUT_WR)
        while part := line.recv(1 << 16):
            said += part
            line.settimeout(max(0.001, until - time.monotonic()))
    return said.decode()


def start(what: str, library: Path, event: Event, *options: str, keep: int | None = None) -> Popen[bytes]:
    """Start a process of processes.py that outlives the hook and the program that ran it."""
    import subprocess  # seldom needed, and slow to import

    # Not in the session's folder, and with -P: what lies there must not be imported.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "infinimem.hooks.processes", what, str(library.resolve()), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        pass_fds=() if keep is None else (keep,),
    )
    assert child.stdin is not None
    with child.stdin as told:
        told.write(event.as_json())
    return child
