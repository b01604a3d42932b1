"""What people do to a library as a whole: look back, undo, review, forget, check. Over the store's public
functions; the store imports none of it, and calls these around its writes (store/library.py) under its lock,
but for `unfinished`, which reads only."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from infinimem.operations.forget import BEGUN
from infinimem.store.files import Files

if TYPE_CHECKING:
    from infinimem.store.library import Library


def unfinished(files: Files) -> bool:
    """Whether a crash cut a `forget` short: whoever opens the library next finishes it."""
    return files.exists(BEGUN)


def finish(files: Files) -> None:
    """Finish it. Idempotent; transactions are recovered already."""
    if unfinished(files):
        from infinimem.operations.forget import forget

        forget.finish(files)


def forget_again(library: Library, seqs: Collection[int]) -> None:
    """Lines of these numbers were forgotten elsewhere, and are here: forget them too."""
    from infinimem.operations.forget import forget

    forget.forget_again(library, seqs)


def before(library: Library, op: str) -> None:
    """Commit what was said and written since the last receipt, so that the next commit shows what it did
    alone; not before a `forget`, which would put into history what is to be forgotten."""
    if library.settings.git and op != "forget":
        from infinimem.operations.git import keep

        keep(library)


def after(library: Library) -> None:
    """A writer is done: its receipts are committed."""
    if library.settings.git:
        from infinimem.operations.git import keep

        keep(library, unless_known=True)
