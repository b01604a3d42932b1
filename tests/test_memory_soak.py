"""The long form of test_memory: nonsense, settings and a person's edits at random, for some minutes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from garbage import GarbageLLM
from test_memory import TALK, errors, standing, turns

from infinimem import open_memory
from infinimem.llm.base import LLM

pytestmark = pytest.mark.soak

TYPED = ("- my item\n", "\nSome prose.\n", "# Mine\n- [ ] task\n", "\r\n- crlf\r\n", "no line end")


def settings(chance: random.Random) -> str:
    choices = {
        "feed": ['"turn"', '"exchange"', '"chunk"'],
        "markdown_length": [300, 900, 5000],
        "plan_split_threshold": [200, 700, 5000],
        "current_threshold": [300, 2000],
        "merge_max_tokens": [100, 300],
        "merge_frequency": [1, 2, 10],
        "maintenance": ["true", "true", "false"],
    }
    return "[infini]\n" + "".join(f"{key} = {chance.choice(values)}\n" for key, values in choices.items())


@pytest.mark.parametrize("seed", range(400))
def test_no_line_is_lost_whatever_happens(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "m"
    open_memory(root, model="offline", create=True)
    (root / "infinimem.toml").write_text(settings(chance))
    model: str | LLM = GarbageLLM(seed) if chance.random() < 0.8 else "offline"
    memory = open_memory(root, model=model)
    told: dict[int, str] = {}
    for batch in range(6):
        texts = [
            f"Turn {batch}-{n}: {chance.choice(TALK)} {chance.random()}" for n in range(chance.randint(1, 25))
        ]
        memory.observe(turns([*texts, chance.choice(TALK)], f"s{batch}"))
        told |= standing(memory.view)
        topics = [doc_id for doc_id in memory.view.ids() if doc_id.startswith("topics/")]
        if topics and chance.random() < 0.5:
            with (root / f"{chance.choice(topics)}.md").open("a", newline="") as file:
                file.write(chance.choice(TYPED))
        memory.consolidate()
        now = standing(memory.view)
        assert {seq: now.get(seq) for seq in told} == told
        assert errors(memory) == []
        told = now
