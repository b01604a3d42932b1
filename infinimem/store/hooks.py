"""What operations above the store do around its writes: the functions of `operations/__init__.py`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def operations() -> ModuleType:
    """Loaded by name: imports lead downwards, and a library that is opened without them would leave a
    `forget` unfinished."""
    return import_module("infinimem.operations")
