"""What the program knows of xMemory (infinimem/spec.py). Source: arXiv 2602.02007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from infinimem.settings import Harmless, HarmlessIf, Portion, Signed
from infinimem.spec import PROMPT, REPLY, SUMMARY, Kind, StrategySpec

_BLOCK = 9  # turns, about
_THEMES = 3  # that a block changes, about, of half a dozen facts each


@dataclass(frozen=True)
class XmemorySettings:
    """[xmemory]: how talk is told, how facts are grouped, what a question is shown; docs/STRATEGIES.md has a
    table. Values are the paper's, or its code's where it gives none, but for those that `preset` sets."""

    segmenter: Annotated[Literal["each", "batch"], HarmlessIf()] = "each"
    block_max: Harmless[int] = 20
    attach: Harmless[float] = 0.0
    attach_room: Harmless[float] = 0.0
    theme_max: Harmless[int] = 12
    purity: Harmless[float] = 0.0
    edge: Harmless[float] = 0.0
    merge_min: Harmless[float] = 0.0
    tiny_min: Harmless[float] = 0.0
    split: Harmless[bool] = True
    merge: Harmless[bool] = True
    workers: Harmless[int] = 8
    pool: Harmless[int] = 40
    represent: Harmless[bool] = True
    themes: Harmless[int] = 5
    facts: Harmless[int] = 20
    alpha: Harmless[float] = 0.7
    neighbours: Harmless[int] = 10
    share: Portion = 6
    coverage: Harmless[float] = 1.0
    normaliser: Annotated[Literal["max", "total"], HarmlessIf()] = "max"
    episodes: Harmless[int] = 10
    gate: Annotated[Literal["batch", "loss", "coverage", "none"], HarmlessIf()] = "batch"
    gate_model: str = ""
    gain_min: Signed = -0.4
    gain_messages: Harmless[float] = 0.25
    rank: Annotated[Literal["cosine", "library"], HarmlessIf()] = "library"
    records: Harmless[bool] = True


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
