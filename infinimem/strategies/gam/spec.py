"""What the program knows of GAM (infinimem/spec.py). Source: arXiv 2604.12285."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from infinimem.settings import Harmless, HarmlessIf
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

CANDIDATES = 5
"""Topics that a new one is held against, the nearest (Algorithm 3)."""


@dataclass(frozen=True)
class GamSettings:
    """[gam]: when talk becomes topics, how those are linked, and what a question is shown. docs/STRATEGIES.md
    has a table. Where the paper names no number (gap_minutes, tau, neighbours), it is chosen here."""

    active_tokens: Harmless[int] = 2048
    gap_minutes: Harmless[int] = 30
    partition: Annotated[Literal["semantic", "session", "turn", "turns", "window"], HarmlessIf()] = "semantic"
    window: Harmless[int] = 0
    relations: Annotated[Literal["one", "pairs"], HarmlessIf()] = "one"
    tau: Harmless[float] = 0.5
    workers: Harmless[int] = 8
    anchors: Harmless[int] = 10
    neighbours: Harmless[int] = 20
    network: Harmless[bool] = True
    rerank: Annotated[Literal["cosine", "library"], HarmlessIf()] = "library"
    cross_encoder: str | None = None
    cues: Annotated[Literal["rule", "model"], HarmlessIf()] = "rule"
    beta_time: Harmless[float] = 1.4
    beta_role: Harmless[float] = 1.4
    beta_conf: Harmless[float] = 1.2
    drill: Harmless[bool] = True
    final: Harmless[int] = 10
    block_tokens: Harmless[int] = 1400


def estimate(size: int, turns: int, settings: GamSettings) -> tuple[int, int, int]:
    """Every turn is shown twice, for the boundaries of its session and for the summary of its topic."""
    topics = -(-turns // 8)  # of about so many turns (Table 10 of the paper)
    related = CANDIDATES if settings.relations == "pairs" else 1
    checked = settings.cues == "model"
    calls = topics * (1 + related + checked) + -(-topics // 3)  # sessions have about three topics
    shown = (2 + checked) * size + topics * (related + CANDIDATES) * SUMMARY
    return calls, calls * PROMPT + shown, calls * REPLY


_READS = "anchors network neighbours rerank beta_time beta_role beta_conf drill final"

KIND = Kind("topic", "gt", "gam/topics/", alone=True)

SPEC = StrategySpec(
    name="gam",
    strategy="infinimem.strategies.gam.strategy:Gam",
    writes=("gam/",),
    archived="gam/archive/",
    kinds=(KIND,),
    links=("support", "contradict", "causal", "coreference", "semantic"),
    settings=GamSettings,
    readers=("drill",),
    estimate=estimate,
    # Of the paper but for P_sem of Eq. 11, which is a cross-encoder's there: where `cross_encoder` names no
    # model, `rerank` is our substitute. All other defaults are the paper's.
    presets={
        "paper": {"gam": {"relations": "pairs", "rerank": "cosine", "cues": "model", "neighbours": 1000}}
    },
    reads=frozenset((*_READS.split(), "block_tokens", "cross_encoder")),
    sparse=True,
    near=True,
)
