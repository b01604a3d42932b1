"""xMemory under whatever people and models do: no turn is lost, none is in two episodes, files are sound."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest
from garbage import GarbageLLM
from random_life import live, named_once
from xmemory_library import blocks, library, model, themes, turns

from infinimem import Turn
from infinimem.llm.base import LLM
from infinimem.memory import Memory


def sound(memory: Memory, cap: int, said: Collection[int]) -> None:
    """What must hold of any library that has heard these turns."""
    told = named_once(memory, said, blocks(memory).values())
    assert memory.status()["open"] == len(said) - told
    assert all(len(facts) <= cap for facts in themes(memory).values())
    grouped = [fact for facts in themes(memory).values() for fact in facts]
    assert len(grouped) == len(set(grouped))


def edit(root: Path, chance: random.Random) -> None:
    """A person writes into a record, pins it or deletes it."""
    files = sorted((root / "xmemory").rglob("*.md"))
    if files:
        path = chance.choice(files)
        text = path.read_text()
        what = chance.choice(("word", "pin", "delete"))
        if what == "word":
            path.write_text(text.replace("said", f"told @{chance.randrange(60)}"))
        elif what == "pin" and "\npin:" not in text:
            path.write_text(text.replace("\nkeywords:", "\npin: true\nkeywords:", 1))
        elif path.name.startswith("xt-") and path.parent.name == "themes":
            path.unlink()


def lived(root: Path, llm: LLM, seed: int, steps: int) -> Memory:
    """A library to which things happened, looked at after each of them."""
    chance = random.Random(seed)
    cap = chance.randrange(2, 13)
    segmenter = chance.choice(("each", "batch"))
    memory = library(root, llm, theme_max=cap, segmenter=segmenter, block_max=8, attach=0.9, merge_min=0.95)

    def say() -> list[Turn]:
        texts = [
            f"{chance.choice(('New ', ''))}{chance.random():.4f} @{chance.randrange(90)}"
            for _ in range(chance.randrange(1, 9))
        ]
        return turns(*texts, session=chance.choice(("s1", "s2")))

    live(memory, chance, steps, say, partial(edit, root, chance), partial(sound, memory, cap))
    memory.consolidate()
    assert memory.status()["open"] == 0 and memory.consolidate() is None
    return memory


@pytest.mark.parametrize("seed", range(2))
def test_whatever_people_do_no_turn_is_lost(tmp_path: Path, seed: int) -> None:
    lived(tmp_path, model(), seed, 12)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_model_answers_no_turn_is_lost(tmp_path: Path, seed: int) -> None:
    memory = lived(tmp_path, GarbageLLM(seed), seed + 50, 10)
    again = lived(tmp_path / "again", GarbageLLM(seed), seed + 50, 10)
    assert blocks(memory) == blocks(again)


@pytest.mark.soak
def test_over_many_sequences(tmp_path: Path) -> None:
    for seed in range(1000):
        lived(tmp_path / str(seed), model(), seed, 10)


@pytest.mark.soak
def test_over_many_lying_models(tmp_path: Path) -> None:
    for seed in range(200):
        lived(tmp_path / str(seed), GarbageLLM(seed), seed, 10)
