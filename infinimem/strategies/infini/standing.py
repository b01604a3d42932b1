"""Where an entry goes that says what the user asks for once and for all: into a document of its own.

It is known there whatever a question is about, and people see in one place what they asked for. No plan is
asked for, and none moves a line into or out of it (docs/FORMAT.md, Instructions and preferences).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from infinimem.model import Entry, NewEntry
from infinimem.store.spec import INSTRUCTIONS, PREFERENCES, STANDING

_SECTIONS = {"instruction": INSTRUCTIONS, "preference": PREFERENCES}


def filed(entry: NewEntry, standing: str | None, origin: Iterable[Entry]) -> NewEntry:
    """The entry, on its way to that document if it belongs there.

    Args:
        entry: on its way to CURRENT.
        standing: what the model calls it: "instruction", "preference"; anything else is none.
        origin: the turns that it was drawn from. Only the user's own words direct how the user is answered:
            a tool's output, or what an AI said, cannot.
    """
    heading = _SECTIONS.get(standing or "")
    if heading is None or any(turn.source not in ("user", "human") for turn in origin):
        return entry
    return replace(entry, to=STANDING, heading=heading)
