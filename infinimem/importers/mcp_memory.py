"""The MCP memory server's graph: memory.jsonl, an entity or a relation a line, or what its read_graph gives.

An observation says little without the name of its entity ("prefers tea"), which is set before it. Models
wrote them through the server's tools. The file has no times.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.importers.fields import OTHER, Json, Skipped, as_name, rows
from infinimem.model import Turn


def matches(record: Json) -> bool:
    if isinstance(record.get("entities"), list) and isinstance(record.get("relations"), list):
        return True
    entity = isinstance(record.get("entityType"), str) and isinstance(record.get("observations"), list)
    return entity or isinstance(record.get("relationType"), str)


def names(record: Json, stem: str) -> tuple[str, ...]:
    return (stem,)


def turns(record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
    if "entities" in record:
        for part in (*record["entities"], *record["relations"]):
            if isinstance(part, dict) and matches(part):
                yield from turns(part, stem, skipped)
            else:
                skipped[OTHER] += 1
        return
    for text in _statements(record):
        yield Turn(text=text, role="assistant", session=stem)


def _statements(record: Json) -> Iterator[str]:
    if "relationType" in record:
        yield " ".join(_words(record.get(field)) for field in ("from", "relationType", "to"))
        return
    name = _words(record.get("name"))
    said = [text for text in rows(record["observations"]) if isinstance(text, str) and text.strip()]
    for text in said:
        yield text if name.casefold() in text.casefold() else f"{name}: {text}"
    if not said:
        yield f"{name} ({_words(record['entityType'])})"


def _words(name: object) -> str:
    """A name or a kind of relation as words: the server's examples join them by "_"."""
    return (as_name(name) or "?").replace("_", " ")
