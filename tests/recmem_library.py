"""Libraries of exchanges whose cosines are known: "@40" in a text is its direction in degrees."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infinimem import Turn, open_memory
from infinimem.llm.base import LLM
from infinimem.memory import Memory
from infinimem.testing import Script, ScriptedLLM

COS_10 = 0.984808
"""Of ten degrees, to the digits that are compared."""

_ANGLE = re.compile(r"@(\d+)")


class Angles:
    """An embedder (infinimem/embedders/base.py) of directions in a plane; a text without one has none."""

    name = "angles 2"
    size = 2
    semantic = False

    def embed(self, texts: Sequence[str], kind: str = "passage") -> NDArray[np.float32]:
        rows = [self._row(_ANGLE.search(text)) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), 2)

    def _row(self, match: re.Match[str] | None) -> tuple[float, float]:
        if not match:
            return 0.0, 0.0
        angle = math.radians(float(match[1]))
        return math.cos(angle), math.sin(angle)


def one_episode(variables: Mapping[str, Any]) -> dict[str, Any]:
    """All turns in one episode that lies where the last of them does."""
    turns = variables["turns"]
    angle = [match[0] for turn in turns for match in _ANGLE.finditer(turn["text"])][-1]
    return {"episodes": [{"text": f"They spoke of {angle}.", "from": [turn["id"] for turn in turns]}]}


def no(_: object) -> dict[str, Any]:
    return {"should_merge": False, "merged": ""}


def longer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The episode with the words of the exchange behind it."""
    said = " ".join(turn["text"].replace("@", "at ") for turn in variables["turns"])
    return {"should_merge": True, "merged": f"{variables['episode']} Later: {said}."}


def nothing(_: object) -> dict[str, Any]:
    return {"facts": []}


def fact(text: str, *turns: str, replaces: str | None = None) -> dict[str, Any]:
    return {"text": text, "type": "USER_EVENT", "from": list(turns), "replaces": replaces}


def model(**scripts: Script | Callable[..., Any]) -> ScriptedLLM:
    """A model that makes an episode of each cluster, merges nothing and finds no facts, unless told."""
    usual: dict[str, Any] = {"episodes": one_episode, "merge_episodes": no, "refine": nothing}
    return ScriptedLLM({**usual, **scripts})


def library(root: Path, llm: LLM | str, **settings: object) -> Memory:
    """One that consolidates three exchanges within ten degrees."""
    usual = {"theta_sim": COS_10, "theta_count": 3, "rank": "cosine"}
    return opened(root, "recmem", llm, {**usual, **settings})


def opened(root: Path, strategy: str, llm: LLM | str, settings: Mapping[str, object]) -> Memory:
    """A library of a strategy with these settings, where cosines are known."""
    root.mkdir(parents=True, exist_ok=True)
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    (root / "infinimem.toml").write_text(f"[{strategy}]\n{''.join(lines)}")
    return open_memory(root, model=llm, strategy=strategy, create=True, embedder=Angles())


def exchange(text: str, session: str = "s1", reply: str = "I see.") -> list[Turn]:
    return [
        Turn(text, speaker="Ann", session=session, time="2025-01-04T10:00:00"),
        Turn(reply, speaker="Rob", session=session, time="2025-01-04T10:00:00", role="assistant"),
    ]


def say(memory: Memory, *texts: str) -> None:
    """Exchanges, and then those of another session, which end the last of them and lie nowhere."""
    memory.record([turn for text in texts for turn in exchange(text)])
    memory.observe(exchange("So.", f"after {memory.view.max_seq}"))


def held(memory: Memory) -> dict[str, list[int]]:
    """The turns of each episode, archived ones included."""
    return {
        record.id: [ref.seq for ref in record.refs]
        for record in records(memory).values()
        if record.kind.name == "episode"
    }


def records(memory: Memory) -> Mapping[str, Any]:
    from infinimem.strategies.records.record_store import RecordStore

    return RecordStore.load(memory.view).records
