"""GAM under whatever people and models do: no turn is lost, none is in two topics, files are sound."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest
from gam_library import alike, held, library, links, made, model, turn
from garbage import GarbageLLM
from random_life import live, named_once

from infinimem import Turn
from infinimem.llm.base import LLM
from infinimem.memory import Memory


def sound(memory: Memory, said: Collection[int]) -> None:
    """What must hold of any library that has heard these turns."""
    named = named_once(memory, said, held(memory).values())
    assert memory.status()["active"]["turns"] == len(said) - named
    assert all(len(found) <= 6 for found in links(memory).values())


def edit(root: Path, chance: random.Random) -> None:
    """A person writes into a topic."""
    files = sorted((root / "gam").rglob("*.md"))
    if files:
        path = chance.choice(files)
        path.write_text(path.read_text().replace("It was", f"Once it was @{chance.randrange(60)} and"))


def lived(root: Path, llm: LLM, seed: int, steps: int) -> Memory:
    """A library to which things happened, looked at after each of them."""
    chance = random.Random(seed)
    memory = library(root, llm, active_tokens=chance.choice((60, 300)))
    minute = 0

    def say() -> list[Turn]:
        nonlocal minute
        turns = []
        for _ in range(chance.randrange(1, 9)):
            minute += chance.choice((0, 1, 31))
            text = f"{'% ' * (chance.random() < 0.3)}@{chance.randrange(60)} {chance.random():.4f} again"
            turns.append(turn(text, chance.choice(("s1", "s1", "s2", f"s{minute}")), minute=minute % 720))
        return turns

    live(memory, chance, steps, say, partial(edit, root, chance), partial(sound, memory))
    return memory


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_people_do_no_turn_is_lost(tmp_path: Path, seed: int) -> None:
    lived(tmp_path, model(relate=alike), seed, 12)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_model_answers_no_turn_is_lost(tmp_path: Path, seed: int) -> None:
    lived(tmp_path / "one", GarbageLLM(seed), seed + 50, 10)
    lived(tmp_path / "two", GarbageLLM(seed), seed + 50, 10)
    assert made(tmp_path / "one") == made(tmp_path / "two")


@pytest.mark.soak
def test_over_many_sequences(tmp_path: Path) -> None:
    for seed in range(2000):
        lived(tmp_path / str(seed), model(relate=alike), seed, 10)


@pytest.mark.soak
def test_over_many_lying_models(tmp_path: Path) -> None:
    for seed in range(200):
        lived(tmp_path / str(seed), GarbageLLM(seed), seed, 10)
