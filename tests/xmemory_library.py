"""Libraries of talk whose facts lie where "@40" in a text says, a direction (recmem_library.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recmem_library import opened

from infinimem import Turn
from infinimem.llm.base import LLM
from infinimem.llm.scripted import Script, ScriptedLLM
from infinimem.memory import Memory
from infinimem.strategies.records.record import Record
from infinimem.strategies.records.record_store import RecordStore

TIME = "2025-01-04T10:00:00"


def cuts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A block begins where a turn says so."""
    news = (turn["id"] for turn in variables["turns"][1:] if turn["text"].startswith("New"))
    return {"cuts": [{"before": name, "reason": f"news in {name}"} for name in news]}


def episode(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Told in the words of its first turn, where that lies."""
    first = variables["turns"][0]
    return {"title": f"Talk of {first['text']}", "content": f"They said {first['text']}.", "when": None}


def facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Each turn that lies somewhere is a fact."""
    rows = (turn for turn in variables["turns"] if re.search(r"@\d", turn["text"]))
    return {"facts": [{"text": f"Ann said {turn['text']}", "from": [turn["id"]]} for turn in rows]}


def theme(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Lies where its first fact does."""
    rows = variables["facts"]
    return {"summary": f"{len(rows)} facts at {re.findall(r'@[0-9]+', rows[0]['text'])[0]}"}


def model(**scripts: Script | Callable[..., Any]) -> ScriptedLLM:
    """A model that does as above, unless told."""
    usual: dict[str, Any] = {"segment": cuts, "episode": episode, "facts": facts, "theme": theme}
    return ScriptedLLM({**usual, **scripts})


def library(root: Path, llm: LLM | str, **settings: object) -> Memory:
    """One whose themes are of facts within ten degrees."""
    near = {"attach": 0.985, "attach_room": 0.985, "merge_min": 0.99, "tiny_min": 0.99, "edge": 0.99}
    return opened(root, "xmemory", llm, {**near, "purity": 0.9, **settings})


def turns(*texts: str, session: str = "s1") -> list[Turn]:
    return [
        Turn(text, session=session, speaker=("Ann", "Rob")[at % 2], time=TIME)
        for at, text in enumerate(texts)
    ]


def records(memory: Memory, kind: str) -> dict[str, Record]:
    """The records of a kind, by id; those that are archived as well."""
    store = memory.view.derived(RecordStore.load).records
    return {name: record for name, record in sorted(store.items()) if record.kind.name == kind}


def blocks(memory: Memory) -> dict[str, list[int]]:
    """The turns of each episode."""
    return {name: [ref.seq for ref in record.refs] for name, record in records(memory, "episode").items()}


def themes(memory: Memory) -> dict[str, list[str]]:
    """The facts of each theme that is not archived."""
    return {name: list(one.sources) for name, one in records(memory, "theme").items() if one.visible}
