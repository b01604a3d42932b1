"""RecMem under whatever people and models do: no turn is lost, none is in two episodes, files are sound."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from garbage import GarbageLLM
from recmem_library import exchange, held, library, longer, model

from infinimem.errors import LibraryError
from infinimem.llm.base import LLM
from infinimem.memory import Memory


def sound(memory: Memory, said: set[int]) -> None:
    """What must hold of any library that has heard these turns."""
    view = memory.view
    assert {place.seq for place in view.entries("evidence")} == said and not view.uncited()
    named = [seq for seqs in held(memory).values() for seq in seqs]
    assert len(named) == len(set(named)) and said.issuperset(named)
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []
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
    said: set[int] = set()
    for _ in range(steps):
        step = chance.choice(("say", "say", "say", "consolidate", "forget", "undo", "edit", "rebuild"))
        if step == "say":
            turns = [
                turn
                for _ in range(chance.randrange(1, 6))
                for turn in exchange(
                    f"@{chance.randrange(60)} {chance.random():.4f}", chance.choice(("s1", "s2"))
                )
            ]
            said |= {place.seq for place in memory.record(turns)}
            memory.observe(())
        elif step == "consolidate":
            memory.consolidate()
        elif step == "forget" and said:
            done = memory.forget([chance.choice(sorted(said))])
            said -= {*done.seqs}
        elif step == "undo" and memory.receipts():
            try:
                memory.undo()
            except LibraryError:
                continue
        elif step == "edit":
            edit(root, chance)
        elif step == "rebuild":
            memory.rebuild()
        memory.observe(())
        sound(memory, said)
    return memory


@pytest.mark.parametrize("seed", range(6))
def test_whatever_people_do_no_exchange_is_lost(tmp_path: Path, seed: int) -> None:
    lived(tmp_path, model(merge_episodes=longer), seed, 12)


@pytest.mark.parametrize("seed", range(4))
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
