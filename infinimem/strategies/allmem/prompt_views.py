"""Turns and units as a model is shown them (llm/tasks.py)."""

from __future__ import annotations

from infinimem.model import Located
from infinimem.strategies.allmem.record_store import Bank
from infinimem.strategies.allmem.unit import Unit

TARGET = "TARGET"
"""What the unit under diagnosis is called, for models mistype ids."""
LONGEST = 24_000
"""Characters of evidence that a model is shown, except of what it shall cut."""


def shown_turn(place: Located) -> dict[str, object]:
    """A turn to describe."""
    entry = place.entry
    return {
        "id": str(entry.seq),
        "role": entry.role,
        "speaker": entry.fields.get("speaker"),
        "time": entry.time,
        "text": entry.text[:LONGEST],
    }


def shown_unit(bank: Bank, name: str, called: str | None = None, *, whole: bool = False) -> dict[str, object]:
    """A unit with its evidence.

    Args:
        bank: that it stands in.
        name: its id.
        called: the id that the model is told; None for its own.
        whole: whether the text is shown to its end, however long it is.
    """
    unit = bank.units[name]
    speakers = {said.speaker for said in bank.quotes(name)}
    text = bank.text(name)
    return {
        "id": called or name,
        "time": unit.time,
        "speaker": speakers.pop() if len(speakers) == 1 else None,
        "text": text if whole else text[:LONGEST],
        "summary": unit.summary,
        "keywords": list(unit.keywords),
    }


def shown_anchor(unit: Unit) -> dict[str, object]:
    """A neighbour: its descriptor alone."""
    return {"id": unit.id, "time": unit.time, "summary": unit.summary, "keywords": list(unit.keywords)}
