"""ChatGPT's data export: conversations.json, a list of conversations, each a tree of messages.

Only the branch that the person last saw is read; edited and regenerated branches are counted, not imported.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers import fields
from infinimem.importers.branches import EDITED, branch
from infinimem.importers.citations import without_citations
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_SPOKEN = ("text", "multimodal_text")
_THOUGHT = ("thoughts", "reasoning_recap")
_PROMPT = ("user_editable_context", "model_editable_context")


def matches(record: Json) -> bool:
    mapping = record.get("mapping")
    return isinstance(mapping, dict) and all(isinstance(node, dict) for node in mapping.values())


def names(record: Json, stem: str) -> tuple[str, ...]:
    return fields.names_of(
        record, stem, "conversation_id" if record.get("conversation_id") else "id", "title"
    )


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    session = fields.titled(names(record, stem))
    time = fields.iso(record.get("create_time"))
    nodes: Json = record["mapping"]
    messages = {ident: node.get("message") for ident, node in nodes.items()}
    times = {ident: one.get("create_time") for ident, one in messages.items() if isinstance(one, dict)}
    parents = {ident: node.get("parent") for ident, node in nodes.items()}
    path = branch(parents, times, record.get("current_node"))
    skipped[EDITED] += len(nodes) - len(path)
    for message in map(messages.get, path):
        if not isinstance(message, dict):
            continue
        author = message.get("author")
        role, speaker = fields.role_of(author.get("role") if isinstance(author, dict) else None)
        if why := _unspoken(message, role):
            skipped[why] += 1
            continue
        metadata = message.get("metadata")
        if isinstance(metadata, dict) and "multimodal" not in message["content"].get("content_type", ""):
            skipped[fields.ATTACHED] += len(fields.rows(metadata.get("attachments")))
        yield Turn(
            text=without_citations(fields.text_of(fields.rows(message["content"].get("parts")), skipped)),
            role=role,
            speaker=speaker,
            time=fields.iso(message.get("create_time")) or time,
            session=session,
            turn=fields.as_name(message.get("id")),
        )


def _unspoken(message: Json, role: str) -> str | None:
    """Why a message is left out; None for what the person saw as said."""
    metadata, content = message.get("metadata"), message.get("content")
    kind = content.get("content_type", "text") if isinstance(content, dict) else ""
    if role == "system" or kind in _PROMPT:
        return fields.PROMPTS
    if kind in _THOUGHT:
        return fields.THINKING
    if role == "tool" or message.get("recipient") not in (None, "all") or kind not in _SPOKEN:
        return fields.TOOLS
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return fields.HIDDEN if hidden or message.get("weight") == 0 else None
