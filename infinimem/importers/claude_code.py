"""Claude Code's session logs: ~/.claude/projects/<project>/<session>.jsonl, a JSON object a line.

What the person typed and what the assistant said come in. Calls of tools, thinking, lines of sub-agents, what
the program itself put in (commands, reminders, summaries) and memory that a hook recalled do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers.fields import NOTICES, OTHER, SIDE, Json, Skipped, as_name, iso, role_of, text_of
from infinimem.model import Turn

_SPOKEN = ("user", "assistant")
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)\n?", re.DOTALL)
_NOTICE = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification|user-memory-input)>|\[Request interrupted by user)"
)
_OF_THE_PROGRAM = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def matches(record: Json) -> bool:
    return (
        record.get("type") in _SPOKEN
        and isinstance(record.get("sessionId"), str)
        and isinstance(record.get("message"), dict)
    )


def turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The turns of a log, by the program's own ids: what a resumed or forked session repeats has its key."""
    for record in records:
        if not isinstance(record, dict):
            skipped[OTHER] += 1
            continue
        if record.get("type") not in _SPOKEN:
            continue  # titles, snapshots of files, queues, events: nobody said them
        message = record.get("message")
        if record.get("isSidechain"):
            skipped[SIDE] += 1
            continue
        synthetic = isinstance(message, dict) and message.get("model") == "<synthetic>"
        if not isinstance(message, dict) or synthetic or any(record.get(flag) for flag in _OF_THE_PROGRAM):
            skipped[NOTICES] += 1
            continue
        before = skipped.total()
        text, reminders = _REMINDER.subn("", text_of(message.get("content"), skipped))
        skipped[NOTICES] += reminders
        if _NOTICE.match(text):
            skipped[NOTICES] += 1
            continue
        if not text.strip() and skipped.total() > before:
            continue  # it held nothing else, and that is counted
        ident, forked = as_name(record.get("uuid")), record.get("forkedFrom")
        first = as_name(forked.get("messageUuid")) if isinstance(forked, dict) else None
        yield Turn(
            text=text,
            role=role_of(record["type"])[0],
            time=iso(record.get("timestamp")),
            session=as_name(record.get("sessionId")) or stem,
            turn=ident,
            key=first or ident,
            cwd=as_name(record.get("cwd")),
            branch=as_name(record.get("gitBranch")),
        )
