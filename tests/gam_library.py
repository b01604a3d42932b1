"""Libraries of topics whose cosines are known: "@40" in a text is its direction in degrees."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recmem_library import opened

from infinimem import Turn
from infinimem.llm.base import LLM
from infinimem.memory import Memory
from infinimem.strategies.records.record import Link, Record
from infinimem.strategies.records.record_store import RecordStore
from infinimem.testing import Script, ScriptedLLM


def at_marks(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A part begins with each turn that has a "%" in it."""
    return {
        "cuts": [{"before": turn["id"], "reason": ""} for turn in variables["turns"] if "%" in turn["text"]]
    }


def told(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A topic lies where its first turn does."""
    found = [match[0] for turn in variables["turns"] for match in re.finditer(r"@\d+", turn["text"])]
    return {"keywords": [], "summary": f"It was {(found or ['nothing'])[0]}."}


def unrelated(_: object) -> dict[str, Any]:
    return {"relations": []}


def alike(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Everything is a little related to everything."""
    rows = [{"id": other["id"], "relation": "semantic", "confidence": 0.8} for other in variables["others"]]
    return {"relations": rows}


def model(**scripts: Script | Callable[..., Any]) -> ScriptedLLM:
    """A model that cuts at marks and relates nothing, unless told."""
    usual: dict[str, Any] = {"segment": at_marks, "topic": told, "relate": unrelated}
    return ScriptedLLM({**usual, **scripts})


def library(root: Path, llm: LLM | str, **settings: object) -> Memory:
    """One that ranks by vectors, unless told."""
    return opened(root, "gam", llm, {"rerank": "cosine", **settings})


def turn(text: str, session: str = "s1", speaker: str = "Ann", minute: int = 0) -> Turn:
    time = f"2025-01-04T{10 + minute // 60:02d}:{minute % 60:02d}:00"
    return Turn(text, speaker=speaker, session=session, time=time)


def say(memory: Memory, *texts: str, session: str = "s1") -> None:
    memory.observe([turn(text, session) for text in texts])


def end(memory: Memory) -> None:
    """Let another session begin, whose turn is nowhere."""
    memory.observe([turn("So.", f"after {memory.view.max_seq}")])


def store(memory: Memory) -> RecordStore:
    return RecordStore.load(memory.view)


def topics(memory: Memory) -> dict[str, Record]:
    return dict(sorted(store(memory).records.items()))


def held(memory: Memory) -> dict[str, list[int]]:
    """The turns of each topic, archived ones included."""
    return {name: [ref.seq for ref in topic.refs] for name, topic in topics(memory).items()}


def links(memory: Memory) -> dict[str, tuple[Link, ...]]:
    """Of the topics that have any."""
    found = store(memory)
    return {name: found.links(name) for name in found.records if found.links(name)}


def asked(llm: ScriptedLLM) -> list[str]:
    return [call.task for call in llm.calls]
