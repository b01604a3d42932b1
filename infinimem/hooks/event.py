"""What a hook is told: the JSON that Claude Code gives each hook on standard input.

Source: code.claude.com/docs/en/hooks, "Hook input".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

RECALLS = ("SessionStart", "UserPromptSubmit")
REMEMBERS = ("PreCompact", "SessionEnd")
EVENTS = (*RECALLS, *REMEMBERS)

PROMPT_LENGTH = 2000
"""Characters of a prompt that are looked for: half from its start, half from its end, where people ask."""


@dataclass(frozen=True)
class Event:
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
        return json.dumps(asdict(self)).encode()


def given(name: str, data: bytes) -> Event:
    """The event from a hook's input.

    Raises:
        ValueError: there is no such event, or the input is no JSON object or has a field of another kind;
            says so in one line.
    """
    if name not in EVENTS:
        raise ValueError(f"no hook for {name or 'nothing'}; there are {', '.join(EVENTS)}")
    found = _object(data)
    prompt = _text(found, "prompt")
    if len(prompt) > PROMPT_LENGTH:
        prompt = f"{prompt[: PROMPT_LENGTH // 2]} {prompt[-PROMPT_LENGTH // 2 :]}"
    return Event(
        name, _text(found, "session_id"), _text(found, "cwd"), prompt, _text(found, "transcript_path")
    )


def passed_on(data: bytes) -> Event:
    """The event that another process of ours wrote with `Event.as_json`.

    Raises:
        ValueError: it is none.
    """
    found = _object(data)
    names = ("name", "session", "cwd", "prompt", "transcript")
    return Event(**{name: _text(found, name) for name in names})


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError("the hook's input is no JSON") from error
    if not isinstance(found, dict):
        raise ValueError("the hook's input is no JSON object")
    return found


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} of the hook's input is no text")
    return value
