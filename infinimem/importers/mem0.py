"""mem0's memories, as get_all() and its pages give them: a list, or an object with it under `results`.

A memory is a statement that a model drew from a talk, so an assistant said it. It may be changed under its
id, and the changed one is another statement: ids do not make it the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers.fields import NO_TEXT, Json, Skipped, as_name, first, iso, rows
from infinimem.model import Turn

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
_OWN = ("hash", "created_at", "updated_at", "metadata", "categories", *_OWNERS)


def matches(record: Json) -> bool:
    memories = rows(record.get("results"))
    if memories:
        return isinstance(memories[0], dict) and matches(memories[0])
    return isinstance(record.get("memory"), str) and any(name in record for name in _OWN)


def turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The memories, in the order of the file; those of one owner are a session."""
    for memory in (one for record in records for one in _memories(record)):
        if not isinstance(memory, dict) or not isinstance(memory.get("memory"), str):
            skipped[NO_TEXT] += 1
            continue
        owner = next((name for field in _OWNERS if (name := as_name(memory.get(field)))), None)
        yield Turn(
            text=memory["memory"],
            role="assistant",
            time=iso(first(memory, "updated_at", "created_at")),
            session=f"mem0 {owner}" if owner else stem,
        )


def _memories(record: Any) -> list[Any]:
    return (rows(record.get("results")) if isinstance(record, dict) else []) or [record]
