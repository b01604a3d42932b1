"""JSON formats: data sets, memories of other programs, Gemini, messages with a role, ChatGPT, Claude.

Of an exported conversation only the branch that the person last saw is read; edited and regenerated ones are
counted, not imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from infinimem.importers import fields, markdown
from infinimem.importers.fields import (
    Format,
    Json,
    Skipped,
    as_name,
    at,
    first,
    has,
    iso,
    moment,
    named_by,
    rows,
    turn_of,
)
from infinimem.importers.messengers import text_of_html
from infinimem.importers.reading import stem_of
from infinimem.model import Turn

# ── data sets ───────────────────────────────────────────────────────────────────────────────────

_SESSION_KEY = re.compile(r"session_([1-9]\d*)")


def _locomo(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    (name,) = LOCOMO.names(record, stem)
    talk = _talk(record)
    for number in _numbers(record):
        time = moment(talk.get(f"session_{number}_date_time"))
        for message in fields.objects(talk[f"session_{number}"], skipped):
            text = fields.text_of(message.get("text"), skipped)
            if isinstance(caption := message.get("blip_caption"), str) and caption.strip():
                text += f" [shares a photo: {caption}]"
            speaker, ident = as_name(message.get("speaker")), as_name(message.get("dia_id"))
            yield Turn(text, "user", speaker, time, f"{name}-s{number:02d}", ident)


def _talk(record: Json) -> Json:
    """Return the sessions of an entry of the official list, or of a conversation alone."""
    return record["conversation"] if has(record, conversation=dict) else record


def _numbers(record: Json) -> list[int]:
    talk = _talk(record)
    return sorted(int(key[1]) for key in map(_SESSION_KEY.fullmatch, talk) if key and rows(talk[key[0]]))


LOCOMO = Format(lambda record: bool(_numbers(record)), _locomo, named_by("sample_id"))


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
    lambda record: has(record, haystack_sessions=list), _longmemeval, named_by("question_id")
)


def _bench_names(record: Json, stem: str) -> tuple[str, ...]:
    return (as_name(at(record, "metadata", "source")) or stem,)


MEMORYAGENTBENCH = Format(
    lambda record: has(record, context=str, questions=list),
    lambda record, stem, skipped: markdown.turns(record["context"], _bench_names(record, stem)[0], skipped),
    _bench_names,
)

# ── memories of other programs ──────────────────────────────────────────────────────────────────

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
_OWN = ("hash", "created_at", "updated_at", "metadata", "categories", *_OWNERS)


def _is_mem0(record: Any) -> bool:
    memory = next(iter(rows(at(record, "results"))), record)
    return has(memory, memory=str) and any(name in memory for name in _OWN)


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


def _is_mcp(record: Any) -> bool:
    part = has(record, entityType=str, observations=list) or has(record, relationType=str)
    return part or has(record, entities=list, relations=list)


def _mcp(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the MCP memory server's graph: an entity or a relation a line, or what its read_graph gives. An
    observation says little without the name of its entity ("prefers tea"), which is set before it."""
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


MCP_MEMORY = Format(_is_mcp, _mcp)

# ── Gemini ──────────────────────────────────────────────────────────────────────────────────────

_ASKED = re.compile(r"(?:Prompted|Asked|Said)(?: with)?:?\s+")


def _is_gemini(record: Json) -> bool:
    programs = [record.get("header"), *rows(record.get("products"))]
    return {"title", "time"} <= record.keys() and any(
        str(one).startswith(("Gemini", "Bard")) for one in programs
    )


def _gemini(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield Google Takeout's My Activity of Gemini Apps: what was asked and what was answered, newest first
    in the file and oldest first here. A record belongs to no conversation: a day is a session."""
    known: list[Json] = []
    for record in fields.objects(records, skipped):
        if _is_gemini(record):
            known.append(record)
        else:
            skipped[fields.OTHER] += 1
    known.reverse()
    for record in sorted(known, key=lambda record: iso(record["time"]) or ""):
        title, time = str(record["title"]), iso(record["time"])
        session = fields.day_of_chat("Gemini", time)
        answers = [at(one, "html") for one in rows(record.get("safeHtmlItem"))]
        files = (record.get(key) for key in ("attachedFiles", "imageFile", "audioFiles"))
        skipped[fields.ATTACHED] += sum(len(rows(file) or [0]) for file in files if file)
        asked = _ASKED.match(title)
        if not asked and not answers:
            skipped[fields.NOTICES] += 1  # "Used an assistant feature", "Gave feedback"
            continue
        yield Turn(title[asked.end() :] if asked else title, time=time, session=session)
        for html in answers:
            if isinstance(html, str):
                yield Turn(text_of_html(html), "assistant", time=time, session=session)


GEMINI = Format(_is_gemini, _gemini, is_log=True)

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
    return named_by(*_SESSION, *(() if _listed(record) is None else ("id", "title", "name")))(record, stem)


def _openai(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield OpenAI's shape and the usual variations on it: one message, or an object with a list of them.

    Fields of `Turn` (speaker, time, session, turn, key) are read too, so that anything can be brought in by
    writing one JSON object a line. System prompts, tool calls and what answers a tool call are left out.
    """
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


OPENAI = Format(_is_openai, _openai, _openai_names)


# ── ChatGPT ─────────────────────────────────────────────────────────────────────────────────────


def _is_chatgpt(record: Json) -> bool:
    return has(record, mapping=dict) and all(isinstance(node, dict) for node in record["mapping"].values())


def _chatgpt(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, time = fields.titled(CHATGPT.names(record, stem)), iso(record.get("create_time"))
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


CHATGPT = Format(_is_chatgpt, _chatgpt, named_by("conversation_id", "id", "title"))

# Marks stand between characters of Unicode's private area; where these were lost on the way, the names of the
# sources alone are left ("citeturn0search1"). Of a link its title stays, of a thing its name.
_CITATIONS = [
    ("\ue200", r"\ue200url\ue202([^\ue200-\ue202]*)[^\ue200\ue201]*\ue201", r"\1"),
    (
        "\ue200",
        r'\ue200entity\ue202\["[^"\ue200\ue201]*",\s*"([^"\ue200\ue201]*)"[^\ue200\ue201]*\ue201',
        r"\1",
    ),
    ("\ue200", r"\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue206]", ""),
    ("cite", r" ?\b(?:file|nav)?cite(?:turn\d+[a-z]+\d+)+", ""),
    ("†", r" ?【\d+(?::\d+)?†[^【】\n]*】", ""),
    (":/", r"!?\[([^\[\]\n]*)\]\((?:sandbox|sediment|file-service):[^()\n]*\)", r"\1"),
    (":/", r" ?\b(?:sediment|file-service|sandbox)://?[^\s)\]]+", ""),
    ("utm_source", r"(\?)utm_source=(?:chatgpt\.com|openai)&", r"\1"),
    ("utm_source", r"[?&]utm_source=(?:chatgpt\.com|openai)(?![\w.])", ""),
]
"""A text that a mark contains, the mark, and what stays of it."""


def without_citations(text: str) -> str:
    """Give the text as its reader saw it: what a mark showed as a link stays, what it pointed to goes."""
    for hint, mark, kept in _CITATIONS:
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
    return (_MEMORY,) if "conversations_memory" in record else named_by("uuid", "name")(record, stem)


def _claude(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session, time = fields.titled(_claude_names(record, stem)), iso(record.get("created_at"))
    if "conversations_memory" in record:
        yield from _remembered(record, skipped)
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


def _remembered(record: Json, skipped: Skipped) -> Iterator[Turn]:
    """Yield what Claude wrote about the person, in Markdown: of all conversations, and of each project."""
    memories = {_MEMORY: record["conversations_memory"]}
    if has(record, project_memories=dict):
        projects = record["project_memories"].items()
        memories |= {f"{_MEMORY} of project {ident[:8]}": text for ident, text in projects}
    for session, text in memories.items():
        yield from markdown.turns(fields.text_of(text, skipped), session, skipped, role="assistant")


def _project(record: Json, session: str, time: str | None, skipped: Skipped) -> Iterator[Turn]:
    """Yield what the person gave: description, instructions, documents."""
    if record.get("is_starter_project"):
        skipped["projects that came with the program"] += 1
        return
    given = ({"content": record.get(key)} for key in ("description", "prompt_template"))
    for doc in (*given, *rows(record.get("docs"))):
        text, title = fields.text_of(at(doc, "content"), skipped), stem_of(as_name(at(doc, "filename")) or "")
        written = iso(at(doc, "created_at")) or time
        yield from markdown.turns(text, session, skipped, title=title or None, time=written)


CLAUDE = Format(_is_claude, _claude, _claude_names)
