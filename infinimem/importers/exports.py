"""JSON formats: data sets, memories of other programs, Gemini, messages with a role, ChatGPT, Claude.

Of an exported conversation only the branch that the person last saw is read; edited and regenerated ones are
counted, not imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from infinimem.importers import fields, markdown
from infinimem.importers.fields import Format, Json, Skipped, as_name, at, first, iso, moment, named_by, rows
from infinimem.importers.messengers import text_of_html
from infinimem.importers.reading import stem_of
from infinimem.model import Turn

# ── data sets ───────────────────────────────────────────────────────────────────────────────────

_SESSION_KEY = re.compile(r"session_(\d+)")


def _locomo(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    (name,) = LOCOMO.names(record, stem)
    for number, session in _sessions(record).items():
        dated = f"session_{number}_date_time"
        time = moment(record.get(dated) or at(record, "conversation", dated))
        for message in fields.objects(session, skipped):
            text = fields.text_of(message.get("text"), skipped)
            if isinstance(caption := message.get("blip_caption"), str) and caption.strip():
                text += f" [shares a photo: {caption}]"
            speaker, ident = as_name(message.get("speaker")), as_name(message.get("dia_id"))
            yield Turn(text, "user", speaker, time, f"{name}-s{number:02d}", ident)


def _sessions(record: Json) -> dict[int, list[Any]]:
    """Return sessions by number, of an entry of the official list or of a conversation alone."""
    inner = record.get("conversation")
    talk = inner if isinstance(inner, dict) else record
    keys = {int(key[1]): key[0] for key in map(_SESSION_KEY.fullmatch, talk) if key and rows(talk[key[0]])}
    return {number: talk[keys[number]] for number in sorted(keys)}


LOCOMO = Format(lambda record: bool(_sessions(record)), _locomo, named_by("sample_id"))


def _longmemeval(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the history of a question in the order of its dates, as a memory is written; turn ids are those
    of the benchmark's own scorer: session id, "_", position from 1."""
    lists = (rows(record.get(f"haystack_{name}")) for name in ("sessions", "session_ids", "dates"))
    dated = [
        (moment(date) or "", number, as_name(name) or f"{stem}-{number}", rows(session))
        for number, (session, name, date) in enumerate(zip_longest(*lists), 1)
    ]
    for time, _, name, session in sorted(dated, key=lambda row: row[:2]):
        for position, message in enumerate(session, 1):
            role, speaker = fields.role_of(at(message, "role"))
            text = fields.text_of(at(message, "content"), skipped)
            yield Turn(text, role, speaker, time or None, name, f"{name}_{position}")


LONGMEMEVAL = Format(
    lambda record: isinstance(record.get("haystack_sessions"), list), _longmemeval, named_by("question_id")
)


def _bench_names(record: Json, stem: str) -> tuple[str, ...]:
    return (as_name(at(record, "metadata", "source")) or stem,)


MEMORYAGENTBENCH = Format(
    lambda record: isinstance(record.get("context"), str) and isinstance(record.get("questions"), list),
    lambda record, stem, skipped: markdown.turns(record["context"], _bench_names(record, stem)[0], skipped),
    _bench_names,
)

# ── memories of other programs ──────────────────────────────────────────────────────────────────

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
_OWN = ("hash", "created_at", "updated_at", "metadata", "categories", *_OWNERS)


def _is_mem0(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if memories := rows(record.get("results")):
        return _is_mem0(memories[0])
    return isinstance(record.get("memory"), str) and any(name in record for name in _OWN)


def _mem0(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield memories as get_all() and its pages give them: a list, or an object with it under `results`. A
    model drew each from a talk, so an assistant said it; one that was changed under its id is another
    statement."""
    for memory in (one for record in records for one in rows(at(record, "results")) or [record]):
        owner = next((name for key in _OWNERS if (name := as_name(at(memory, key)))), None)
        time = iso(at(memory, "updated_at") or at(memory, "created_at"))
        text = fields.text_of(at(memory, "memory"), skipped)
        yield Turn(text, "assistant", time=time, session=f"mem0 {owner}" if owner else stem)


MEM0 = Format(_is_mem0, _mem0, is_log=True)


def _is_mcp(record: Json) -> bool:
    if isinstance(record.get("entities"), list) and isinstance(record.get("relations"), list):
        return True
    entity = isinstance(record.get("entityType"), str) and isinstance(record.get("observations"), list)
    return entity or isinstance(record.get("relationType"), str)


def _mcp(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the MCP memory server's graph: an entity or a relation a line, or what its read_graph gives. An
    observation says little without the name of its entity ("prefers tea"), which is set before it."""
    if "entities" in record:
        for part in fields.objects((*record["entities"], *record["relations"]), skipped):
            if _is_mcp(part):
                yield from _mcp(part, stem, skipped)
            else:
                skipped[fields.OTHER] += 1
        return
    kind = "relationType" if "relationType" in record else "entityType"
    # The server's examples join words by "_".
    words = [(as_name(record.get(key)) or "?").replace("_", " ") for key in ("name", "from", kind, "to")]
    name = words[0]
    told = [text for text in rows(record.get("observations")) if isinstance(text, str) and text.strip()]
    if kind == "relationType":
        texts = [" ".join(words[1:])]
    else:
        texts = [text if name.casefold() in text.casefold() else f"{name}: {text}" for text in told]
    for text in texts or [f"{name} ({words[2]})"]:
        yield Turn(text, "assistant", session=stem)


MCP_MEMORY = Format(_is_mcp, _mcp)

# ── Gemini ──────────────────────────────────────────────────────────────────────────────────────

_ASKED = re.compile(r"(?:Prompted|Asked|Said)(?: with)?:?\s+")


def _is_gemini(record: Json) -> bool:
    of = [record.get("header"), *rows(record.get("products"))]
    return (
        "title" in record and "time" in record and any(str(one).startswith(("Gemini", "Bard")) for one in of)
    )


def _gemini(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield Google Takeout's My Activity of Gemini Apps: what was asked and what was answered, newest first
    in the file and oldest first here. A record belongs to no conversation: a day is a session."""
    dated = []
    for number, record in enumerate(fields.objects(records, skipped)):
        if _is_gemini(record):
            dated.append((iso(record["time"]) or "", -number, record))
        else:
            skipped[fields.OTHER] += 1
    for time, _, record in sorted(dated, key=lambda row: row[:2]):
        title, session = str(record["title"]), fields.day_of_chat("Gemini", time)
        answers = [at(one, "html") for one in rows(record.get("safeHtmlItem"))]
        files = (record.get(key) for key in ("attachedFiles", "imageFile", "audioFiles"))
        skipped[fields.ATTACHED] += sum(len(rows(file) or [0]) for file in files if file)
        asked = _ASKED.match(title)
        if not asked and not answers:
            skipped[fields.NOTICES] += 1  # "Used an assistant feature", "Gave feedback"
            continue
        yield Turn(title[asked.end() :] if asked else title, time=time or None, session=session)
        for html in answers:
            if isinstance(html, str):
                yield Turn(text_of_html(html), "assistant", time=time or None, session=session)


GEMINI = Format(_is_gemini, _gemini, is_log=True)

# ── messages with a role and a text ─────────────────────────────────────────────────────────────

_LISTS = ("messages", "turns", "conversations", "conversation")
_ROLE = ("role", "from", "sender", "author")
_TEXT = ("content", "text", "value", "message")
_TIME = ("time", "timestamp", "created_at", "create_time", "date", "created")
_SESSION = ("session", "session_id", "conversation_id", "thread_id")


def _listed(record: Json) -> list[Any] | None:
    return next((value for key in _LISTS if isinstance(value := record.get(key), list)), None)


def _is_openai(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if (inner := _listed(record)) is not None:
        return any(map(_is_openai, inner))
    has_text = isinstance(first(record, *_TEXT), str | list) or "tool_calls" in record
    return has_text and (first(record, *_ROLE) is not None or "speaker" in record)


def _openai_names(record: Json, stem: str) -> tuple[str, ...]:
    return named_by(*_SESSION, *(() if _listed(record) is None else ("id", "title", "name")))(record, stem)


def _openai(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield OpenAI's shape and the usual variations on it: one message, or an object with a list of them.

    Fields of `Turn` (speaker, time, session, turn, key) are read too, so that anything can be brought in by
    writing one JSON object a line. System prompts, tool calls and what answers a tool call are left out.
    """
    session, time, inner = _openai_names(record, stem)[0], iso(first(record, *_TIME)), _listed(record)
    for message in [record] if inner is None else fields.open_branch(inner, None, skipped):
        if not _is_openai(message):
            skipped["records that are no message"] += 1
            continue
        role, speaker = fields.role_of(first(message, *_ROLE))
        if role == "system" or "tool_call_id" in message:
            skipped[fields.PROMPTS if role == "system" else fields.TOOLS] += 1
            continue
        text = fields.text_of(first(message, *_TEXT), skipped)
        if message.get("tool_calls"):
            skipped[fields.TOOLS] += 1
            if not text.strip():
                continue
        yield Turn(
            text,
            role,
            as_name(first(message, "speaker", "name")) or speaker,
            iso(first(message, *_TIME)) or time,
            as_name(first(message, *_SESSION)) or session,
            as_name(first(message, "turn", "id", "message_id")),
            as_name(message.get("key")),
        )


OPENAI = Format(_is_openai, _openai, _openai_names)


# ── ChatGPT ─────────────────────────────────────────────────────────────────────────────────────


def _is_chatgpt(record: Json) -> bool:
    mapping = record.get("mapping")
    return isinstance(mapping, dict) and all(isinstance(node, dict) for node in mapping.values())


def _chatgpt_names(record: Json, stem: str) -> tuple[str, ...]:
    return named_by("conversation_id" if record.get("conversation_id") else "id", "title")(record, stem)


def _chatgpt(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, time = fields.titled(_chatgpt_names(record, stem)), iso(record.get("create_time"))
    nodes: Json = record["mapping"]
    times = {ident: at(node, "message", "create_time") for ident, node in nodes.items()}
    parents = {ident: node.get("parent") for ident, node in nodes.items()}
    path = fields.branch(parents, times, record.get("current_node"))
    skipped[fields.EDITED] += len(nodes) - len(path)
    for message in (nodes[ident].get("message") for ident in path):
        if not isinstance(message, dict):
            continue
        role, speaker = fields.role_of(at(message, "author", "role"))
        if why := _unspoken(message, role):
            skipped[why] += 1
            continue
        if "multimodal" not in (at(message, "content", "content_type") or ""):
            skipped[fields.ATTACHED] += len(rows(at(message, "metadata", "attachments")))
        text = without_citations(fields.text_of(rows(at(message, "content", "parts")), skipped))
        said = iso(message.get("create_time")) or time
        yield Turn(text, role, speaker, said, session, as_name(message.get("id")))


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


CHATGPT = Format(_is_chatgpt, _chatgpt, _chatgpt_names)

# Marks stand between characters of Unicode's private area; where these were lost on the way, the names of the
# sources alone are left ("citeturn0search1").
_MARK = re.compile(r"\ue200(\w+)((?:\ue202[^\ue200\ue201]*)*)\ue201")
_BARE = re.compile(r" ?\b(?:file|nav)?cite(?:turn\d+[a-z]+\d+)+")
_BRACKETED = re.compile(r" ?【\d+(?::\d+)?†[^【】\n]*】")
_FILE = re.compile(r" ?\b(?:sediment|file-service|sandbox)://?[^\s)\]]+")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\((?:sandbox|sediment|file-service):[^()\n]*\)")
_CAMPAIGN = re.compile(r"([?&])utm_source=(?:chatgpt\.com|openai)(&|(?![\w.]))")
_PRIVATE = re.compile(r"[\ue200-\ue206]")


def without_citations(text: str) -> str:
    """Give the text as its reader saw it: what a mark showed as a link stays, what it pointed to goes."""
    if "\ue200" in text:
        text = _PRIVATE.sub("", _MARK.sub(_shown, text))
    if "cite" in text:
        text = _BARE.sub("", text)
    if "†" in text:
        text = _BRACKETED.sub("", text)
    if ":/" in text:
        text = _FILE.sub("", _LINK.sub(r"\1", text))
        text = _CAMPAIGN.sub(lambda match: match[1] if match[2] else "", text)
    return text


def _shown(match: re.Match[str]) -> str:
    """Return what the page shows for a mark: a link's title, the name of a thing, nothing for a source."""
    kind, values = match[1], match[2].split("\ue202")[1:]
    if kind == "url" and values:
        return values[0]
    try:
        entity = json.loads(values[0]) if kind == "entity" and values else None
    except ValueError:
        return ""
    name = entity[1] if isinstance(entity, list) and len(entity) > 1 else None
    return name if isinstance(name, str) else ""


# ── Claude ──────────────────────────────────────────────────────────────────────────────────────

_MEMORY = "Claude's memory"
_PROJECT = ("prompt_template", "docs", "is_starter_project", "description")


def _is_claude(record: Json) -> bool:
    if isinstance(record.get("chat_messages"), list) or isinstance(record.get("conversations_memory"), str):
        return True
    return "uuid" in record and sum(key in record for key in _PROJECT) > 1


def _claude_names(record: Json, stem: str) -> tuple[str, ...]:
    return (_MEMORY,) if "conversations_memory" in record else named_by("uuid", "name")(record, stem)


def _claude(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session = fields.titled(_claude_names(record, stem))
    if "conversations_memory" in record:
        return _remembered(record, skipped)
    if "chat_messages" in record:
        return _conversation(record, session, skipped)
    return _project(record, session, skipped)


def _conversation(record: Json, session: str, skipped: Skipped) -> Iterator[Turn]:
    time, leaf = iso(record.get("created_at")), record.get("current_leaf_message_uuid")
    messages = fields.open_branch(rows(record.get("chat_messages")), leaf, skipped)
    for message in fields.objects(messages, skipped):
        attached = rows(message.get("attachments"))
        contents = (at(one, "extracted_content") for one in attached)
        pasted = [text for text in contents if isinstance(text, str) and text.strip()]
        skipped[fields.ATTACHED] += len(attached) - len(pasted) + len(rows(message.get("files")))
        role, speaker = fields.role_of(message.get("sender"))
        # `content` is the later and fuller form; older exports have `text` alone. Where both are there `text`
        # holds a stand-in for each block that is not text.
        words = fields.text_of(message.get("content") or message.get("text"), skipped)
        written = iso(fields.first(message, "created_at", "updated_at")) or time
        text = fields.text_of([words, *pasted], skipped)
        yield Turn(text, role, speaker, written, session, as_name(message.get("uuid")))


def _remembered(record: Json, skipped: Skipped) -> Iterator[Turn]:
    """Yield what Claude wrote about the person, in Markdown: of all conversations, and of each project."""
    projects = record.get("project_memories")
    memories = {_MEMORY: record["conversations_memory"]}
    for ident, text in projects.items() if isinstance(projects, dict) else ():
        memories[f"{_MEMORY} of project {ident[:8]}"] = text
    for session, text in memories.items():
        if isinstance(text, str):
            yield from markdown.turns(text, session, skipped, role="assistant")
        else:
            skipped[fields.OTHER] += 1


def _project(record: Json, session: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield what the person gave: description, instructions, documents."""
    if record.get("is_starter_project"):
        skipped["projects that came with the program"] += 1
        return
    time = iso(record.get("created_at"))
    for text in map(record.get, ("description", "prompt_template")):
        if isinstance(text, str):
            yield from markdown.turns(text, session, skipped, time=time)
    for doc in rows(record.get("docs")):
        text = fields.text_of(at(doc, "content"), skipped)
        title = stem_of(as_name(at(doc, "filename")) or "")
        written = iso(at(doc, "created_at")) or time
        yield from markdown.turns(text, session, skipped, title=title, time=written)


CLAUDE = Format(_is_claude, _claude, _claude_names)
