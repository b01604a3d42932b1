"""What the program knows of RecMem (infinimem/spec.py). Source: RecMem (ACL 2026 Findings)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from infinimem.settings import Harmless, HarmlessIf, Least
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

K_OLD, FACTS_MAX = 10, 9
"""Facts that the model is shown beside an episode (Eq. 8), and new ones of it at most."""


@dataclass(frozen=True)
class RecmemSettings:
    """[recmem]: when a model is asked, and what a question is shown; docs/STRATEGIES.md has a table."""

    talk: Annotated[Literal["casual", "tasks"], HarmlessIf()] = "casual"
    theta_sim: Harmless[float] = 0.0
    theta_count: Harmless[int] = 5
    refine: Annotated[Literal["episode", "direct"], HarmlessIf()] = "episode"
    refine_merged: Harmless[bool] = False
    supersede: Harmless[bool] = True
    workers: Harmless[int] = 8
    k_sub: Harmless[int] = 50
    k_epi: Harmless[int] = 5
    k_sem: Annotated[int, HarmlessIf(), Least(-1)] = -1
    units: Annotated[Literal["all", "raw"], HarmlessIf()] = "all"
    rank: Annotated[Literal["cosine", "library"], HarmlessIf()] = "library"


def estimate(size: int, turns: int, settings: RecmemSettings) -> tuple[int, int, int]:
    """Some exchanges recur; of each cluster an episode is made, and facts."""
    calls = max(round(0.4 * turns / 2), 1)  # an exchange's, which the thresholds are set for (section 4.2)
    shown = calls * (5 * 2 * size // turns + K_OLD * SUMMARY // 2)  # about five exchanges each
    return calls, calls * PROMPT + shown, calls * 3 * REPLY


PAPER: Mapping[str, object] = {"rank": "cosine", "k_sub": 10, "supersede": False}
"""All other defaults are the paper's for casual talk."""
TASKS: Mapping[str, object] = {"talk": "tasks", "theta_count": 4}

SPEC = StrategySpec(
    name="recmem",
    strategy="infinimem.strategies.recmem.strategy:RecMem",
    writes=("recmem/",),
    archived="recmem/archive/",
    kinds=(
        Kind("episode", "re", "recmem/episodes/", prose=True, alone=True),
        Kind("fact", "rf", "recmem/facts/"),
    ),
    links=("version", "source"),
    settings=RecmemSettings,
    readers=("tiers",),
    estimate=estimate,
    presets={
        "paper": {"recmem": PAPER},
        "paper-tasks": {"recmem": {**PAPER, **TASKS}},
        "tasks": {"recmem": TASKS},
    },
    reads=frozenset(("k_sub", "k_epi", "k_sem", "units", "rank")),
    sparse=True,
    near=True,
)
