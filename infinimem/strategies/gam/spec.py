"""What the program knows of GAM (infinimem/spec.py). Source: arXiv 2604.12285."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from infinimem.settings import Harmless, HarmlessIf
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

_TOPIC = 8  # turns, about (Table 10 of the paper)
CANDIDATES = 5
"""Topics that a new one is held against, the nearest (Algorithm 3)."""


@dataclass(frozen=True)
class GamSettings:
    """[gam]: when talk becomes topics, how those are linked, and what a question is shown.

    Where the paper names no number (gap_minutes, tau, neighbours), it is chosen here. `preset =
    "paper"` has the paper's form.
    """

    active_tokens: Harmless[int] = 2048
    """Of a session's turns that are in no topic; beyond it they are looked at."""
    gap_minutes: Harmless[int] = 30
    """Minutes of silence after which they are; 0 for never."""
    partition: Annotated[Literal["semantic", "session", "turn", "turns", "window"], HarmlessIf()] = "semantic"
    """Where topics begin: where a model says so; or only with a session, with each turn, after so many turns
    or tokens."""
    window: Harmless[int] = 0
    """So many, for the last two; 0 for 3 turns or 256 tokens."""
    relations: Annotated[Literal["one", "pairs"], HarmlessIf()] = "one"
    """In one call, or as in the paper in a call each."""
    tau: Harmless[float] = 0.5
    """What the confidence in a relation must exceed."""
    workers: Harmless[int] = 8
    anchors: Harmless[int] = 10
    neighbours: Harmless[int] = 20
    """Topics one relation away that it looks into too, those of most weight."""
    network: Harmless[bool] = True
    """Whether it goes by topics at all; without, over all turns alike."""
    rerank: Annotated[Literal["cosine", "library"], HarmlessIf()] = "library"
    """What the score of a topic and a turn is made of: the library's search, or vectors, which find topics in
    the paper but only stand in for the cross-encoder by which it ranks turns (Eq. 11)."""
    cross_encoder: str | None = None
    """The folder of a model (ONNX) that scores turns, as in the paper; none comes with the program."""
    cues: Annotated[Literal["rule", "model"], HarmlessIf()] = "rule"
    """Who says which turns tell of a time that an answer is about, and whether a topic claims what was not
    said: rules, or a model in a call each (section 4.1); `retrieve` has rules alone."""
    beta_time: Harmless[float] = 1.4
    beta_role: Harmless[float] = 1.4
    beta_conf: Harmless[float] = 1.2
    """What multiplies the score of a turn that tells a time where one is asked for; that the one said whom
    the question names; whose topic claims nothing that was not said (Eq. 11). 1 for none of it."""
    drill: Harmless[bool] = True
    """Whether turns are shown; without, topics' summaries alone."""
    final: Harmless[int] = 10
    """Turns that an answer is read from, and summaries without `drill`."""
    block_tokens: Harmless[int] = 1400
    """Tokens of these and the summaries of their topics together."""


def estimate(size: int, turns: int, settings: GamSettings) -> tuple[int, int, int]:
    """Every turn is shown twice, for the boundaries of its session and for the summary of its topic."""
    topics = -(-turns // _TOPIC)
    related = CANDIDATES if settings.relations == "pairs" else 1
    checked = settings.cues == "model"
    calls = topics * (1 + related + checked) + -(-topics // 3)  # sessions have about three topics
    shown = (2 + checked) * size + topics * (related + CANDIDATES) * SUMMARY
    return calls, calls * PROMPT + shown, calls * REPLY


_READS = "anchors network neighbours rerank beta_time beta_role beta_conf drill final"

PAPER: Mapping[str, Mapping[str, object]] = {
    "gam": {"relations": "pairs", "rerank": "cosine", "cues": "model", "neighbours": 1000},
}
"""As in the paper, but for P_sem of Eq. 11, which is a cross-encoder's there: where `cross_encoder` names no
model, `rerank` is our substitute. All other defaults are the paper's."""

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
    presets={"paper": PAPER},
    reads=frozenset((*_READS.split(), "block_tokens", "cross_encoder")),
    sparse=True,
    near=True,
)
