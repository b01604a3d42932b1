"""What contract tests share: the sample library, and a model that files all facts in one topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infinimem.strategies.infini.documents import keep_summaries

SAMPLE = Path(__file__).parents[2] / "sample_library"
OFFLINE = ("--model", "offline")

Reply = Callable[[Mapping[str, Any]], Any]


def ids(value: Any) -> list[str]:
    """All ids of facts in a task's variables."""
    if isinstance(value, Mapping):
        own = [str(value["id"])] if {"id", "text"} <= value.keys() else []
        return own + [one for part in value.values() for one in ids(part)]
    return [one for part in value for one in ids(part)] if isinstance(value, list | tuple) else []


def filing(doc_id: str) -> dict[str, Reply]:
    """The tasks of a consolidation that puts the whole buffer into one document."""
    return {
        "rewrite": lambda v: {"topics": [{"title": "Things", "fact_ids": ids(v["facts"])}]},
        "plan": lambda v: {"assign": [{"doc_id": doc_id, "new_title": None, "fact_ids": ids(v["topics"])}]},
        "compare": lambda _: {"superseded": []},
        "summarize": keep_summaries,
    }


def keeping(doc_id: str) -> dict[str, Reply]:
    """All tasks of the write path: each turn is an entry, without its full stop, and goes to one document."""
    return filing(doc_id) | {
        "extract": lambda v: {"entries": [{"text": t["text"][:-1], "from": [t["id"]]} for t in v["turns"]]},
        "merge": lambda _: {"groups": []},
    }
