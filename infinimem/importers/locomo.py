"""LoCoMo: conversations of two people in numbered sessions, each with a date.

A record is an entry of the official list (`sample_id`, `conversation`, `qa`) or a conversation alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from datetime import time as clock

from infinimem.importers.fields import NO_TEXT, Json, Skipped, as_name, names_of, rows
from infinimem.model import Turn
from infinimem.terms import MONTHS

_KEY = re.compile(r"session_(\d+)")
_MONTHS = [name[:3].lower() for name in MONTHS]
# "1:56 pm on 8 May, 2023"; strptime would read month names in the machine's language only.
_DATE = re.compile(r"\s*(\d{1,2}):(\d\d)\s*([ap]m)\s+on\s+(\d{1,2})\s+([a-z]+),?\s+(\d{4})\s*", re.IGNORECASE)


def matches(record: Json) -> bool:
    return bool(_sessions(_conversation(record)))


def names(record: Json, stem: str) -> tuple[str, ...]:
    return names_of(record, stem, "sample_id")


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Turns in the order of the session numbers; a shared picture is told by its caption."""
    conversation = _conversation(record)
    (name,) = names(record, stem)
    for number, session in _sessions(conversation):
        time = session_time(conversation.get(f"session_{number}_date_time"))
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


def session_time(text: object) -> str | None:
    """ISO 8601 of "1:56 pm on 8 May, 2023"; None for what does not read so."""
    match = _DATE.fullmatch(text) if isinstance(text, str) else None
    if match is None or (month := match[5].lower()[:3]) not in _MONTHS:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "pm" else 0)
    try:
        day = date(int(match[6]), _MONTHS.index(month) + 1, int(match[4]))
        return datetime.combine(day, clock(hour, int(match[2]))).isoformat()
    except ValueError:
        return None


def _conversation(record: Json) -> Json:
    inner = record.get("conversation")
    return inner if isinstance(inner, dict) else record


def _sessions(conversation: Json) -> list[tuple[int, list[object]]]:
    found = [(int(m[1]), rows(value)) for key, value in conversation.items() if (m := _KEY.fullmatch(key))]
    return sorted(((number, session) for number, session in found if session), key=lambda pair: pair[0])
