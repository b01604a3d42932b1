"""What the program knows of All-Mem (infinimem/spec.py)."""

from __future__ import annotations

from infinimem.spec import Kind, StrategySpec

SPEC = StrategySpec(
    name="allmem",
    strategy="infinimem.strategies.allmem.strategy:AllMem",
    writes=("allmem/",),
    archived="allmem/archive/",
    kinds=(Kind("unit", "u", "allmem/units/"),),
    links=("version", "sibling", "temporal", "semantic"),
    ledgers=("allmem/buffer",),
)
