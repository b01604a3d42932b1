"""Telegram's export: result.json of one chat, or of an account with its chats under `chats`.

Source: core.telegram.org/import-export.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers import fields
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_ATTACHMENTS = ("photo", "file", "media_type", "location_information", "contact_information", "poll")


def matches(record: Json) -> bool:
    messages = next((fields.rows(chat.get("messages")) for chat in _chats(record)), [])
    kinds = ("message", "service")
    return bool(messages) and all(
        isinstance(one, dict) and one.get("type") in kinds and ("date_unixtime" in one or "from_id" in one)
        for one in messages[:1]
    )


def turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    for chat in (chat for record in records for chat in _chats(record)):
        name = fields.as_name(chat.get("name")) or fields.as_name(chat.get("id")) or stem
        for message in fields.rows(chat.get("messages")):
            if not isinstance(message, dict):
                skipped[fields.OTHER] += 1
                continue
            if message.get("type") != "message":
                skipped[fields.NOTICES] += 1
                continue
            attached = any(field in message for field in _ATTACHMENTS)
            skipped[fields.ATTACHED] += attached
            text = _text(message.get("text"))
            if attached and not text.strip():
                continue
            if origin := fields.as_name(message.get("forwarded_from")):
                text = f"[forwarded from {origin}] {text}"
            time = fields.iso(fields.first(message, "date_unixtime", "date"))
            yield Turn(
                text=text,
                speaker=fields.as_name(fields.first(message, "from", "from_id")),
                time=time,
                session=fields.day_of_chat(name, time),
                turn=fields.as_name(message.get("id")),
            )


def _chats(record: Any) -> list[Json]:
    """The chats with messages; of an account its list."""
    if not isinstance(record, dict):
        return []
    if isinstance(record.get("messages"), list):
        return [record]
    inner = record.get("chats")
    listed = fields.rows(inner.get("list")) if isinstance(inner, dict) else []
    return [chat for chat in listed if isinstance(chat, dict) and fields.rows(chat.get("messages"))]


def _text(value: Any) -> str:
    """A message is a string, or a list of strings and of pieces that are formatted or linked."""
    if isinstance(value, str):
        return value
    pieces = (piece.get("text") if isinstance(piece, dict) else piece for piece in fields.rows(value))
    return "".join(piece for piece in pieces if isinstance(piece, str))
