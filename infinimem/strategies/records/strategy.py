"""What strategies of records share: readers, rebuilding, checks, figures, and pictures of their links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

from infinimem.errors import LibraryError
from infinimem.llm.base import LLM
from infinimem.model import Evidence, Finding, Plan, Put
from infinimem.settings import Settings
from infinimem.spec import StrategySpec
from infinimem.store.view import View, whole
from infinimem.strategies.base import Plans
from infinimem.strategies.links import Topology, around
from infinimem.strategies.readers.collect import READERS, collect
from infinimem.strategies.records import edits
from infinimem.strategies.records.evidence import RecordSearch
from infinimem.strategies.records.record import Record, is_record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import Loaded, VectorIndex


def links(store: RecordStore) -> dict[str, int]:
    """Count the links of each kind."""
    return {kind: sum(len(store.out(name, kind)) for name in store.records) for kind in store.spec.links}


def by_kind(store: RecordStore) -> dict[str, int]:
    """Count the records of each kind on the surface, as "episodes" for "episode", and the archived ones."""
    kinds = Counter(store.records[name].kind.name for name in store.visible)
    found = {f"{kind.name}s": kinds[kind.name] for kind in store.spec.kinds}
    return {**found, "archived": len(store) - len(store.visible)}


MOST = 40
"""Records that a picture shows."""
AT_ONCE = 256
"""Records that one plan of a rebuild takes away; a transaction of thousands is slow."""


def picture(
    store: RecordStore,
    index: VectorIndex,
    name: str | None,
    hops: int,
    kinds: Sequence[str] = (),
    told: Callable[[Record], str] = lambda record: record.summary,
) -> Topology:
    """What is linked to a record, either way, with `kinds` of links beside those of its strategy."""
    return around(
        store,
        named(store, index, name),
        hops,
        MOST,
        (*store.spec.links, *kinds),
        lambda node: told(store.records[node]) or store.text(node),
        store.visible.__contains__,
    )


def named(store: RecordStore, index: VectorIndex, name: str | None) -> str:
    """The record that a person means: by an id, the seq of its turn, or words; None for the newest."""
    kind = store.spec.kinds[0].name
    if not store.records:
        raise LibraryError(f"there are no {kind}s yet: nothing that was said made one")
    if name is None:
        return max(store.visible or store.records, key=lambda one: (store.records[one].age, one))
    wanted = name.strip()
    stem = wanted.removesuffix(".md").rsplit("/", 1)[-1].casefold()
    if stem in store:
        return stem
    if is_record_id(stem) or wanted.startswith(store.spec.writes):
        raise LibraryError(f"there is no {kind} {wanted!r}; infinimem ls shows which there are")
    if (seq := whole(wanted)) is not None:
        holding = [record for record in store.records.values() if any(ref.seq == seq for ref in record.refs)]
        if not holding:
            raise LibraryError(f"no {kind} holds turn {seq}; infinimem history {seq} tells what became of it")
        return min(holding, key=lambda record: (record.order, record.id)).id
    found = index.nearest(index.embed(wanted), 1, store.spec.record_folders)
    if not found or found[0][1] <= 0:
        raise LibraryError(f"no {kind} is about {wanted[:80]!r}; try other words")
    return found[0][0]


class RecordStrategy(ABC):
    """Part of a strategy (strategies/base.py); how it writes, and its own search, is for each to say."""

    spec: StrategySpec
    own: Any
    """The settings of its group; `block_tokens` among them bounds what an answer is read from."""

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.settings = settings
        self.own = settings.of(self.spec.settings or object)
        self.readers: tuple[str, ...] = (*self.spec.readers, *READERS)
        self._writing = Loaded()
        self._reading = Loaded()
        """Another than for writing, which holds it while a model thinks."""

    def rebuild(self, view: View) -> Plans:
        """Take all that it wrote away; the evidence, of which none is held then, gives it anew."""
        records = [Put(doc_id, None) for doc_id in view.below(self.spec.writes[0])]
        for at in range(0, len(records), AT_ONCE):
            yield Plan(op="rebuild", records=tuple(records[at : at + AT_ONCE]))

    def held(self, view: View) -> AbstractContextManager[Any]:
        """Give what `search` needs of a view."""
        return self._reading.at(view)

    @abstractmethod
    def search(self, view: View, held: Any, query: str, budget: int) -> RecordSearch[Any]:
        """Return its own search for a question."""

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Turns by rank within `budget` tokens. Calls no model."""
        with self.held(view) as held:
            return self.search(view, held, query, budget).by_rank()

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer: by its own search, or by one of the readers that all share."""
        if reader not in self.spec.readers:
            return collect(self.llm, view, question, reader, budget)
        budget = min(budget, getattr(self.own, "block_tokens", budget))
        with self.held(view) as held:
            return self.search(view, held, question, budget).for_answer()

    def graph(self, view: View, name: str | None, hops: int) -> Topology:
        """What is linked to a record (strategies/base.py: Linked)."""
        with self._reading.at(view) as (records, index):
            return picture(records, index, name, hops)

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """What does not hold, of all records or of some (records/edits.py)."""
        return edits.faults(store, only)

    def check(self, view: View) -> list[Finding]:
        """What must hold of its records, turns held twice, and bodies that do not quote the evidence."""
        records = view.derived(RecordStore.load)
        return [*self.faults(records), *edits.misquoted(view, records), *edits.held_twice(records)]
