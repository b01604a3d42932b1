"""Chat messages with a role and a text: OpenAI's shape, and the usual variations on it.

A record is one message (a list or JSONL of them) or an object that holds a list of messages. Fields of
infinimem's own `Turn` (speaker, time, session, turn, key) are read too, so that anything can be brought in
by writing one JSON object a line. System prompts, tool calls and what answers a tool call are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers import fields
from infinimem.importers.branches import open_branch
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_LISTS = ("messages", "turns", "conversations", "conversation")
_ROLE = ("role", "from", "sender", "author")
_TEXT = ("content", "text", "value", "message")
_TIME = ("time", "timestamp", "created_at", "create_time", "date", "created")
_SESSION = ("session", "session_id", "conversation_id", "thread_id")
_TITLE = (*_SESSION, "id", "title", "name")


def matches(record: Json) -> bool:
    inner = _messages(record)
    if inner is not None:
        return any(isinstance(message, dict) and matches(message) for message in inner)
    has_text = isinstance(fields.first(record, *_TEXT), str | list) or "tool_calls" in record
    return has_text and (fields.first(record, *_ROLE) is not None or "speaker" in record)


def names(record: Json, stem: str) -> tuple[str, ...]:
    return fields.names_of(record, stem, *(_SESSION if _messages(record) is None else _TITLE))


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, *_ = names(record, stem)
    time = fields.iso(fields.first(record, *_TIME))
    inner = _messages(record)
    for message in [record] if inner is None else open_branch(inner, None, skipped):
        if not isinstance(message, dict) or not matches(message):
            skipped["records that are no message"] += 1
            continue
        role, speaker = fields.role_of(fields.first(message, *_ROLE))
        if role == "system" or "tool_call_id" in message:
            skipped[fields.PROMPTS if role == "system" else fields.TOOLS] += 1
            continue
        text = fields.text_of(fields.first(message, *_TEXT), skipped)
        if message.get("tool_calls"):
            skipped[fields.TOOLS] += 1
            if not text.strip():
                continue
        yield Turn(
            text=text,
            role=role,
            speaker=fields.as_name(fields.first(message, "speaker", "name")) or speaker,
            time=fields.iso(fields.first(message, *_TIME)) or time,
            session=fields.as_name(fields.first(message, *_SESSION)) or session,
            turn=fields.as_name(fields.first(message, "turn", "id", "message_id")),
            key=fields.as_name(message.get("key")),
        )


def _messages(record: Json) -> list[object] | None:
    return next((value for field in _LISTS if isinstance(value := record.get(field), list)), None)
