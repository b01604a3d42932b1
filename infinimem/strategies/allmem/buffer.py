"""The buffer: the units that wait for consolidation, and what they were near to when they came.

Source: All-Mem, section 3.2 (pointers rather than copies).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from infinimem.store.view import View
from infinimem.strategies.allmem.unit import HOME
from infinimem.strategies.records.ledger import ledger_text, rows_of
from infinimem.strategies.records.record import is_record_id
from infinimem.strategies.records.record_store import RecordStore

BUFFER = f"{HOME}buffer"


@dataclass(frozen=True)
class Buffered:
    """A unit that waits for consolidation, and the units that it was near to."""

    unit: str
    near: tuple[str, ...]


def buffered(view: View) -> tuple[Buffered, ...]:
    """What waits, of the units that are there, in the order in which it came."""
    return view.derived(_buffered)


def _buffered(
    view: View, known: tuple[Buffered, ...] | None, changed: Collection[str] | None
) -> tuple[Buffered, ...]:
    if known is not None and changed is not None and not any(name.startswith(HOME) for name in changed):
        return known
    bank = view.derived(RecordStore.load)
    found: dict[str, Buffered] = {}
    for row in rows_of(view.document(BUFFER)) if BUFFER in view else ():
        unit, near = row.get("unit"), row.get("near")
        if isinstance(unit, str) and unit in bank and isinstance(near, list):
            names = (name for name in near if isinstance(name, str) and is_record_id(name))
            found.setdefault(unit, Buffered(unit, tuple(names)))
    return tuple(found.values())


def buffer_text(waiting: Sequence[Buffered]) -> str:
    """The buffer's file."""
    prose = ("# Units that wait for consolidation", "", f"{len(waiting)} in order of arrival.")
    rows = ({"unit": one.unit, "near": list(one.near)} for one in waiting)
    return ledger_text(BUFFER, {"kind": "buffer"}, prose, rows)
