"""What operations above the store have done around its writes. The store imports none of them: each registers
a hook (operations/__init__.py)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
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
