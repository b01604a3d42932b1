"""What the program knows of xMemory (infinimem/spec.py). Source: arXiv 2602.02007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from infinimem.settings import Harmless, HarmlessIf, Portion, Signed
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

_BLOCK = 9
"""Turns of a block, about."""
_THEMES = 3
"""Themes that a block changes, about, of half a dozen facts each."""


@dataclass(frozen=True)
class XmemorySettings:
    """[xmemory]: how talk is told, how facts are grouped, and what a question is shown.

    The values are the paper's, or those of its code where it gives none, but for those that `preset =
    "paper"` sets.
    """

    segmenter: Annotated[Literal["each", "batch"], HarmlessIf()] = "each"
    """Whether a model is asked at each message if another block begins, or once block_max are open."""
    block_max: Harmless[int] = 20
    attach: Harmless[float] = 0.0
    """Least cosine of a fact and the theme that it joins; 0 for that of the embedder, as with those below."""
    attach_room: Harmless[float] = 0.0
    """The same where the theme has room."""
    theme_max: Harmless[int] = 12
    purity: Harmless[float] = 0.0
    """Least mean cosine of the facts of a full theme; else it is split."""
    edge: Harmless[float] = 0.0
    """Least cosine of facts that hang together when a theme is split."""
    merge_min: Harmless[float] = 0.0
    """Least cosine of two themes that may be merged."""
    tiny_min: Harmless[float] = 0.0
    """The same where one has a single fact."""
    split: Harmless[bool] = True
    merge: Harmless[bool] = True
    """Either may be switched off by itself."""
    workers: Harmless[int] = 8
    pool: Harmless[int] = 40
    """Facts nearest to a question, among which representatives are picked."""
    represent: Harmless[bool] = True
    """Whether they are picked to cover the pool too; else the nearest are taken."""
    themes: Harmless[int] = 5
    facts: Harmless[int] = 20
    alpha: Harmless[float] = 0.7
    """What coverage counts beside nearness (Eq. 4)."""
    neighbours: Harmless[int] = 10
    """Nearest others that a theme or a fact covers."""
    share: Portion = 6
    """One covers at most this part of all, a sixth: else the first would stand for all of a small library."""
    coverage: Harmless[float] = 1.0
    """The share of the candidates at which no more are picked."""
    normaliser: Annotated[Literal["max", "total"], HarmlessIf()] = "max"
    """Z of Eq. 4: the largest coverage of one, or as in the published code the sum of all."""
    episodes: Harmless[int] = 10
    """Episodes near to a question beside those of its facts, and how many are looked at."""
    gate: Annotated[Literal["batch", "loss", "coverage", "none"], HarmlessIf()] = "batch"
    """What decides on episodes: a call, log probabilities of an answer, words of the question, nothing."""
    gate_model: str = ""
    """The model whose log probabilities these are, of the same server; "" for the one that answers (4.1)."""
    gain_min: Signed = -0.4
    """What certainty an episode must gain to be shown (gate loss); below 0, what it may cost."""
    gain_messages: Harmless[float] = 0.25
    """What one must gain so that its messages are shown too."""
    rank: Annotated[Literal["cosine", "library"], HarmlessIf()] = "library"
    """By vectors, as in the paper, or by the library's own search, by words and vectors."""
    records: Harmless[bool] = True
    """Whether a question goes by records at all; else turns alone are shown."""


THRESHOLDS = {
    "attach": 0.62,
    "attach_room": 0.52,
    "purity": 0.72,
    "edge": 0.66,
    "merge_min": 0.78,
    "tiny_min": 0.50,
}
"""Cosines of the published code, for text-embedding-3-small."""


def scaled(own: XmemorySettings, scale: float) -> XmemorySettings:
    """Settings whose thresholds are known: those of the published code by this where none is set."""
    values: dict[str, Any] = {name: getattr(own, name) or scale * one for name, one in THRESHOLDS.items()}
    return replace(own, **values)


def estimate(size: int, turns: int, settings: XmemorySettings) -> tuple[int, int, int]:
    """A call for each message or block finds blocks; each is told, its facts drawn, and its themes named."""
    blocks = max(turns // _BLOCK, 1)
    each = settings.segmenter == "each"
    asked = turns if each else blocks
    calls = asked + blocks * (2 + _THEMES)
    shown = (asked * _BLOCK // 2 * size // turns if each else 2 * size) + 2 * size
    return calls, calls * PROMPT + shown + blocks * _THEMES * 6 * SUMMARY, (asked + 6 * blocks) * REPLY


_NAMES = [field.name for field in fields(XmemorySettings)]

PAPER: Mapping[str, object] = {
    "rank": "cosine",
    "normaliser": "total",
    "share": 1,
    "gate": "loss",
    "gain_min": 0.0,
}
"""All other defaults are the paper's, or those of its code, as Z is (`normaliser`)."""

SPEC = StrategySpec(
    name="xmemory",
    strategy="infinimem.strategies.xmemory.strategy:XMemory",
    writes=("xmemory/",),
    archived="xmemory/archive/",
    kinds=(
        Kind("episode", "xe", "xmemory/episodes/", prose=True, alone=True),
        Kind("fact", "xf", "xmemory/facts/"),
        Kind("theme", "xt", "xmemory/themes/"),
    ),
    links=("version", "source"),
    settings=XmemorySettings,
    readers=("hierarchy",),
    estimate=estimate,
    presets={"paper": {"xmemory": PAPER}},
    reads=frozenset(_NAMES[_NAMES.index("pool") :]),  # those of reading stand last
    sparse=True,
    near=True,
)
EPISODE, FACT, THEMES = SPEC.kinds
VERSION, SOURCE = SPEC.links
