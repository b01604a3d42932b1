"""Codex's session logs: ~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl, a JSON object a line.

Lines are envelopes (type, payload) of what went to the model and came from it; in logs of early versions the
payloads stand alone. Messages come in; instructions, surroundings, reasoning and tools do not. Events repeat
the messages for the screen and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers import fields
from infinimem.importers.branches import EDITED
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_INJECTED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|instructions|skills?|"
    r"skills_instructions|apps_instructions|plugins_instructions|permissions[ _]instructions|app-context|"
    r"collaboration_mode|user_shell_command|turn_aborted|subagent_notification|goal_context|hook_prompt|"
    r"realtime_conversation|personality_spec|model_switch)\b)",
    re.IGNORECASE,
)
_REQUEST = "## My request for Codex:"
"""Ends what an editor tells of open files; the person's words follow."""


def matches(record: Json) -> bool:
    if record.get("type") in _ENVELOPES:
        return isinstance(record.get("payload"), dict)
    return {"id", "timestamp", "instructions"} <= record.keys()


def turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The turns of a log, held to its end, for prompts may be taken back.

    The first line names the session; the log of a sub-agent holds nobody's words.
    """
    session, time, of_agent = "", None, False
    cwd = branch = None
    spoken: list[Turn] = []
    for record in records:
        if not isinstance(record, dict):
            skipped[fields.OTHER] += 1
            continue
        payload = record.get("payload", record)
        if not isinstance(payload, dict):
            continue
        if record.get("type") == "event_msg":
            if payload.get("type") == "thread_rolled_back":
                skipped[EDITED] += _roll_back(spoken, payload.get("num_turns"))
            continue
        time = fields.iso(record.get("timestamp")) or time
        cwd = fields.as_name(payload.get("cwd")) or cwd
        if isinstance(git := payload.get("git"), dict):
            branch = fields.as_name(git.get("branch"))
        if not session and ("instructions" in payload or record.get("type") == "session_meta"):
            session = fields.as_name(payload.get("id")) or stem
            source = payload.get("source")
            of_agent = isinstance(source, dict) and "subagent" in source
            skipped[fields.PROMPTS] += bool(payload.get("instructions") or payload.get("base_instructions"))
            continue
        kind = payload.get("type")
        if kind != "message":
            skipped[_why(record.get("type"), kind)] += kind is not None or record.get("type") == "compacted"
            continue
        role, _ = fields.role_of(payload.get("role"))
        if of_agent or role not in ("user", "assistant"):
            skipped[fields.SIDE if of_agent else fields.PROMPTS] += 1
            continue
        text = _typed(payload.get("content"), skipped) if role == "user" else payload.get("content")
        if text == []:
            continue  # it held nothing that was typed, and that is counted
        spoken.append(
            Turn(
                text=fields.text_of(text, skipped),
                role=role,
                time=time,
                session=session or stem,
                turn=fields.as_name(payload.get("id")),
                cwd=cwd,
                branch=branch,
            )
        )
    yield from spoken


def _roll_back(spoken: list[Turn], prompts: object) -> int:
    """Drop the last prompts and what followed them, which the person took back; returns how many turns."""
    asked = [at for at, turn in enumerate(spoken) if turn.role == "user"]
    if not isinstance(prompts, int) or prompts < 1 or not asked:
        return 0
    before = len(spoken)
    del spoken[asked[-min(prompts, len(asked))] :]
    return before - len(spoken)


def _why(envelope: object, kind: object) -> str:
    if envelope == "compacted" or "compaction" in str(kind) or kind == "ghost_snapshot":
        return fields.NOTICES
    return fields.THINKING if kind == "reasoning" else fields.TOOLS


def _typed(content: Any, skipped: Skipped) -> list[Any]:
    """The parts of a message that the person gave."""
    found = []
    for part in fields.rows(content) or [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            if _INJECTED.match(text):
                skipped[fields.PROMPTS] += 1
                continue
            part = text.rpartition(_REQUEST)[2].strip() if _REQUEST in text else text
        found.append(part)
    return found
