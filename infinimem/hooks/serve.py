"""A warm process: holds a library open and answers hooks through a socket, for as long as some ask.

Opening a library takes longer than a person should wait at each prompt; a question to an open one does not.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from infinimem.hooks.event import Event, given
from infinimem.hooks.recall import Recall
from infinimem.hooks.rendezvous import Rendezvous, held, rendezvous
from infinimem.memory import open_memory

IDLE = 1800.0
"""Seconds without a question after which it ends."""
ASKING = 1.0
"""Seconds that one who connected has to ask."""
LONGEST = 1 << 20
"""Bytes of a question."""


def serve(library: Path, first: Event, idle: float = IDLE, alone: bool = False) -> None:
    """Answer until nobody asked for a while; ends at once where another process does it already.

    Args:
        library: its folder.
        first: the event that found nobody; it cannot be told any more, so a session's start is owed to it.
        idle: seconds.
        alone: whoever started this process took the lock for it.
    """
    place = rendezvous(library)
    if place is None:
        return
    with nullcontext(0) if alone else held(place.serving, wait=False) as lock:
        if lock is not None:
            recall = Recall(open_memory(library, model="offline"))
            recall.text(first)  # builds the index
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
            event = given(_read(line))
            text = recall.text(event)
            try:
                line.sendall(text.encode("utf-8", "replace"))
            except OSError:
                recall.missed(event)
            else:
                recall.arrived(event)


def _read(line: socket.socket) -> bytes:
    said = bytearray()
    while part := line.recv(1 << 16):
        said += part
        if len(said) > LONGEST:
            raise ValueError("too long")
    return bytes(said)
