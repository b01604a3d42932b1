"""What operations above the store have done around its writes. The store imports none of them: each registers
a hook (operations/__init__.py)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import Protocol

from infinimem.settings import Settings
from infinimem.store.files import Files
from infinimem.store.view import View


class Locked(Protocol):
    """What a hook sees of a library that is being written."""

    files: Files
    settings: Settings
    clock: Callable[[], datetime]

    def view(self) -> View: ...


class Hook:
    """Called under the library's lock, but for `unfinished`, which reads only."""

    def unfinished(self, files: Files) -> bool:
        """Whether a crash cut the operation short."""
        return False

    def finish(self, files: Files) -> None:
        """Finish what a crash cut short. Idempotent; transactions are recovered already."""

    def before(self, library: Locked, op: str) -> None:
        """A receipt of this operation is about to be written."""

    def after(self, library: Locked) -> None:
        """A writer is done; its receipts are written."""


HOOKS: list[Hook] = []


def _registered() -> list[Hook]:
    """All hooks. The package's own are loaded by name: imports lead downwards, and a library that is opened
    without them would leave a `forget` unfinished."""
    import_module("infinimem.operations")
    return HOOKS


def unfinished(files: Files) -> bool:
    """Whether any of them has something to finish."""
    return any(hook.unfinished(files) for hook in _registered())


def finish(files: Files) -> None:
    """Finish what any of them left."""
    for hook in _registered():
        hook.finish(files)


def before(library: Locked, op: str) -> None:
    """Tell all of them of a receipt to come."""
    for hook in _registered():
        hook.before(library, op)


def after(library: Locked) -> None:
    """Tell all of them that a writer is done."""
    for hook in _registered():
        hook.after(library)
