"""After every single operation a library is sound, under each of the five strategies."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from forget_library import holding
from garbage import GarbageLLM

from infinimem import Turn, open_memory
from infinimem.errors import LibraryError, UsageError
from infinimem.memory import Memory

STRATEGIES = ("infini", "allmem", "gam", "recmem", "xmemory")
WHO = ("Rita", "Bruno", "Dr. Vu", "The choir", "Our landlord")
WHAT = (
    "moved to Porto",
    "bought a red kayak",
    "sings on Mondays",
    "is allergic to nuts",
    "sold the old kiln",
)
STEPS = (
    "say",
    "say",
    "say",
    "consolidate",
    "consolidate",
    "forget",
    "undo",
    "undo",
    "rebuild",
    "restart",
    "edit",
)


def moments() -> Iterator[datetime]:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return (start + timedelta(minutes=n) for n in range(10**6))


def said(chance: random.Random, number: int) -> list[Turn]:
    session = chance.choice(("s1", "s2"))
    return [
        Turn(f"{chance.choice(WHO)} {chance.choice(WHAT)}, zq{number}{at}xk.", session=session)
        for at in range(chance.randrange(1, 5))
    ]


def sound(memory: Memory, step: str) -> None:
    """No finding of an error, whichever strategy looks."""
    errors = [finding for finding in memory.doctor() if finding.level == "error"]
    assert errors == [], (step, errors)


def edited(root: Path, strategy: str, chance: random.Random) -> None:
    """A person changes a word of a record."""
    if files := sorted((root / strategy).rglob("*.md")):
        path = chance.choice(files)
        path.write_text(path.read_text().replace(chance.choice(WHO), "Somebody", 1))


def named(root: Path) -> list[int]:
    """The turns that topics and episodes of records name."""
    texts = [
        path.read_text() for name in ("gam", "recmem", "xmemory") for path in (root / name).rglob("*.md")
    ]
    told = [text for text in texts if re.search(r"^kind: (topic|episode)$", text, re.M)]
    found = [match for text in told for match in re.findall(r"\{ref: (\d+)(?:-(\d+))?", text)]
    return [seq for first, last in found for seq in range(int(first), int(last or first) + 1)]


def themed(root: Path) -> list[list[str]]:
    """The facts of each theme."""
    paths = sorted((root / "xmemory/themes").glob("*.md"))
    return [re.findall(r"\{record: (xf-[\d-]+)\}", path.read_text()) for path in paths]


def lived(root: Path, strategy: str, seed: int, steps: int, garbage: bool = False) -> None:
    """Do things to a library, and look at it after each of them."""
    chance, clock = random.Random(f"{strategy}{seed}"), moments()
    model = GarbageLLM(seed) if garbage else "offline"
    root.mkdir(parents=True)
    length = chance.choice((80, 5000))
    (root / "infinimem.toml").write_text(
        f"[infini]\nmarkdown_length = {length}\nplan_split_threshold = {length}\nmerge_frequency = 2\n"
        f"maintenance = {chance.choice(('true', 'true', 'false'))}\n"
        f'[recmem]\ntheta_sim = 0.1\ntheta_count = 2\nrank = "{chance.choice(("cosine", "library"))}"\n'
        f'[xmemory]\ntheme_max = 4\nblock_max = 4\nsegmenter = "{chance.choice(("each", "batch"))}"\n'
    )

    def opened() -> Memory:
        return open_memory(root, model=model, strategy=strategy, create=True, clock=lambda: next(clock))

    memory = opened()
    standing: dict[int, str] = {}
    gone: set[str] = set()
    done: list[str] = []
    for number in range(steps):
        step = chance.choice(STEPS)
        done.append(step)
        if step == "say":
            turns = said(chance, number)
            memory.observe(turns)
            fresh = {place.seq: place.text for place in memory.view.entries("evidence")}
            standing |= fresh
        elif step == "consolidate":
            memory.consolidate()
        elif step == "rebuild":
            memory.rebuild()
        elif step == "edit":
            edited(root, strategy, chance)
        elif step == "restart":
            memory.close()
            memory = opened()
        elif step == "undo":
            with suppress(LibraryError, UsageError):
                memory.undo(
                    chance.choice((None, chance.choice(memory.receipts()).id)) if memory.receipts() else None
                )
        elif standing:
            seqs = memory.forget([chance.choice(sorted(standing))]).seqs
            gone |= {standing.pop(seq) for seq in seqs if seq in standing}
        sound(memory, f"{seed}: {done}")
        assert {place.seq for place in memory.view.entries("evidence")} == standing.keys(), done
        assert len(named(root)) == len({*named(root)} & standing.keys()), done
        facts = [fact for theme in themed(root) for fact in theme]
        assert len(facts) == len(set(facts)) and all(len(theme) <= 4 for theme in themed(root)), done
        for text in gone:
            assert holding(text, root) == [], (text, done)
    memory.observe([])
    memory.consolidate()
    sound(memory, "at last")
    assert not memory.view.uncited() or memory.unanswered()


@pytest.mark.sample(10)
@pytest.mark.parametrize("garbage", [False, True], ids=["rules", "garbage"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_library_is_sound_after_every_operation(
    tmp_path: Path, strategy: str, seed: int, garbage: bool
) -> None:
    """In any order of operations, whatever a model says, no invariant breaks, no turn is told of twice, no
    fact is in two themes or in one that is too large, and nothing forgotten comes back."""
    lived(tmp_path / "m", strategy, seed, 14, garbage)


@pytest.mark.soak
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_over_many_lives(tmp_path: Path, strategy: str) -> None:
    """The same over many libraries."""
    for seed in range(100, 160):
        lived(tmp_path / str(seed), strategy, seed, 16, garbage=bool(seed % 2))
