"""Infini Memory: topic documents with a buffer before them."""

from __future__ import annotations

from infinimem.strategies.infini.strategy import Infini

__all__ = ["Infini"]
