"""MemoryAgentBench: a long text (`context`) with the questions asked about it.

Its conflict-resolution split is a numbered list of facts, so the context is read as Markdown is.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers import markdown
from infinimem.importers.fields import Json, Skipped, as_name
from infinimem.model import Turn


def matches(record: Json) -> bool:
    return isinstance(record.get("context"), str) and isinstance(record.get("questions"), list)


def names(record: Json, stem: str) -> tuple[str, ...]:
    metadata = record.get("metadata")
    return (as_name(metadata.get("source") if isinstance(metadata, dict) else None) or stem,)


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    (session,) = names(record, stem)
    return markdown.turns(record["context"], session, skipped)
