"""The processes that hooks start: `serve LIBRARY [--alone]`, `remember LIBRARY [--create]`, event on stdin.

Opening a library takes longer than a person should wait at each prompt, so one process holds it open and
answers through a socket, for as long as some ask. Another brings a session's log into the library; turns that
were recorded before are known by their ids. They have nobody to talk to, so whatever fails, fails in silence;
what was recorded is on disk.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.hooks.answer import Event, Rendezvous, given, held, rendezvous

if TYPE_CHECKING:
    from infinimem.hooks.recall import Recall

IDLE = 1800.0  # seconds without a question after which it ends
ASKING = 1.0  # seconds that one who connected has to ask
LONGEST_QUESTION = 1 << 20  # bytes of a question
FORMAT = "claude-code"
STILL, PATIENCE = 0.5, 5.0
"""Seconds without a change after which a log counts as written, and that it is waited for at most: it is
written behind the session's back."""


def serve(library: Path, first: Event, idle: float = IDLE, alone: bool = False) -> None:
    """Answer until nobody asked for `idle` seconds; end at once if another process does it already. The
    `first` event found nobody, so a session's start is owed to it; who starts it `alone` took its lock."""
    from infinimem.hooks.recall import Recall
    from infinimem.memory import open_memory

    place = rendezvous(library)
    if place is None:
        return
    with nullcontext(0) if alone else held(place.serving, wait=False) as lock:
        if lock is not None:
            recall = Recall(open_memory(library, model="offline"))
            recall.preview(first.prompt or first.cwd, first.cwd)  # builds the index
            if recall.text(first):
                recall.missed(first)
            with _listening(place) as listener:  # not before: whoever connects is answered at once
                _answer_all(listener, library, recall, idle)


@contextmanager
def _listening(place: Rendezvous) -> Iterator[socket.socket]:
    place.socket.unlink(missing_ok=True)  # of one that was killed
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.socket))
        try:
            listener.listen(16)
            yield listener
        finally:
            place.socket.unlink(missing_ok=True)


def _answer_all(listener: socket.socket, library: Path, recall: Recall, idle: float) -> None:
    listener.settimeout(idle)
    while library.is_dir():
        try:
            line, _ = listener.accept()
        except TimeoutError:
            return
        with line, suppress(OSError, ValueError):  # one that left, or asked nonsense
            line.settimeout(ASKING)
            asked = bytearray()
            while part := line.recv(1 << 16):
                asked += part
                if len(asked) > LONGEST_QUESTION:
                    raise ValueError("too long")
            event = given(bytes(asked))
            text = recall.text(event)
            try:
                line.sendall(text.encode("utf-8", "replace"))
            except OSError:
                if text:
                    recall.missed(event)


def remember(library: Path, transcript: Path, create: bool = False) -> int:
    """Bring in what a log holds that is new, and return how many turns that is. InfinimemError if log,
    library or model is not usable: what was recorded is drawn from the next time."""
    from infinimem.importers import survey
    from infinimem.memory import open_memory

    until, size = time.monotonic() + PATIENCE, -1
    while (now := transcript.stat().st_size) != size and time.monotonic() < until:
        size = now
        time.sleep(STILL)
    place = rendezvous(library)
    with held(place.remembering, wait=True) if place else nullcontext():
        memory = open_memory(library, create=create)
        recorded = sum(len(memory.record(batch)) for batch in survey(transcript, FORMAT).batches())
        left = memory.library.settings.hooks.daily_tokens - memory.spent_today()
        if left > 0:  # what is only recorded is drawn from on another day
            memory.observe((), max_tokens=left)
    return recorded


def main(what: str, library: Path, options: Collection[str], event: Event) -> None:
    if what == "serve":
        serve(library, event, alone="--alone" in options)
    else:
        os.nice(10)  # the person goes on working
        remember(library, Path(event.transcript), "--create" in options)


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], given(sys.stdin.buffer.read()))
    except Exception:
        sys.exit(1)
