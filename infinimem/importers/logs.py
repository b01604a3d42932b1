"""Session logs of Claude Code and Codex, a JSON object a line.

What the person typed and what the assistant said come in, words of a refusal and answers to questions too.
Calls of tools, thinking, sub-agents, what the program put in (instructions, commands, reminders, summaries),
memory that a hook recalled and prompts that were edited or taken back do not: turns are held to the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers import fields
from infinimem.importers.fields import Format, Json, Skipped, as_name, at, has, iso, objects, rows
from infinimem.model import Turn

# ── Claude Code: ~/.claude/projects/<project>/<session>.jsonl ───────────────────────────────────

_SPOKEN = ("user", "assistant")
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)\n?", re.DOTALL)
_MEMORY = re.compile(r"</?user-memory-input>")
_NOTICE = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification)>|\[Request interrupted by user)"
)
_OF_THE_PROGRAM = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_REFUSED = re.compile(
    r"(?:The user doesn.t want to|Permission for this tool use was denied)[^\n]*the user said:\s*"
)
_ASKS, _CLARIFY = "AskUserQuestion", "The user wants to clarify these questions"
_AFTER = "\n\nNote: The user's next message"  # what the program puts after the words of a refusal


def _is_claude_code(record: Json) -> bool:
    return record.get("type") in _SPOKEN and has(record, message=dict, sessionId=str)


def _claude_code(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of a log; what a resumed or forked session repeats has the key that it had."""
    spoken: list[Turn] = []
    queued: dict[str, int] = {}  # prompt -> where it stands, until the record comes that it has of its own
    prompts: dict[str, str] = {}  # id of a message -> the last prompt that answers it
    away: set[str] = set()  # ids of edited prompts and of what followed them
    parents: dict[str, str] = {}
    asked: set[str] = set()  # ids of calls that put questions to the person
    for record in objects(records, skipped):
        ident, parent = as_name(record.get("uuid")), as_name(record.get("parentUuid"))
        if ident and parent:
            parents[ident] = parent
        parts, before = _spoken(record, asked, skipped), skipped.total()
        text, reminders = _REMINDER.subn("", fields.text_of(parts, skipped))
        text = _MEMORY.sub("", text)  # what was typed behind "#"
        skipped[fields.NOTICES] += reminders
        if _NOTICE.match(text):
            skipped[fields.NOTICES] += 1
            continue
        if parts is None or (not text.strip() and skipped.total() > before):
            continue  # nobody said it, or it held nothing else, and that is counted
        turn = Turn(
            text,
            "assistant" if record.get("type") == "assistant" else "user",
            time=iso(record.get("timestamp")),
            session=as_name(record.get("sessionId")) or stem,
            turn=ident,
            key=as_name(at(record, "forkedFrom", "messageUuid")) or ident,
            cwd=as_name(record.get("cwd")),
            branch=as_name(record.get("gitBranch")),
        )
        if text in queued and "attachment" in record:
            spoken[queued.pop(text)] = turn
            continue
        if "operation" in record:
            queued[text] = len(spoken)
        spoken.append(turn)
        results = any(isinstance(part, str) or at(part, "type") == "tool_result" for part in rows(parts))
        if ident and parent and record.get("type") == "user" and not results:
            away.add(prompts.get(parent, ""))
            prompts[parent] = ident
    for ident, parent in parents.items():
        if parent in away:
            away.add(ident)
    skipped[fields.EDITED] += sum(turn.turn in away for turn in spoken)
    yield from (turn for turn in spoken if turn.turn not in away)


def _spoken(record: Json, asked: set[str], skipped: Skipped) -> Any:
    """Return the content of a record in which somebody spoke; None for titles, snapshots of files and events.
    `asked` gathers the ids of calls that ask the person."""
    message, attached, kind = record.get("message"), record.get("attachment"), record.get("type")
    if record.get("operation") == "remove" and record.get("reason") in (None, "absorbed_mid_turn"):
        return record["content"] if has(record, content=str) else None
    if at(attached, "type") == "queued_command":
        by_person = not has(attached, origin=dict) or at(attached, "origin", "kind") == "human"
        if by_person and at(attached, "commandMode") in (None, "prompt") and not record.get("isSidechain"):
            return at(attached, "prompt") or ""
        skipped[fields.SIDE if record.get("isSidechain") else fields.NOTICES] += 1
        return None
    if kind not in _SPOKEN:
        return None
    content = at(message, "content") or ""
    if kind == "user" and (typed := _typed(record, content, asked)):
        return typed
    calls = (part for part in rows(content) if at(part, "type") == "tool_use")
    asked.update(str(call.get("id")) for call in calls if call.get("name") == _ASKS)
    if record.get("isSidechain"):
        skipped[fields.SIDE] += 1
        return None
    synthetic = not isinstance(message, dict) or message.get("model") == "<synthetic>"
    if synthetic or any(record.get(flag) for flag in _OF_THE_PROGRAM):
        skipped[fields.NOTICES] += 1
        return None
    return content


def _typed(record: Json, content: Any, asked: set[str]) -> list[Any]:
    """Return a message's parts with what the person typed instead of results; none if that is nothing. A
    result may quote anything: only an error is a refusal, and only a call that asks is answered."""
    answers = at(record, "toolUseResult", "answers")
    parts = list(rows(content))
    for number, part in enumerate(parts):
        if at(part, "type") != "tool_result":
            continue
        text, words = fields.text_of(part.get("content"), Counter()), ""
        refused = _REFUSED.match(text) if part.get("is_error") is True else None
        if refused and not text.startswith(_CLARIFY, refused.end()):
            words = text[refused.end() :].partition(_AFTER)[0].strip()
        elif isinstance(answers, dict) and str(part.get("tool_use_id")) in asked:
            words = "\n".join(f"{question} {answer}" for question, answer in answers.items())
        parts[number] = words or part
    return parts if parts != rows(content) else []


CLAUDE_CODE = Format(_is_claude_code, _claude_code, is_log=True)

# ── Codex: ~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl ───────────────────────────────

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_INJECTED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|instructions|skills?|"
    r"skills_instructions|apps_instructions|plugins_instructions|permissions[ _]instructions|app-context|"
    r"collaboration_mode|user_shell_command|turn_aborted|subagent_notification|goal_context|hook_prompt|"
    r"realtime_conversation|personality_spec|model_switch)\b)",
    re.IGNORECASE,
)
_REQUEST = "## My request for Codex:"  # ends what an editor tells of open files; the person's words follow


def _is_codex(record: Json) -> bool:
    if record.get("type") in _ENVELOPES:
        return has(record, payload=dict)
    return {"id", "timestamp", "instructions"} <= record.keys()


def _codex(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of a log, whose lines are envelopes (type, payload), in early versions payloads alone.
    Events repeat the messages for the screen. The log of a sub-agent holds nobody's words."""
    session, of_agent = "", False
    time = cwd = branch = None
    spoken: list[Turn] = []
    for record in objects(records, skipped):
        envelope, payload = record.get("type"), record.get("payload", record)
        if not isinstance(payload, dict):
            continue
        kind, count = payload.get("type"), payload.get("num_turns")
        if envelope == "event_msg":
            if kind == "thread_rolled_back" and isinstance(count, int) and count > 0:
                prompts = [number for number, turn in enumerate(spoken) if turn.role == "user"]
                begin = prompts[-min(count, len(prompts))] if prompts else len(spoken)
                skipped[fields.EDITED] += len(spoken) - begin  # prompts and what followed them
                del spoken[begin:]
            continue
        time = iso(record.get("timestamp")) or time
        cwd = as_name(payload.get("cwd")) or cwd
        branch = as_name(at(payload, "git", "branch")) or branch
        role, _ = fields.role_of(payload.get("role"))
        if not session and (envelope == "session_meta" or "instructions" in payload):
            session = as_name(payload.get("id")) or stem
            of_agent = at(payload, "source", "subagent") is not None
            skipped[fields.PROMPTS] += bool(payload.get("instructions") or payload.get("base_instructions"))
        elif envelope == "compacted" or "compaction" in str(kind) or kind == "ghost_snapshot":
            skipped[fields.NOTICES] += 1
        elif kind != "message":
            skipped[fields.THINKING if kind == "reasoning" else fields.TOOLS] += kind is not None
        elif of_agent or role not in ("user", "assistant"):
            skipped[fields.SIDE if of_agent else fields.PROMPTS] += 1
        else:
            content = payload.get("content")
            given = _given(content, skipped) if role == "user" else content
            if given != []:  # else it held nothing that was typed, and that is counted
                text, ident = fields.text_of(given, skipped), as_name(payload.get("id"))
                turn = Turn(
                    text, role, time=time, session=session or stem, turn=ident, cwd=cwd, branch=branch
                )
                spoken.append(turn)
    yield from spoken


def _given(content: Any, skipped: Skipped) -> list[Any]:
    """Return the parts of a message that the person gave."""
    parts = [at(part, "text") or part for part in rows(content) or [content]]
    injected = [isinstance(part, str) and bool(_INJECTED.match(part)) for part in parts]
    skipped[fields.PROMPTS] += sum(injected)
    return [
        part.rpartition(_REQUEST)[2].strip() if isinstance(part, str) and _REQUEST in part else part
        for part, left_out in zip(parts, injected, strict=True)
        if not left_out
    ]


CODEX = Format(_is_codex, _codex, is_log=True)
