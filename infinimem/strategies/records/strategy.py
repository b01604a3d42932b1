"""What strategies of records share: the readers of all, rebuilding, checks, and pictures of their links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from infinimem.llm.base import LLM
from infinimem.model import Evidence, Finding
from infinimem.settings import Settings
from infinimem.spec import StrategySpec
from infinimem.store.view import View
from infinimem.strategies.base import Plans
from infinimem.strategies.graph.draw import Topology
from infinimem.strategies.readers.collect import READERS, collect
from infinimem.strategies.records import rules
from infinimem.strategies.records.picture import picture
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.rounds import emptied
from infinimem.strategies.vector_index import Loaded


class RecordStrategy(ABC):
    """Part of a strategy (strategies/base.py); how it writes, and its own reader, is for each to say.

    Args:
        llm: the model that helps it.
        settings: those of the library.
    """

    spec: StrategySpec

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.settings = settings
        self.readers: tuple[str, ...] = (*self.spec.readers, *READERS)
        self._writing = Loaded()
        self._reading = Loaded()
        """Another than for writing, which holds it while a model thinks."""

    def rebuild(self, view: View) -> Plans:
        """Take all that it wrote away; the evidence gives it anew."""
        yield from emptied(view, self.spec.writes[0])

    @abstractmethod
    def collected(self, view: View, question: str, budget: int) -> Evidence:
        """Evidence for an answer, by its own reader."""

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer: by its own reader, or by one of those that all share."""
        if reader in self.spec.readers:
            return self.collected(view, question, budget)
        return collect(self.llm, view, question, reader, self.settings.reader, budget)

    def graph(self, view: View, name: str | None, hops: int) -> Topology:
        """What is linked to a record (strategies/base.py: Linked)."""
        with self._reading.at(view) as (records, index):
            return picture(records, index, name, hops)

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """What does not hold, of all records or of some (records/rules.py)."""
        return rules.faults(store, rules.COMMON, only)

    def check(self, view: View) -> list[Finding]:
        """What must hold of its records, and bodies that do not quote the evidence."""
        records = view.derived(RecordStore.load)
        return [*self.faults(records), *rules.misquoted(view, records)]
