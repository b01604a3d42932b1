"""Records as a model is shown them (llm/tasks.py)."""

from __future__ import annotations

from collections.abc import Iterable

from infinimem.llm.tasks import turn as shown_turn
from infinimem.model import Located
from infinimem.strategies.records.record_store import RecordStore

LONGEST = 24_000
"""Characters of evidence that a model is shown, except of what it shall cut."""


def shown_turns(turns: Iterable[Located]) -> list[dict[str, str | None]]:
    """Turns, a bound on all of them together."""
    rows, room = [], LONGEST
    for turn in turns:
        rows.append(shown_turn(turn.entry, turn.entry.text[: max(room, 0)]))
        room -= len(turn.entry.text)
    return rows


def shown_record(
    store: RecordStore, name: str, called: str | None = None, *, whole: bool = False
) -> dict[str, object]:
    """A record with its evidence.

    Args:
        store: that it stands in.
        name: its id.
        called: the id that the model is told; None for its own.
        whole: whether the text is shown to its end, however long it is.
    """
    text = store.text(name)
    told = shown_descriptor(store, name) | {"text": text if whole else text[:LONGEST]}
    return told | ({"id": called, "number": name} if called else {})


def shown_descriptor(store: RecordStore, name: str) -> dict[str, object]:
    """A neighbour: its descriptor, and who said it when, as far as that is known."""
    record = store.records[name]
    speakers = {said.speaker for said in store.quotes(name)}
    told = {
        "id": record.id,
        "time": record.time,
        "speaker": speakers.pop() if len(speakers) == 1 else None,
        "when": record.when,
        "summary": record.summary,
        "keywords": list(record.keywords),
    }
    return {key: value for key, value in told.items() if value}
