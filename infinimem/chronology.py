"""Which of two lines is newer, and when a thing happened.

In: entries, and a lookup of the turns that they came from. Out: times as they are written. Promise: pure; a
time that a person mistyped raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from infinimem.model import Entry, Located

Lookup = Callable[[int], Located | None]
"""Finds a line anywhere in the library by its seq."""


def said_at(entry: Entry, lookup: Lookup) -> str | None:
    """Return when a line was said: the latest time of the turns that it came from, else its own, in which an
    older version wrote the time of what happened."""
    origins = (place.entry.time for seq in entry.origin if (place := lookup(seq)))
    return latest(origins) or entry.time


def happened(entry: Entry, lookup: Lookup) -> str | None:
    """Return when it happened, if that is not when it was said; reads older lines as `said_at` does."""
    if when := entry.fields.get("when"):
        return when
    own, said = (entry.time or "")[:10], (said_at(entry, lookup) or "")[:10]
    return own if own and own != said else None


def latest(times: Iterable[str | None]) -> str | None:
    """Return the latest of some times, as it is written; None if none is known."""
    known = [time for time in times if time]
    return max(known, key=lambda time: (_moment(time).replace(tzinfo=None), time), default=None)


def is_newer(new: Entry, old: Entry, lookup: Lookup = lambda seq: None) -> bool:
    """Apply the recency rule: said later; if one time is missing or they are equal, higher seq.

    Args:
        lookup: finds the turns that the lines came from; without it their own times count.
    """
    time, before = said_at(new, lookup), said_at(old, lookup)
    if time and before:
        later, earlier = _moment(time), _moment(before)
        if (later.tzinfo is None) != (earlier.tzinfo is None):
            later, earlier = later.replace(tzinfo=None), earlier.replace(tzinfo=None)
        if "T" not in time or "T" not in before:  # known to the day only
            return (later.date(), new.seq) > (earlier.date(), old.seq)
        return (later, new.seq) > (earlier, old.seq)
    return new.seq > old.seq


def _moment(time: str) -> datetime:
    """Return an entry's time; one that a person mistyped is older than all others."""
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return datetime.min
