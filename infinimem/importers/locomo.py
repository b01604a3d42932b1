"""LoCoMo: conversations of two people in numbered sessions, each with a date.

A record is an entry of the official list (`sample_id`, `conversation`, `qa`) or a conversation alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from infinimem.importers.days import moment
from infinimem.importers.fields import NO_TEXT, Json, Skipped, as_name, names_of, rows
from infinimem.model import Turn

_KEY = re.compile(r"session_(\d+)")


def matches(record: Json) -> bool:
    return bool(_sessions(_conversation(record)))


def names(record: Json, stem: str) -> tuple[str, ...]:
    return names_of(record, stem, "sample_id")


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Turns in the order of the session numbers; a shared picture is told by its caption."""
    conversation = _conversation(record)
    (name,) = names(record, stem)
    for number, session in _sessions(conversation):
        time = moment(conversation.get(f"session_{number}_date_time"))
        for message in session:
            if not isinstance(message, dict) or not isinstance(message.get("text"), str):
                skipped[NO_TEXT] += 1
                continue
            caption = message.get("blip_caption")
            photo = f" [shares a photo: {caption}]" if isinstance(caption, str) and caption.strip() else ""
            yield Turn(
                text=message["text"] + photo,
                speaker=as_name(message.get("speaker")),
                time=time,
                session=f"{name}-s{number:02d}",
                turn=as_name(message.get("dia_id")),
            )


def _conversation(record: Json) -> Json:
    inner = record.get("conversation")
    return inner if isinstance(inner, dict) else record


def _sessions(conversation: Json) -> list[tuple[int, list[object]]]:
    found = [(int(m[1]), rows(value)) for key, value in conversation.items() if (m := _KEY.fullmatch(key))]
    return sorted(((number, session) for number, session in found if session), key=lambda pair: pair[0])
