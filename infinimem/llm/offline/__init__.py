"""The language tasks answered by rules: no key, no network, the same reply every time."""

from __future__ import annotations

from infinimem.llm.offline.client import OfflineClient

__all__ = ["OfflineClient"]
