"""RecMem under whatever people and models do: no turn is lost, none is in two episodes, files are sound."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest
from garbage import GarbageLLM
from random_life import live, named_once
from recmem_library import exchange, held, library, longer, model

from infinimem import Turn
from infinimem.llm.base import LLM
from infinimem.memory import Memory


def sound(memory: Memory, said: Collection[int]) -> None:
    """What must hold of any library that has heard these turns."""
    named_once(memory, said, held(memory).values())
    status = memory.status()
    assert status["raw"] + status["merged"] + status["consolidated"] >= status["exchanges"] >= status["raw"]


def edit(root: Path, chance: random.Random) -> None:
    """A person writes into a record."""
    files = sorted((root / "recmem").rglob("*.md"))
    if files:
        path = chance.choice(files)
        path.write_text(path.read_text().replace("spoke", f"talked @{chance.randrange(60)}"))


def lived(root: Path, llm: LLM, seed: int, steps: int) -> Memory:
    """A library to which things happened, looked at after each of them."""
    chance = random.Random(seed)
    memory = library(root, llm, theta_sim=0.97, refine_merged=chance.random() < 0.5)

    def say() -> list[Turn]:
        return [
            turn
            for _ in range(chance.randrange(1, 6))
            for turn in exchange(
                f"@{chance.randrange(60)} {chance.random():.4f}", chance.choice(("s1", "s2"))
            )
        ]

    live(memory, chance, steps, say, partial(edit, root, chance), partial(sound, memory))
    return memory


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_people_do_no_exchange_is_lost(tmp_path: Path, seed: int) -> None:
    lived(tmp_path, model(merge_episodes=longer), seed, 12)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_model_answers_no_exchange_is_lost(tmp_path: Path, seed: int) -> None:
    memory = lived(tmp_path, GarbageLLM(seed), seed + 50, 10)
    again = lived(tmp_path / "again", GarbageLLM(seed), seed + 50, 10)
    assert held(memory) == held(again)


@pytest.mark.soak
def test_over_many_sequences(tmp_path: Path) -> None:
    for seed in range(2000):
        lived(tmp_path / str(seed), model(merge_episodes=longer), seed, 10)


@pytest.mark.soak
def test_over_many_lying_models(tmp_path: Path) -> None:
    for seed in range(200):
        lived(tmp_path / str(seed), GarbageLLM(seed), seed, 10)
