"""The protocol of strategies: they propose plans, the store applies or rejects them.

In: a snapshot (`View`) and new evidence, an event or a question. Out: a generator of plans, each sent what
became of it; or evidence. Promise: a strategy asks models, but touches no file and holds no lock.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from infinimem.model import Evidence, Finding, Located, Plan
from infinimem.spec import StrategySpec
from infinimem.store.view import Applied, Outcome, Rejected, View

__all__ = ["Applied", "Event", "Linked", "Outcome", "Plans", "Rejected", "Strategy", "Topology"]

Event = Literal["append", "due", "consolidate"]
"""Why `tick` is called: new entries are about to be appended, were appended, or someone asked for it."""


Plans = Generator[Plan, Outcome, None]


class Strategy(Protocol):
    """A memory system over the folder.

    `spec` names its folders, `readers` the ways in which it collects evidence, that which it is best known
    for first. Its methods raise ModelUnavailable if a model does not answer: what was applied stays, the rest
    stays pending.
    """

    spec: StrategySpec
    readers: tuple[str, ...]

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Draw entries or records from evidence lines that were just recorded (or are still pending)."""

    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate if due ("append", "due"), or because someone asked ("consolidate")."""

    def rebuild(self, view: View) -> Plans:
        """Derive again what it derived, before all evidence that no document of its holds is observed."""

    def estimate(self, view: View) -> int:
        """Tokens that `tick` would send to a model if someone asked for it, roughly."""

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Ranked evidence within `budget` tokens. Calls no model."""

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer, by a reader of that name, with a trace of its steps; may call a model.

        Raises:
            UsageError: there is no such reader.
            ModelUnavailable: the model does not answer.
        """

    def status(self, view: View) -> Mapping[str, Any]:
        """Its own counts, for people and scripts."""

    def check(self, view: View) -> list[Finding]:
        """The strategy's own invariants, for `doctor`."""


class Topology(NamedTuple):
    """What stands around a node; `cut` where there is more of it.

    `data` is as JSON has it: "root", "nodes" (the root first, then by hop) and every link between two of
    them as "links".
    """

    data: Mapping[str, Any]
    cut: bool


@runtime_checkable
class Linked(Protocol):
    """A strategy that keeps links between its records."""

    def graph(self, view: View, name: str | None, hops: int) -> Topology:
        """What is linked to a record, for people to look at.

        Args:
            view: the snapshot.
            name: its id, the seq of its turn, or words that it is about; None for the newest.
            hops: links from it at most, followed either way.

        Raises:
            LibraryError: there is no such record.
        """
