"""The row of the strategy."""

from __future__ import annotations

from dataclasses import dataclass

from infinimem.settings import Harmless
from infinimem.spec import Kind, StrategySpec


@dataclass(frozen=True)
class ToySettings:
    """[toy]"""

    longest: Harmless[int] = 80
    """Characters of a card's summary."""
    server: str | None = None


SPEC = StrategySpec(
    name="toy",
    strategy="toy_memory.strategy:Toy",
    writes=("toy/",),
    archived="toy/archive/",
    kinds=(Kind("card", "tc", "toy/cards/"), Kind("day", "td", "toy/days/")),
    settings=ToySettings,
)
