"""A tool over a library, as small as one can be."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from infinimem.store.view import View


def longest(view: View, k: int = 1) -> dict[str, Any]:
    """Name the longest documents.

    Args:
        k: at most so many; 0 for no end of rows
    """
    if k < 0:
        raise (RuntimeError if k == -1 else SystemExit)("fewer than\nnone")
    best = sorted(view.catalog(), key=lambda row: (-row.tokens, row.id))
    return {"rows": (f"{row.id} {row.tokens}" for row in best[:k]) if k else repeat("and so on")}
