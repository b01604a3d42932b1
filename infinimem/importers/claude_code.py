"""Claude Code's session logs: ~/.claude/projects/<project>/<session>.jsonl, a JSON object a line.

What the person typed and what the assistant said come in: also prompts that waited in the queue while the
assistant worked, words by which a tool was refused, and answers to questions. Calls of tools, thinking,
sub-agents, what the program itself put in (commands, reminders, summaries), memory that a hook recalled and
prompts that were edited do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers import fields
from infinimem.importers.branches import EDITED
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_SPOKEN = ("user", "assistant")
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)\n?", re.DOTALL)
_NOTICE = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification)>|\[Request interrupted by user)"
)
_MEMORY = re.compile(r"</?user-memory-input>")
_OF_THE_PROGRAM = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_REFUSED = re.compile(
    r"(?:The user doesn.t want to|Permission for this tool use was denied)[^\n]*the user said:\s*"
)
_ASKS, _CLARIFY = "AskUserQuestion", "The user wants to clarify these questions"
_AFTER = "\n\nNote: The user's next message"
"""What the program puts after the words of a refusal."""


def matches(record: Json) -> bool:
    return (
        record.get("type") in _SPOKEN
        and isinstance(record.get("sessionId"), str)
        and isinstance(record.get("message"), dict)
    )


def turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The turns of a log, by the program's own ids: what a resumed or forked session repeats has its key.

    They are held to the end, for a prompt may turn out to have been edited.
    """
    spoken: list[Turn] = []
    queued: dict[str, int] = {}  # prompt -> where it stands, until the record comes that it has of its own
    prompts: dict[str, str] = {}  # id of a message -> the last prompt that answers it
    away: set[str] = set()  # ids of edited prompts and of what followed them
    parents: dict[str, str] = {}
    asked: set[str] = set()  # ids of calls that put questions to the person
    waiting: dict[str, Turn] = {}  # prompts that nothing has taken out of the queue
    for record in records:
        if not isinstance(record, dict):
            skipped[fields.OTHER] += 1
            continue
        if record.get("operation") == "enqueue" and isinstance(prompt := record.get("content"), str):
            waiting[prompt] = _turn(record, "user", prompt, stem)
        elif waiting and record.get("operation") in ("dequeue", "remove"):
            waiting.pop(str(record.get("content") or next(iter(waiting))), None)
        elif record.get("operation") == "popAll":
            waiting.clear()
        ident, parent = fields.as_name(record.get("uuid")), fields.as_name(record.get("parentUuid"))
        if ident and parent:
            parents[ident] = parent
        role, content = _said(record, asked, skipped)
        before = skipped.total()
        text, reminders = _REMINDER.subn("", fields.text_of(content, skipped))
        text = _MEMORY.sub("", text)  # what was typed behind "#"
        skipped[fields.NOTICES] += reminders
        if _NOTICE.match(text):
            skipped[fields.NOTICES] += 1
            continue
        if not role or (not text.strip() and skipped.total() > before):
            continue  # nobody said it, or it held nothing else, and that is counted
        turn = _turn(record, role, text, stem)
        if text in queued and "attachment" in record:
            spoken[queued.pop(text)] = turn
            continue
        if "operation" in record:
            queued[text] = len(spoken)
        spoken.append(turn)
        results = any(isinstance(part, str) or _is(part, "tool_result") for part in fields.rows(content))
        if ident and parent and record.get("type") == "user" and not results:
            away.add(prompts.get(parent, ""))
            prompts[parent] = ident
    for ident, parent in parents.items():
        if parent in away:
            away.add(ident)
    spoken += (turn for text, turn in waiting.items() if text.strip() and not _NOTICE.match(text))
    for turn in spoken:
        if turn.turn in away:
            skipped[EDITED] += 1
        else:
            yield turn


def _said(record: Json, asked: set[str], skipped: Skipped) -> tuple[str | None, Any]:
    """Who said what a record holds; nobody in titles, snapshots of files and events."""
    absorbed = record.get("operation") == "remove" and record.get("reason") in (None, "absorbed_mid_turn")
    if absorbed and isinstance(prompt := record.get("content"), str):
        return "user", prompt
    message, attached, kind = record.get("message"), record.get("attachment"), record.get("type")
    if isinstance(attached, dict) and attached.get("type") == "queued_command":
        origin = attached.get("origin")
        by_person = not isinstance(origin, dict) or origin.get("kind") == "human"
        if by_person and attached.get("commandMode") in (None, "prompt") and not record.get("isSidechain"):
            return "user", attached.get("prompt")
        kind = "user"
    if kind not in _SPOKEN:
        return None, None
    content = message.get("content") if isinstance(message, dict) else None
    if kind == "user" and (typed := _typed(record, content, asked)):
        return kind, typed
    calls = (part for part in fields.rows(content) if _is(part, "tool_use"))
    asked.update(str(call.get("id")) for call in calls if call.get("name") == _ASKS)
    if record.get("isSidechain"):
        skipped[fields.SIDE] += 1
        return None, None
    synthetic = isinstance(message, dict) and message.get("model") == "<synthetic>"
    if not isinstance(message, dict) or synthetic or any(record.get(flag) for flag in _OF_THE_PROGRAM):
        skipped[fields.NOTICES] += 1
        return None, None
    return fields.role_of(kind)[0], content


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _typed(record: Json, content: Any, asked: set[str]) -> list[Any]:
    """A message's parts with what the person typed instead of results; none where that is nothing.

    A result may quote anything: only an error is a refusal, and only a call that asks is answered.
    """
    result = record.get("toolUseResult")
    answers = result.get("answers") if isinstance(result, dict) else None
    parts = list(fields.rows(content))
    for at, part in enumerate(parts):
        if not _is(part, "tool_result"):
            continue
        text, words = fields.text_of(part.get("content"), Counter()), ""
        refused = _REFUSED.match(text) if part.get("is_error") is True else None
        if refused and not text.startswith(_CLARIFY, refused.end()):
            words = text[refused.end() :].partition(_AFTER)[0].strip()
        elif isinstance(answers, dict) and str(part.get("tool_use_id")) in asked:
            words = "\n".join(f"{question} {answer}" for question, answer in answers.items())
        parts[at] = words or part
    return parts if parts != fields.rows(content) else []


def _turn(record: Json, role: str, text: str, stem: str) -> Turn:
    ident, forked = fields.as_name(record.get("uuid")), record.get("forkedFrom")
    first = fields.as_name(forked.get("messageUuid")) if isinstance(forked, dict) else None
    return Turn(
        text=text,
        role=role,
        time=fields.iso(record.get("timestamp")),
        session=fields.as_name(record.get("sessionId")) or stem,
        turn=ident,
        key=first or ident,
        cwd=fields.as_name(record.get("cwd")),
        branch=fields.as_name(record.get("gitBranch")),
    )
