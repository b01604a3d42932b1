"""Long-term memory for LLM agents in a folder of Markdown.

from infinimem import open_memory, Turn
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinimem.errors import InfinimemError
from infinimem.model import Answer, Entry, Evidence, Receipt, Retrieved, Turn

if TYPE_CHECKING:
    from infinimem.memory import Memory, open_memory

__all__ = [
    "Answer",
    "Entry",
    "Evidence",
    "InfinimemError",
    "Memory",
    "Receipt",
    "Retrieved",
    "Turn",
    "open_memory",
]


def __getattr__(name: str) -> object:
    """The facade is imported when first asked for: `infinimem --help` must not wait for it."""
    if name in ("Memory", "open_memory"):
        from infinimem import memory

        return getattr(memory, name)
    raise AttributeError(f"module 'infinimem' has no attribute {name!r}")
