"""ChatGPT's data export: conversations.json, a list of conversations, each a tree of messages.

Only the branch that the person last saw is read; edited and regenerated branches are counted, not imported.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers.citations import without_citations
from infinimem.importers.fields import (
    ATTACHED,
    HIDDEN,
    PROMPTS,
    THINKING,
    TOOLS,
    Json,
    Skipped,
    as_name,
    iso,
    names_of,
    role_of,
    rows,
    text_of,
    titled,
)
from infinimem.model import Turn

_SPOKEN = ("text", "multimodal_text")
_THOUGHT = ("thoughts", "reasoning_recap")
_PROMPT = ("user_editable_context", "model_editable_context")


def matches(record: Json) -> bool:
    mapping = record.get("mapping")
    return isinstance(mapping, dict) and all(isinstance(node, dict) for node in mapping.values())


def names(record: Json, stem: str) -> tuple[str, ...]:
    return names_of(record, stem, "conversation_id" if record.get("conversation_id") else "id", "title")


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session = titled(names(record, stem))
    time = iso(record.get("create_time"))
    branch = _branch(record)
    skipped["messages of branches that were edited away"] += len(record["mapping"]) - len(branch)
    for node in branch:
        message = node.get("message")
        if not isinstance(message, dict):
            continue
        author = message.get("author")
        role, speaker = role_of(author.get("role") if isinstance(author, dict) else None)
        if why := _unspoken(message, role):
            skipped[why] += 1
            continue
        metadata = message.get("metadata")
        if isinstance(metadata, dict) and "multimodal" not in message["content"].get("content_type", ""):
            skipped[ATTACHED] += len(rows(metadata.get("attachments")))
        yield Turn(
            text=without_citations(text_of(rows(message["content"].get("parts")), skipped)),
            role=role,
            speaker=speaker,
            time=iso(message.get("create_time")) or time,
            session=session,
            turn=as_name(message.get("id")),
        )


def _unspoken(message: Json, role: str) -> str | None:
    """Why a message is left out; None for what the person saw as said."""
    metadata, content = message.get("metadata"), message.get("content")
    kind = content.get("content_type", "text") if isinstance(content, dict) else ""
    if role == "system" or kind in _PROMPT:
        return PROMPTS
    if kind in _THOUGHT:
        return THINKING
    if role == "tool" or message.get("recipient") not in (None, "all") or kind not in _SPOKEN:
        return TOOLS
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return HIDDEN if hidden or message.get("weight") == 0 else None


def _branch(record: Json) -> list[Json]:
    """Nodes from the root to the current one, or to the last one of the file where none is marked."""
    nodes: dict[str, Json] = record["mapping"]
    ident = record.get("current_node")
    if not (isinstance(ident, str) and ident in nodes):
        ident = next(reversed(nodes), None)
    seen: dict[str, Json] = {}
    while isinstance(ident, str) and ident in nodes and ident not in seen:
        seen[ident] = nodes[ident]
        ident = nodes[ident].get("parent")
    return list(reversed(seen.values()))
