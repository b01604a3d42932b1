"""Long-term memory for LLM agents in a folder of Markdown.

from infinimem import open_memory, Turn
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinimem.errors import InfinimemError
    from infinimem.memory import Memory, open_memory
    from infinimem.model import Answer, Entry, Evidence, Receipt, Retrieved, Turn

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
    """Each is imported when first asked for: neither `infinimem --help` nor a hook must wait for it."""
    if name not in __all__:
        raise AttributeError(f"module 'infinimem' has no attribute {name!r}")
    facade = name in ("Memory", "open_memory")
    module = "memory" if facade else "errors" if name == "InfinimemError" else "model"
    found: object = getattr(import_module(f"infinimem.{module}"), name)
    return globals().setdefault(name, found)
