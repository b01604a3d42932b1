"""What a hook is told: the JSON that Claude Code gives each hook on standard input.

Source: code.claude.com/docs/en/hooks, "Hook input".
"""

from __future__ import annotations

import json
from typing import NamedTuple

RECALLS = ("SessionStart", "UserPromptSubmit")
REMEMBERS = ("PreCompact", "SessionEnd")
EVENTS = (*RECALLS, *REMEMBERS)

PROMPT_LENGTH = 2000
"""Characters of a prompt that are searched for: half from its start, half from its end, where people ask."""
_FIELDS = {
    "name": "hook_event_name",
    "session": "session_id",
    "cwd": "cwd",
    "prompt": "prompt",
    "transcript": "transcript_path",
}
"""Of an event, as the input calls them."""


class Event(NamedTuple):
    """A hook's occasion; what the input lacks is empty.

    Args:
        name: one of `EVENTS`.
        session: the session's id.
        cwd: folder that the session is in.
        prompt: what the person typed, its middle left out where it is long.
        transcript: the session's log file.
    """

    name: str
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    transcript: str = ""

    def as_json(self) -> bytes:
        """In the form of a hook's input, for another process."""
        return json.dumps({theirs: getattr(self, ours) for ours, theirs in _FIELDS.items()}).encode()


def given(data: bytes, name: str | None = None) -> Event:
    """The event from a hook's input.

    Args:
        data: JSON.
        name: of the event; None takes what the input says.

    Raises:
        ValueError: there is no such event, or the input is no JSON object or has a field of another kind;
            says so in one line.
    """
    try:
        found = json.loads(data) if name is None or name in EVENTS else {}
    except (ValueError, RecursionError) as error:
        raise ValueError("the hook's input is not JSON") from error
    if not isinstance(found, dict):
        raise ValueError("the hook's input is not a JSON object")
    values = {ours: found.get(theirs) or "" for ours, theirs in _FIELDS.items()}
    if wrong := [name for name, value in values.items() if not isinstance(value, str)]:
        raise ValueError(f"{_FIELDS[wrong[0]]} of the hook's input is not text")
    event = Event(**{**values, "name": values["name"] if name is None else name})
    if event.name not in EVENTS:
        raise ValueError(f"no hook for {event.name or 'nothing'}; use one of {', '.join(EVENTS)}")
    if len(event.prompt) > PROMPT_LENGTH:
        half = PROMPT_LENGTH // 2
        return event._replace(prompt=f"{event.prompt[:half]} {event.prompt[-half:]}")
    return event
