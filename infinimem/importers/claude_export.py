"""Claude's data export: conversations.json, memories.json and projects.json.

A conversation has `chat_messages`; a long paste is attached to its message. A memory is what Claude wrote
about the person, as Markdown: of all conversations, and of each project. A project is what the person gave:
description, instructions, documents.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers import fields, markdown
from infinimem.importers.archives import stem_of
from infinimem.importers.branches import open_branch
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_MEMORY = "Claude's memory"
_PROJECT = ("prompt_template", "docs", "is_starter_project", "description")


def matches(record: Json) -> bool:
    if isinstance(record.get("chat_messages"), list) or isinstance(record.get("conversations_memory"), str):
        return True
    return "uuid" in record and sum(field in record for field in _PROJECT) > 1


def names(record: Json, stem: str) -> tuple[str, ...]:
    return (_MEMORY,) if "conversations_memory" in record else fields.names_of(record, stem, "uuid", "name")


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    if "conversations_memory" in record:
        yield from _remembered(record, skipped)
    elif "chat_messages" in record:
        yield from _said(record, fields.titled(names(record, stem)), skipped)
    elif record.get("is_starter_project"):
        skipped["projects that came with the program"] += 1
    else:
        yield from _given(record, fields.titled(names(record, stem)), skipped)


def _said(record: Json, session: str, skipped: Skipped) -> Iterator[Turn]:
    time = fields.iso(record.get("created_at"))
    leaf = record.get("current_leaf_message_uuid")
    for message in open_branch(fields.rows(record.get("chat_messages")), leaf, skipped):
        if not isinstance(message, dict):
            skipped[fields.NO_TEXT] += 1
            continue
        attached = fields.rows(message.get("attachments"))
        contents = (one.get("extracted_content") for one in attached if isinstance(one, dict))
        pasted = [text for text in contents if isinstance(text, str) and text.strip()]
        skipped[fields.ATTACHED] += len(attached) - len(pasted) + len(fields.rows(message.get("files")))
        role, speaker = fields.role_of(message.get("sender"))
        # `content` is the later and fuller form; older exports have `text` alone. Where both are there `text`
        # holds a stand-in for each block that is not text.
        yield Turn(
            text=fields.text_of(
                [fields.text_of(message.get("content") or message.get("text"), skipped), *pasted], skipped
            ),
            role=role,
            speaker=speaker,
            time=fields.iso(fields.first(message, "created_at", "updated_at")) or time,
            session=session,
            turn=fields.as_name(message.get("uuid")),
        )


def _remembered(record: Json, skipped: Skipped) -> Iterator[Turn]:
    projects = record.get("project_memories")
    memories = {_MEMORY: record["conversations_memory"]}
    for ident, text in projects.items() if isinstance(projects, dict) else ():
        memories[f"{_MEMORY} of project {ident[:8]}"] = text
    for session, text in memories.items():
        if isinstance(text, str):
            yield from markdown.turns(text, session, skipped, role="assistant")
        else:
            skipped[fields.OTHER] += 1


def _given(record: Json, session: str, skipped: Skipped) -> Iterator[Turn]:
    for field in ("description", "prompt_template"):
        if isinstance(text := record.get(field), str):
            yield from markdown.turns(text, session, skipped, time=fields.iso(record.get("created_at")))
    for doc in fields.rows(record.get("docs")):
        if not isinstance(doc, dict) or not isinstance(doc.get("content"), str):
            skipped[fields.NO_TEXT] += 1
            continue
        time = fields.iso(fields.first(doc, "created_at")) or fields.iso(record.get("created_at"))
        title = stem_of(fields.as_name(doc.get("filename")) or "")
        yield from markdown.turns(doc["content"], session, skipped, title=title, time=time)
