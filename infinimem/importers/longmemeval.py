"""LongMemEval: a question with the chat sessions of its history ("haystack").

Sessions come in the order of their dates, whatever order the file has: a memory is written as time passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from infinimem.importers.days import moment
from infinimem.importers.fields import NO_TEXT, Json, Skipped, as_name, names_of, role_of, rows, text_of
from infinimem.model import Turn


def matches(record: Json) -> bool:
    return isinstance(record.get("haystack_sessions"), list)


def names(record: Json, stem: str) -> tuple[str, ...]:
    return names_of(record, stem, "question_id")


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Turn ids are those of the benchmark's own scorer: session id, "_", position from 1."""
    sessions = zip_longest(
        rows(record.get("haystack_sessions")),
        rows(record.get("haystack_session_ids")),
        rows(record.get("haystack_dates")),
    )
    dated = [
        (moment(date) or "", number, as_name(name) or f"{stem}-{number + 1}", rows(session))
        for number, (session, name, date) in enumerate(sessions)
    ]
    for time, _, name, session in sorted(dated, key=lambda row: row[:2]):
        for position, message in enumerate(session, 1):
            if not isinstance(message, dict):
                skipped[NO_TEXT] += 1
                continue
            role, speaker = role_of(message.get("role"))
            yield Turn(
                text=text_of(message.get("content"), skipped),
                role=role,
                speaker=speaker,
                time=time or None,
                session=name,
                turn=f"{name}_{position}",
            )
