"""What the program knows of RecMem (infinimem/spec.py). Source: RecMem (ACL 2026 Findings)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from infinimem.settings import Harmless, HarmlessIf, Least
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

_CALLS = 0.4
"""Calls an exchange, which the thresholds are set for (section 4.2 of the paper; `strategy.py`)."""
_SHOWN = 5
"""Exchanges that such a call is shown, about."""
K_OLD, FACTS_MAX = 10, 9
"""Facts that the model is shown beside an episode (Eq. 8), and new ones of it at most."""


@dataclass(frozen=True)
class RecmemSettings:
    """[recmem]: when a model is asked, and what a question is shown.

    `preset = "paper"` has the paper's form for casual talk, `preset = "tasks"` ours for talk of tasks.
    """

    talk: Annotated[Literal["casual", "tasks"], HarmlessIf()] = "casual"
    """What theta_sim 0 is meant for; of tasks 6/7 counts, as 0.6 of 0.7 in the paper (section 4.1)."""
    theta_sim: Harmless[float] = 0.0
    """Least cosine of an exchange and one that it recurs in (Eq. 5), or an episode that it may go on with
    (Eq. 6); 0 for that of the embedder."""
    theta_count: Harmless[int] = 5
    """Exchanges, the new one among them, that make a cluster; of the twice as many nearest ones."""
    refine: Annotated[Literal["episode", "direct"], HarmlessIf()] = "episode"
    """Whether facts are drawn beside the episode, or from the exchanges alone."""
    refine_merged: Harmless[bool] = False
    """Whether an exchange that goes on with an episode gives facts, too."""
    supersede: Harmless[bool] = True
    """Whether a fact archives the one that it replaces; in the paper both stand."""
    workers: Harmless[int] = 8
    k_sub: Harmless[int] = 50
    """Exchanges that a question is shown at most, the paper's 10; 0 leaves a tier out."""
    k_epi: Harmless[int] = 5
    k_sem: Annotated[int, HarmlessIf(), Least(-1)] = -1
    """Facts; -1 for twice k_epi, as in the paper."""
    units: Annotated[Literal["all", "raw"], HarmlessIf()] = "all"
    """Of all exchanges, or of those in no episode alone."""
    rank: Annotated[Literal["cosine", "library"], HarmlessIf()] = "library"
    """By vectors alone, as in the paper, or by the library's own search, by words and vectors."""


def estimate(size: int, turns: int, settings: RecmemSettings) -> tuple[int, int, int]:
    """Some exchanges recur; of each cluster an episode is made, and facts."""
    calls = max(round(_CALLS * turns / 2), 1)
    shown = calls * (_SHOWN * 2 * size // turns + K_OLD * SUMMARY // 2)
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
