"""Claude's data export: conversations.json, a list of conversations with `chat_messages`."""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers.fields import (
    ATTACHED,
    NO_TEXT,
    Json,
    Skipped,
    as_name,
    first,
    iso,
    names_of,
    role_of,
    rows,
    text_of,
    titled,
)
from infinimem.model import Turn


def matches(record: Json) -> bool:
    return isinstance(record.get("chat_messages"), list)


def names(record: Json, stem: str) -> tuple[str, ...]:
    return names_of(record, stem, "uuid", "name")


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session = titled(names(record, stem))
    time = iso(record.get("created_at"))
    for message in rows(record.get("chat_messages")):
        if not isinstance(message, dict):
            skipped[NO_TEXT] += 1
            continue
        skipped[ATTACHED] += len(rows(message.get("attachments"))) + len(rows(message.get("files")))
        role, speaker = role_of(message.get("sender"))
        # `content` is the later and fuller form; older exports have `text` alone. Where both are there `text`
        # holds a stand-in for each block that is not text.
        yield Turn(
            text=text_of(message.get("content") or message.get("text"), skipped),
            role=role,
            speaker=speaker,
            time=iso(first(message, "created_at", "updated_at")) or time,
            session=session,
            turn=as_name(message.get("uuid")),
        )
