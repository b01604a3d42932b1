"""Long-term memory for LLM agents in a folder of Markdown.

from infinimem import open_memory, Turn
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinimem.async_memory import AsyncMemory
    from infinimem.errors import InfinimemError
    from infinimem.memory import Memory, open_memory
    from infinimem.model import Answer, Entry, Evidence, Receipt, Retrieved, Turn

__all__ = [
    "Answer",
    "AsyncMemory",
    "Entry",
    "Evidence",
    "InfinimemError",
    "Memory",
    "Receipt",
    "Retrieved",
    "Turn",
    "open_memory",
]

_ELSEWHERE = {
    "AsyncMemory": "async_memory",
    "InfinimemError": "errors",
    "Memory": "memory",
    "open_memory": "memory",
}


def __getattr__(name: str) -> object:
    """Import each when it is first asked for: neither `infinimem --help` nor a hook must wait for it."""
    if name not in __all__:
        raise AttributeError(f"module 'infinimem' has no attribute {name!r}")
    found: object = getattr(import_module(f"infinimem.{_ELSEWHERE.get(name, 'model')}"), name)
    return globals().setdefault(name, found)
