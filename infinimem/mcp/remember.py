"""remember: writes down what a client says, and draws from it what is worth keeping. It only ever adds.

What is said is on disk before a model is asked. Of calls side by side the first draws from all that waits,
the others find it done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infinimem.errors import ModelUnavailable
from infinimem.memory import Memory
from infinimem.model import Turn
from infinimem.store.view import View
from infinimem.tools.tool import Result, Tool, shown

DESCRIPTION = (
    "Write something down for later conversations. Nothing is overwritten: a correction is remembered anew. "
    "Gives the number it was recorded under and the entries drawn from it."
)
PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "text": {
        "type": "string",
        "maxLength": 50_000,
        "description": "one fact or a short passage, with names instead of pronouns",
    },
    "session": {"type": "string", "description": "name of the conversation"},
    "speaker": {"type": "string", "maxLength": 200, "description": "name of who said it"},
    "time": {"type": "string", "maxLength": 40, "description": "when it was said, ISO 8601"},
    "key": {"type": "string", "maxLength": 500, "description": "the same key is recorded once"},
}
ROLE: Mapping[str, Any] = {
    "type": "string",
    "enum": ["assistant", "user"],
    "default": "assistant",
    "description": "user: these are the user's own words; assistant: yours, or a summary",
}
"""Offered only to clients that are trusted to tell a person's words from a model's."""


def parameters(trust_user: bool) -> dict[str, Any]:
    """JSON schema of the arguments."""
    properties = {**PROPERTIES, "role": ROLE} if trust_user else dict(PROPERTIES)
    return {"type": "object", "properties": properties, "required": ["text"], "additionalProperties": False}


def rows(result: Result) -> Iterator[str]:
    """What was recorded, then each entry."""
    yield f"recorded as {result['seq']}, source {result['source']}" if result["recorded"] else "known before"
    for entry in result["entries"]:
        yield f"{entry['seq']} {entry['text']}"


def tool(memory: Memory, trust_user: bool = False) -> Tool:
    """The tool, bound to a library and its model.

    Args:
        memory: where it is written.
        trust_user: let the caller say that a text is the user's; else all of it counts as an AI's.
    """

    def remember(view: View, text: str, role: str = "assistant", **about: str | None) -> Result:
        places = memory.record([Turn(text=text, role=role, **about)])
        notes = []
        try:
            memory.observe(())
        except ModelUnavailable as error:
            notes.append(str(error))
        seq = places[0].entry.seq if places else None
        drawn = [place.entry for place in memory.view.entries() if seq in place.entry.origin] if seq else []
        result: Result = {
            "recorded": seq is not None,
            "seq": seq,
            "source": places[0].entry.source if places else None,
            "entries": [{"seq": entry.seq, "text": shown(entry.text)} for entry in drawn],
        }
        return {**result, "notes": notes} if notes else result

    return Tool("remember", DESCRIPTION, parameters(trust_user), remember, rows, lambda: memory.view)
