"""What an agent program's hooks do: put memory before a model, and remember what was said."""

from __future__ import annotations

import json
from typing import NamedTuple

RECALLS = ("SessionStart", "UserPromptSubmit")
REMEMBERS = ("PreCompact", "SessionEnd")
EVENTS = (*RECALLS, *REMEMBERS)

PROMPT_LENGTH = 2000
"""Characters of a prompt that are searched for: half from its start, half from its end, where people ask."""


class Event(NamedTuple):
    """A hook's occasion, one of `EVENTS`, with what the input says of it, by the input's names. Of a long
    prompt the middle is left out."""

    hook_event_name: str
    session_id: str = ""
    cwd: str = ""
    prompt: str = ""
    transcript_path: str = ""
    source: str = ""

    def as_json(self) -> bytes:
        return json.dumps(self._asdict()).encode()


def given(data: bytes, name: str | None = None) -> Event:
    """Return the event of a hook's input; `name` replaces the one that it gives. ValueError, in one line, if
    there is no such event, or the input is not a JSON object of texts."""
    try:
        found = json.loads(data) if name is None or name in EVENTS else {}
        values = {field: found.get(field) or "" for field in Event._fields}
    except (ValueError, RecursionError, AttributeError) as error:
        raise ValueError("the hook's input is not a JSON object") from error
    values["hook_event_name"] = name or values["hook_event_name"]
    if wrong := [field for field, value in values.items() if not isinstance(value, str)]:
        raise ValueError(f"{wrong[0]} of the hook's input is not text")
    event = Event(**values)
    if event.hook_event_name not in EVENTS:
        raise ValueError(f"no hook for {event.hook_event_name or 'nothing'}; use one of {', '.join(EVENTS)}")
    if len(event.prompt) > PROMPT_LENGTH:
        half = PROMPT_LENGTH // 2
        return event._replace(prompt=f"{event.prompt[:half]} {event.prompt[-half:]}")
    return event
