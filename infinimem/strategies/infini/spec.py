"""What the program knows of Infini Memory (infinimem/spec.py)."""

from __future__ import annotations

from infinimem.spec import StrategySpec

SPEC = StrategySpec(
    name="infini",
    strategy="infinimem.strategies.infini.strategy:Infini",
    writes=("topics/",),
    archived="archive/",
    buffer="CURRENT",
)
