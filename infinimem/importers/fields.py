"""What the JSON formats share: a time, a role, the text of a message. No format is known here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Skipped = Counter[str]
"""What was left out: reason -> how many times."""

# The reasons, in the words of the summary that people read.
EMPTY = "empty messages"
HIDDEN = "hidden messages"
PROMPTS = "system prompts"
TOOLS = "tool calls and results"
THINKING = "passages of thinking"
ATTACHED = "attached files and pictures"
SIDE = "messages of sub-agents"
NOTICES = "notices of the program"
RECALLED = "passages of recalled memory"
NO_TEXT = "messages without text"
OTHER = "records of another shape"

Json = Mapping[str, Any]

ROLES: Mapping[str, str] = {
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "gpt", "chatgpt", "claude"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "ipython"), "tool"),
}

_TEXT_PARTS = ("text", "input_text", "output_text", "audio_transcription")
_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "thoughts"), THINKING),
    **dict.fromkeys(("tool_use", "tool_result", "function_call", "function_call_output"), TOOLS),
    **dict.fromkeys(("server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result"), TOOLS),
    **dict.fromkeys(("image", "image_url", "input_image", "image_asset_pointer"), ATTACHED),
    **dict.fromkeys(("document", "file", "input_file", "input_audio", "audio_asset_pointer"), ATTACHED),
    **dict.fromkeys(("video_container_asset_pointer", "real_time_user_audio_video_asset_pointer"), ATTACHED),
}
"""Why a part of a message that is no text is left out, by its type."""
_DAY = re.compile(r" \d{4}-\d\d-\d\d\Z")
_MILLISECONDS = 1e11  # seconds reach this in the year 5138


def role_of(value: Any) -> tuple[str, str | None]:
    """Role and speaker: a role by its usual names; any other name is a person who speaks as user."""
    if not isinstance(value, str) or not value.strip():
        return "user", None
    known = ROLES.get(value.strip().lower())
    return (known, None) if known else ("user", value.strip())


def iso(value: Any) -> str | None:
    """ISO 8601 of a date, a date-time, or seconds or milliseconds since 1970; None for anything else.

    Zoned where the source is, naive where it is not, to the second.
    """
    try:
        if isinstance(value, str):
            text = value.strip()
            if not text.isdigit() or len(text) == 8:
                return _canonical(text)
            value = int(text)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            return None
        seconds = value / 1000 if value > _MILLISECONDS else value
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def _canonical(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if "T" not in text and ":" not in text:
        return moment.date().isoformat()
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def text_of(content: Any, skipped: Skipped) -> str:
    """The text of a message: a string, or the text parts of a list joined by blank lines."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Iterable):
        return ""
    texts = []
    for part in content:
        kind = None
        if isinstance(part, Mapping):
            kind = first(part, "type", "content_type") or "text"
            part = part.get("text") if kind in _TEXT_PARTS else part
        if isinstance(part, str):
            texts.append(part)
        elif part:
            skipped[_PARTS.get(str(kind), "parts that are not text")] += 1
    return "\n\n".join(text for text in texts if text.strip())


def first(record: Json, *names: str) -> Any:
    """The value of the first of these fields that is there and not null."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def as_name(value: Any) -> str | None:
    """An id or a title as text: strings and whole numbers; None for what is no name."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return " ".join(str(value).split()) or None


def names_of(record: Json, stem: str, *fields: str) -> tuple[str, ...]:
    """The ids and titles of a conversation, each once; `stem` names what has no name."""
    names = (as_name(record.get(field)) for field in fields)
    return tuple(dict.fromkeys(name for name in names if name)) or (stem,)


def titled(names: tuple[str, ...]) -> str:
    """A session's name of an id and a title: "Garden aaaa1111"; the id alone where there is no title."""
    return names[0] if len(names) == 1 else f"{names[-1]} {names[0][:8]}"


def day_of_chat(chat: str, time: str | None) -> str:
    """The session of a message of a chat that never ends: the chat and the day, "Rowing club 2024-05-08"."""
    return f"{chat} {time[:10]}" if time else chat


def chat_of(session: str | None) -> str | None:
    """The chat of a session that `day_of_chat` named; any other session is one itself."""
    return _DAY.sub("", session) if session else session


def rows(value: Any) -> list[Any]:
    """A list, or nothing where something else stands."""
    return value if isinstance(value, list) else []
