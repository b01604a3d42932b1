"""The seam of strategies: they propose plans, the store disposes.

A strategy is a generator of plans: it yields one, is sent what became of it, and goes on from there.
It reads snapshots (`View`), asks models, and touches no file.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from infinimem.model import Finding, Located, Plan, Reason, Receipt, Retrieved
from infinimem.store.view import View

Event = Literal["append", "due", "consolidate"]
"""Why `tick` is called: new entries are about to be appended, were appended, or someone asked for it."""


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
Plans = Generator[Plan, Outcome, None]


class Strategy(Protocol):
    """A memory system over the folder.

    `roots` are the folders of documents that it keeps and that readers see by default.
    """

    name: str
    roots: tuple[str, ...]

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Draw entries from evidence lines that were just recorded (or are still pending)."""
        ...

    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate if due ("append", "due"), or because someone asked ("consolidate")."""
        ...

    def retrieve(self, view: View, query: str, budget: int) -> list[Retrieved]:
        """Ranked evidence within `budget` tokens. Calls no model."""
        ...

    def read(self, view: View, question: str, reader: str, budget: int) -> list[Retrieved]:
        """Evidence for an answer, by a reader of that name; may call a model."""
        ...

    def check(self, view: View) -> list[Finding]:
        """The strategy's own invariants, for `doctor`."""
        ...
