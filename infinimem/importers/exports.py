"""JSON formats. docs/IMPORTS.md says what comes in; all that is left out is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from infinimem.errors import UsageError
from infinimem.importers import fields, markdown
from infinimem.importers.fields import (
    MARKS,
    Format,
    Json,
    Skipped,
    as_name,
    at,
    first,
    has,
    iso,
    rows,
    turn_of,
)
from infinimem.importers.messengers import is_telegram, telegram_turns, text_of_html
from infinimem.importers.reading import stem_of
from infinimem.model import Turn

# ── data sets ───────────────────────────────────────────────────────────────────────────────────

_SESSION_KEY = re.compile(r"session_([1-9]\d*)")


def _locomo(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    (name,) = FORMATS["locomo"].names(record, stem)
    talk, numbers = _talk(record)
    for number in numbers:
        time = fields.moment(talk.get(f"session_{number}_date_time"))
        for message in fields.objects(talk[f"session_{number}"], skipped):
            text = fields.text_of(message.get("text"), skipped)
            if isinstance(caption := message.get("blip_caption"), str) and caption.strip():
                text += f" [shares a photo: {caption}]"
            speaker, ident = as_name(message.get("speaker")), as_name(message.get("dia_id"))
            yield Turn(text, "user", speaker, time, f"{name}-s{number:02d}", ident)


def _talk(record: Json) -> tuple[Json, list[int]]:
    """Return what holds the sessions, and their numbers."""
    talk = record["conversation"] if has(record, conversation=dict) else record
    keys = filter(None, map(_SESSION_KEY.fullmatch, talk))
    return talk, sorted(int(key[1]) for key in keys if rows(talk[key[0]]))


def _longmemeval(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the history of a question by its dates; turn ids are those of the benchmark's own scorer."""
    lists = (rows(record.get(f"haystack_{name}")) for name in ("sessions", "session_ids", "dates"))
    dated = [
        (fields.moment(date) or "", number, as_name(name) or f"{stem}-{number}", rows(session))
        for number, (session, name, date) in enumerate(zip_longest(*lists), 1)
    ]
    for time, _, name, session in sorted(dated, key=lambda row: row[:2]):
        for position, message in enumerate(session, 1):
            role, speaker = fields.role_of(at(message, "role"))
            text = fields.text_of(at(message, "content"), skipped)
            yield Turn(text, role, speaker, time or None, name, f"{name}_{position}")


def _source(record: Json, stem: str) -> tuple[str, ...]:
    return (as_name(at(record, "metadata", "source")) or stem,)


# ── memories of other programs ──────────────────────────────────────────────────────────────────

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
_OWN = ("hash", "created_at", "updated_at", "metadata", "categories", *_OWNERS)


def _is_mem0(record: Any) -> bool:
    memory = next(iter(rows(at(record, "results"))), record)
    return has(memory, memory=str) and any(name in memory for name in _OWN)


def _mem0(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield memories as get_all() and its pages give them; a model drew each, so an assistant said it."""
    for memory in (one for record in records for one in rows(at(record, "results")) or [record]):
        owner = next((name for key in _OWNERS if (name := as_name(at(memory, key)))), None)
        time = iso(at(memory, "updated_at") or at(memory, "created_at"))
        text = fields.text_of(at(memory, "memory"), skipped)
        yield Turn(text, "assistant", time=time, session=f"mem0 {owner}" if owner else stem)


def _is_mcp(record: Any) -> bool:
    part = has(record, entityType=str, observations=list) or has(record, relationType=str)
    return part or has(record, entities=list, relations=list)


def _mcp(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield an entity or a relation a line, or what read_graph gives."""
    if "entities" in record:
        for part in (*record["entities"], *record["relations"]):
            if _is_mcp(part):
                yield from _mcp(part, stem, skipped)
            else:
                skipped[fields.OTHER] += 1
        return
    kind = "relationType" if "relationType" in record else "entityType"
    # The server's examples join words by "_".
    words = [(as_name(record.get(key)) or "?").replace("_", " ") for key in ("name", "from", kind, "to")]
    name = words[0]
    texts = [text for text in rows(record.get("observations")) if isinstance(text, str) and text.strip()]
    texts = [text if name.casefold() in text.casefold() else f"{name}: {text}" for text in texts]
    if kind == "relationType":
        texts = [" ".join(words[1:])]
    for text in texts or [f"{name} ({words[2]})"]:
        yield Turn(text, "assistant", session=stem)


# ── Gemini ──────────────────────────────────────────────────────────────────────────────────────


def _is_gemini(record: Json) -> bool:
    programs = [record.get("header"), *rows(record.get("products"))]
    return {"title", "time"} <= record.keys() and any(
        str(one).startswith(("Gemini", "Bard")) for one in programs
    )


def _gemini(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield My Activity of Gemini Apps, newest first in the file, oldest first here; a day is a session."""
    listed = list(fields.objects(records, skipped))
    known = [record for record in reversed(listed) if _is_gemini(record)]
    skipped[fields.OTHER] += len(listed) - len(known)
    for record in sorted(known, key=lambda record: iso(record["time"]) or ""):
        title, time = str(record["title"]), iso(record["time"])
        session = fields.day_of_chat("Gemini", time)
        answers = [at(one, "html") for one in rows(record.get("safeHtmlItem"))]
        files = (record.get(key) for key in ("attachedFiles", "imageFile", "audioFiles"))
        skipped[fields.ATTACHED] += sum(len(rows(file) or [0]) for file in files if file)
        asked = MARKS["gemini asked"].match(title)
        if not asked and not answers:
            skipped[fields.NOTICES] += 1  # "Used an assistant feature", "Gave feedback"
            continue
        yield Turn(title[asked.end() :] if asked else title, time=time, session=session)
        for html in answers:
            if isinstance(html, str):
                yield Turn(text_of_html(html), "assistant", time=time, session=session)


# ── messages with a role and a text ─────────────────────────────────────────────────────────────

_LISTS = ("messages", "turns", "conversations", "conversation")
_TEXT = ("content", "text", "value", "message")
_SESSION = ("session", "session_id", "conversation_id", "thread_id")


def _listed(record: Json) -> list[Any] | None:
    return next((value for key in _LISTS if isinstance(value := record.get(key), list)), None)


def _is_openai(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if (inner := _listed(record)) is not None:
        return any(map(_is_openai, inner))
    has_text = isinstance(first(record, *_TEXT), str | list) or "tool_calls" in record
    return has_text and (first(record, *fields.ROLE) is not None or "speaker" in record)


def _openai_names(record: Json, stem: str) -> tuple[str, ...]:
    of_list = ("id", "title", "name") if _listed(record) is not None else ()
    return fields.named_by(*_SESSION, *of_list)(record, stem)


def _openai(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, time, inner = _openai_names(record, stem)[0], iso(first(record, *fields.TIME)), _listed(record)
    for message in [record] if inner is None else fields.open_branch(inner, None, skipped):
        if not _is_openai(message):
            skipped["records that are no message"] += 1
            continue
        role, _ = fields.role_of(first(message, *fields.ROLE))
        if role == "system" or "tool_call_id" in message:
            skipped[fields.PROMPTS if role == "system" else fields.TOOLS] += 1
            continue
        text = fields.text_of(first(message, *_TEXT), skipped)
        calls = bool(message.get("tool_calls"))
        skipped[fields.TOOLS] += calls
        if text.strip() or not calls:
            yield turn_of(message, text, as_name(first(message, *_SESSION)) or session, time)


Message = Mapping[str, Any]
"""`{"role": …, "content": …}`; content is a text or a list of parts. Fields of `Turn` may stand beside."""


def chat_turns(said: Iterable[Turn | Message]) -> Iterator[Turn]:
    """Yield turns unchanged, and messages as turns; parts of messages may be objects of the APIs' SDKs.
    UsageError if a message has no role or no content, or its role is unknown."""
    for message in said:
        if not isinstance(message, Mapping):
            yield message
            continue
        role = message.get("role")
        if not isinstance(role, str) or message.keys().isdisjoint(("content", "tool_calls")):
            raise UsageError('a message needs a role and content; write {"role": "user", "content": "…"}')
        if role.lower() not in fields.ROLES:
            raise UsageError(f"role {role[:40]!r} is unknown; write user, assistant or tool")
        if fields.ROLES[role.lower()] == "tool":
            continue
        content = message.get("content")
        if isinstance(content, list | tuple):
            content = [part.model_dump() if hasattr(part, "model_dump") else part for part in content]
        told = _openai({**message, "content": content or ""}, "", Counter())
        given = first(message, *fields.TIME)
        for turn in told:
            if turn.text.strip():  # a time that is none goes on as it is, and is refused with the turn
                yield turn if turn.time or given is None else replace(turn, time=str(given))


# ── ChatGPT ─────────────────────────────────────────────────────────────────────────────────────


def _is_chatgpt(record: Json) -> bool:
    return has(record, mapping=dict) and all(isinstance(node, dict) for node in record["mapping"].values())


def _chatgpt(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, time = fields.titled(FORMATS["chatgpt"].names(record, stem)), iso(record.get("create_time"))
    nodes = [
        {**(node["message"] if has(node, message=dict) else {}), "id": ident, "parent": node.get("parent")}
        for ident, node in record["mapping"].items()
    ]
    for message in fields.open_branch(nodes, record.get("current_node"), skipped):
        role, _ = fields.role_of(message.get("author"))
        if why := _unspoken(message, role):
            skipped[why] += "author" in message  # the root of the tree holds nothing
            continue
        if "multimodal" not in (at(message, "content", "content_type") or ""):
            skipped[fields.ATTACHED] += len(rows(at(message, "metadata", "attachments")))
        text = without_citations(fields.text_of(rows(at(message, "content", "parts")), skipped))
        yield turn_of(message, text, session, time)


def _unspoken(message: Json, role: str) -> str | None:
    """Return why a message is left out; None for what the person saw as said."""
    content = message.get("content")
    kind = content.get("content_type", "text") if isinstance(content, dict) else ""
    aside = role == "tool" or message.get("recipient") not in (None, "all")
    if role == "system" or kind in ("user_editable_context", "model_editable_context"):
        return fields.PROMPTS
    if kind in ("thoughts", "reasoning_recap"):
        return fields.THINKING
    if aside or kind not in ("text", "multimodal_text"):
        return fields.TOOLS
    hidden = at(message, "metadata", "is_visually_hidden_from_conversation")
    return fields.HIDDEN if hidden or message.get("weight") == 0 else None


def without_citations(text: str) -> str:
    """Give the text as its reader saw it: what a mark showed as a link stays, what it pointed to goes."""
    for hint, mark, kept in fields.TOLD["citations"]:
        if hint in text:
            text = re.sub(mark, kept, text)
    return text


# ── Claude ──────────────────────────────────────────────────────────────────────────────────────

_MEMORY = "Claude's memory"
_PROJECT = ("prompt_template", "docs", "is_starter_project", "description")


def _is_claude(record: Json) -> bool:
    if has(record, chat_messages=list) or has(record, conversations_memory=str):
        return True
    return "uuid" in record and sum(key in record for key in _PROJECT) > 1


def _claude_names(record: Json, stem: str) -> tuple[str, ...]:
    return (_MEMORY,) if "conversations_memory" in record else fields.named_by("uuid", "name")(record, stem)


def _claude(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, time = fields.titled(_claude_names(record, stem)), iso(record.get("created_at"))
    if "conversations_memory" in record:
        memories = {_MEMORY: record["conversations_memory"]}
        if has(record, project_memories=dict):
            projects = record["project_memories"].items()
            memories |= {f"{_MEMORY} of project {ident[:8]}": text for ident, text in projects}
        for name, text in memories.items():
            yield from markdown.turns(fields.text_of(text, skipped), name, skipped, role="assistant")
    elif "chat_messages" not in record:
        yield from _project(record, session, time, skipped)
    else:
        leaf = record.get("current_leaf_message_uuid")
        messages = fields.open_branch(rows(record["chat_messages"]), leaf, skipped)
        for message in fields.objects(messages, skipped):
            attached = rows(message.get("attachments"))
            contents = (at(one, "extracted_content") for one in attached)
            pasted = [text for text in contents if isinstance(text, str) and text.strip()]
            skipped[fields.ATTACHED] += len(attached) - len(pasted) + len(rows(message.get("files")))
            # `content` is the later and fuller form; older exports have `text` alone. Where both are there
            # `text` holds a stand-in for each block that is not text.
            words = fields.text_of(message.get("content") or message.get("text"), skipped)
            yield turn_of(message, fields.text_of([words, *pasted], skipped), session, time)


def _project(record: Json, session: str, time: str | None, skipped: Skipped) -> Iterator[Turn]:
    if record.get("is_starter_project"):
        skipped["projects that came with the program"] += 1
        return
    given = ({"content": record.get(key)} for key in ("description", "prompt_template"))
    for doc in (*given, *rows(record.get("docs"))):
        text, title = fields.text_of(at(doc, "content"), skipped), stem_of(as_name(at(doc, "filename")) or "")
        written = iso(at(doc, "created_at")) or time
        yield from markdown.turns(text, session, skipped, title=title or None, time=written)


# ── Claude Code: ~/.claude/projects/<project>/<session>.jsonl ───────────────────────────────────

_SPOKEN = ("user", "assistant")
_OF_THE_PROGRAM = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
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
    for record in fields.objects(records, skipped):
        ident, parent = as_name(record.get("uuid")), as_name(record.get("parentUuid"))
        if ident and parent:
            parents[ident] = parent
        parts, before = _spoken(record, asked, skipped), skipped.total()
        text, reminders = MARKS["claude reminder"].subn("", fields.text_of(parts, skipped))
        text = MARKS["claude marked"].sub("", text)  # what was typed behind "#"
        skipped[fields.NOTICES] += reminders
        if MARKS["claude notice"].match(text):
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
    """Return the content of a record in which somebody spoke, or None; `asked` gathers calls that ask."""
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
    """Return a message's parts with what the person typed instead of results; none if that is nothing."""
    answers = at(record, "toolUseResult", "answers")
    parts = list(rows(content))
    for number, part in enumerate(parts):
        if at(part, "type") != "tool_result":
            continue
        text, words = fields.text_of(part.get("content"), Counter()), ""
        refused = MARKS["claude refused"].match(text) if part.get("is_error") is True else None
        if refused and not text.startswith(_CLARIFY, refused.end()):
            words = text[refused.end() :].partition(_AFTER)[0].strip()
        elif isinstance(answers, dict) and str(part.get("tool_use_id")) in asked:
            words = "\n".join(f"{question} {answer}" for question, answer in answers.items())
        parts[number] = words or part
    return parts if parts != rows(content) else []


# ── Codex: ~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl ───────────────────────────────

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_REQUEST = "## My request for Codex:"  # ends what an editor tells of open files; the person's words follow


def _is_codex(record: Json) -> bool:
    if record.get("type") in _ENVELOPES:
        return has(record, payload=dict)
    return {"id", "timestamp", "instructions"} <= record.keys()


def _codex(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of a log, whose lines are envelopes (type, payload), or early on payloads alone."""
    session, of_agent = "", False
    time = cwd = branch = None
    spoken: list[Turn] = []
    for record in fields.objects(records, skipped):
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
    parts = [at(part, "text") or part for part in rows(content) or [content]]
    injected = [isinstance(part, str) and bool(MARKS["codex injected"].match(part)) for part in parts]
    skipped[fields.PROMPTS] += sum(injected)
    return [
        part.rpartition(_REQUEST)[2].strip() if isinstance(part, str) and _REQUEST in part else part
        for part, left_out in zip(parts, injected, strict=True)
        if not left_out
    ]


# ── all ─────────────────────────────────────────────────────────────────────────────────────────

FORMATS: Mapping[str, Format] = {
    "locomo": Format(lambda record: bool(_talk(record)[1]), _locomo, fields.named_by("sample_id")),
    "longmemeval": Format(
        lambda record: has(record, haystack_sessions=list), _longmemeval, fields.named_by("question_id")
    ),
    "memoryagentbench": Format(
        lambda record: has(record, context=str, questions=list),
        lambda record, stem, skipped: markdown.turns(record["context"], _source(record, stem)[0], skipped),
        _source,
    ),
    "chatgpt": Format(_is_chatgpt, _chatgpt, fields.named_by("conversation_id", "id", "title")),
    "claude": Format(_is_claude, _claude, _claude_names),
    "mcp-memory": Format(_is_mcp, _mcp),
    "claude-code": Format(_is_claude_code, _claude_code, is_log=True),
    "codex": Format(_is_codex, _codex, is_log=True),
    "gemini": Format(_is_gemini, _gemini, is_log=True),
    "mem0": Format(_is_mem0, _mem0, is_log=True),
    "telegram": Format(is_telegram, telegram_turns, is_log=True),
    "openai": Format(_is_openai, _openai, _openai_names),
}
"""Asked in this order: the particular shapes before the general one."""
