"""Data exports of ChatGPT (conversations.json) and Claude (also memories.json, projects.json).

Only the branch that the person last saw is read; edited and regenerated ones are counted, not imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from infinimem.importers import fields, markdown
from infinimem.importers.fields import Format, Json, Skipped, as_name, at, iso, named_by, rows
from infinimem.importers.reading import stem_of
from infinimem.model import Turn

# ── ChatGPT ─────────────────────────────────────────────────────────────────────────────────────


def _is_chatgpt(record: Json) -> bool:
    mapping = record.get("mapping")
    return isinstance(mapping, dict) and all(isinstance(node, dict) for node in mapping.values())


def _chatgpt_names(record: Json, stem: str) -> tuple[str, ...]:
    return named_by("conversation_id" if record.get("conversation_id") else "id", "title")(record, stem)


def _chatgpt(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """A conversation is a tree of messages."""
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
    """Why a message is left out; None for what the person saw as said."""
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
    """The text as its reader saw it: what a mark showed as a link stays, what it pointed to goes."""
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
    """What the page shows for a mark: the title of a link, the name of a thing, nothing for a source."""
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
        yield from _remembered(record, skipped)
    elif "chat_messages" in record:
        yield from _conversation(record, session, skipped)
    elif record.get("is_starter_project"):
        skipped["projects that came with the program"] += 1
    else:
        yield from _project(record, session, skipped)


def _conversation(record: Json, session: str, skipped: Skipped) -> Iterator[Turn]:
    """A long paste is attached to its message."""
    time, leaf = iso(record.get("created_at")), record.get("current_leaf_message_uuid")
    messages = fields.open_branch(rows(record.get("chat_messages")), leaf, skipped)
    for message in fields.objects(messages, skipped, fields.NO_TEXT):
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
    """What Claude wrote about the person, as Markdown: of all conversations, and of each project."""
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
    """What the person gave: description, instructions, documents."""
    time = iso(record.get("created_at"))
    for text in map(record.get, ("description", "prompt_template")):
        if isinstance(text, str):
            yield from markdown.turns(text, session, skipped, time=time)
    for doc in rows(record.get("docs")):
        if not isinstance(text := at(doc, "content"), str):
            skipped[fields.NO_TEXT] += 1
            continue
        title = stem_of(as_name(doc.get("filename")) or "")
        written = iso(doc.get("created_at")) or time
        yield from markdown.turns(text, session, skipped, title=title, time=written)


CLAUDE = Format(_is_claude, _claude, _claude_names)
