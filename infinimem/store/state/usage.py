"""What models were asked in this library, by day: calls and tokens, added up from the list that grows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from infinimem.model import Usage
from infinimem.store.files import Files
from infinimem.store.state import append_log

PATH = ".infinimem/usage"

Days = dict[str, Usage]


def by_day(files: Files) -> Mapping[str, Usage]:
    """Usage by day (ISO 8601, UTC), oldest first; what cannot be read counts for nothing."""
    return dict(sorted(append_log.value(files, PATH, Days, _added).items()))


def _added(before: Days, rows: list[bytes]) -> Days:
    found = dict(before)
    for row in rows:
        with suppress(ValueError):
            day, *numbers = row.decode("ascii", "replace").split(" ")
            calls, tokens_in, tokens_out = map(int, numbers)
            found[day] = found.get(day, Usage()) + Usage(calls, tokens_in, tokens_out)
    return found


def note(files: Files, day: str, usage: Usage) -> None:
    """Add to the list, in one write, so that processes need no lock.

    Args:
        day: ISO 8601, UTC.
        usage: what was asked; of calls that took no tokens nothing is noted.
    """
    if usage.tokens_in or usage.tokens_out:
        files.append(PATH, f"{day} {usage.calls} {usage.tokens_in} {usage.tokens_out}\n".encode())
