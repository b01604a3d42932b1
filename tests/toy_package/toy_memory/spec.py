"""The rows of the strategies."""

from __future__ import annotations

from dataclasses import dataclass

from infinimem.settings import Harmless
from infinimem.spec import Kind, StrategySpec, Way


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


@dataclass(frozen=True)
class DigestSettings:
    """[digests]"""

    near: Harmless[float] = 0.3
    """Least cosine of digests that are linked."""
    digests: Harmless[int] = 3
    """That a question begins with."""


DIGESTS = StrategySpec(
    name="digests",
    strategy="toy_memory.digests:Digests",
    writes=("digests/",),
    archived="digests/archive/",
    kinds=(Kind("digest", "sd", "digests/sessions/", alone=True),),
    links=("version", "near"),
    settings=DigestSettings,
    readers=("recap",),
    methods={"digests": Way("digests", None, "recap")},
    reads=frozenset({"digests"}),
    sparse=True,
    near=True,
)
