"""What became of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from infinimem.model import Located, Reason, Receipt
from infinimem.store.view import View


@dataclass(frozen=True)
class Applied:
    """The plan was applied; `view` is the library as it is now, `added` the lines that `adds` became."""

    view: View
    receipt: Receipt | None = None
    added: tuple[Located, ...] = ()


@dataclass(frozen=True)
class Rejected:
    """The plan was refused whole; nothing changed. `view` is the library as it is now."""

    view: View
    reasons: tuple[Reason, ...]


Outcome = Applied | Rejected
