"""A process of its own: a session's log into a library, and what is in it drawn from it.

Turns that were recorded before are known by their ids, so that only what is new since the last time comes in;
memory that was recalled into the session does not (importers/fields.py).
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

from infinimem.hooks.rendezvous import held, rendezvous
from infinimem.importers import survey
from infinimem.memory import open_memory

FORMAT = "claude-code"
STILL, LONGEST = 0.5, 5.0
"""Seconds without a change after which a log counts as written, and that it is waited for at most: it is
written behind the session's back."""


def remember(library: Path, transcript: Path, create: bool = False) -> int:
    """Bring in what a log holds that is new. Two at once take turns.

    Args:
        library: its folder.
        transcript: the log.
        create: make the library if it is not there.

    Returns:
        How many turns were recorded.

    Raises:
        InfinimemError: the log or the library is not usable, or the model does not answer: then what was
            said is recorded, and drawn from the next time.
    """
    _settle(transcript)
    place = rendezvous(library)
    with held(place.remembering, wait=True) if place else nullcontext():
        memory = open_memory(library, create=create)
        recorded = sum(len(memory.record(batch)) for batch in survey(transcript, FORMAT).batches())
        left = memory.library.settings.hooks.daily_tokens - memory.spent_today()
        if left > 0:  # what is only recorded is drawn from on another day
            memory.observe((), max_tokens=left)
    return recorded


def _settle(file: Path) -> None:
    until = time.monotonic() + LONGEST
    size = -1
    while (now := file.stat().st_size) != size and time.monotonic() < until:
        size = now
        time.sleep(STILL)
