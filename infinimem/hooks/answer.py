"""The light half: what a hook does in its own process, which the person waits for."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.hooks.event import RECALLS, Event
from infinimem.hooks.rendezvous import Rendezvous, held, rendezvous
from infinimem.user_folders import SETTINGS

if TYPE_CHECKING:
    from subprocess import Popen

PATIENCE = 0.2
"""Seconds that a hook waits for memory; what comes later is not shown."""
WAKING = 1.5
"""Seconds that a prompt waits for a process that is only starting: later prompts come too late for what the
start of the session missed."""


def answer(event: Event, library: Path, is_default: bool) -> str:
    """Do what an event asks for.

    Args:
        event: what happened.
        library: its folder.
        is_default: nobody named it: it may be missing, and is made when something is to be remembered.

    Returns:
        What the hook prints: JSON with recalled memory, or nothing.

    Raises:
        ValueError: the library is none; says so in one line.
    """
    if event.name not in RECALLS:
        _remember(event, library, is_default)
        return ""
    if not library.is_dir():
        if is_default:
            return ""
        raise ValueError(f"there is no folder {library}")
    text = _recalled(event, library)
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})


def _remember(event: Event, library: Path, is_default: bool) -> None:
    if not event.transcript or not Path(event.transcript).is_file():
        return  # a session in which nothing was said has none
    if not is_default and not (library / SETTINGS).is_file():
        raise ValueError(f"{library} is not a library; run: infinimem init {library}")
    start("remember", library, event, *(["--create"] if is_default else [])).returncode = 0


def _recalled(event: Event, library: Path) -> str:
    """Memory for an event, if a warm process gives it in time; one is started where there is none."""
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
    """Start a process that outlives the hook and the program that ran it.

    Args:
        what: "serve" or "remember", of infinimem.hooks.
        library: its folder.
        event: told to it on its standard input.
        options: further arguments.
        keep: a descriptor that it gets, too.
    """
    import subprocess  # seldom needed, and slow to import

    # Not in the session's folder, and with -P: what lies there must not be imported.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "infinimem.hooks", what, str(library.resolve()), *options],
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
