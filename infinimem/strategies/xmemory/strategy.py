"""xMemory: talk in episodes, their facts in themes that one objective balances, read from the top down.

    observe   evidence -> blocks that ended -> episode, facts -> attach, split, merge, theme
    tick      the same for all that is open, and for facts that are in no theme

It proposes; the store disposes. Source: arXiv 2602.02007.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from infinimem import tokens
from infinimem.llm.base import LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Evidence, Finding, Located, Plan
from infinimem.settings import Settings
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.graph.draw import Topology
from infinimem.strategies.readers.collect import READERS, collect
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.records.picture import picture
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.rounds import emptied, settled
from infinimem.strategies.records.rules import misquoted
from infinimem.strategies.vector_index import Loaded
from infinimem.strategies.xmemory.blocks import ended, strands
from infinimem.strategies.xmemory.partition import Limits
from infinimem.strategies.xmemory.read import hierarchy, read, retrieve
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings
from infinimem.strategies.xmemory.write import (
    FACT,
    Told,
    doubled,
    faults,
    loose_facts,
    tell,
    themes_of,
    written,
)

HIERARCHY = "hierarchy"
"""The reader that goes from themes down to messages."""
PORTION = 200
"""Turns that are looked at before anything is written."""
SCALES: Mapping[str, float] = {"lexical": 0.7, "static": 0.8, "minilm": 0.9}
"""What the paper's cosines, which are those of text-embedding-3-small, are multiplied by, by embedder."""
_READ = 3
"""How often what is open is shown to a model, about."""


class XMemory:
    """The strategy (strategies/base.py).

    Args:
        llm: the model that finds blocks, tells them and names themes.
        settings: those of the library.
    """

    spec = SPEC
    readers: tuple[str, ...] = (HIERARCHY, *READERS)

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.settings = settings
        self.own = settings.of(XmemorySettings)
        self._writing = Loaded()
        self._reading = Loaded()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Tell the blocks that these turns end, a plan each; turns of blocks that stay open are listed alone.

        Raises:
            ModelUnavailable: what was applied stays; the other turns stay pending.
        """
        for start in range(0, len(new), PORTION):
            portion = new[start : start + PORTION]
            found = yield from self._told(view, portion)
            if found is None:
                return
            view = (yield Plan(empty=tuple(turn.seq for turn in portion))).view

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: tell all that is open, and group facts that are in no theme.

        Raises:
            ModelUnavailable: what was applied stays.
        """
        if event == "consolidate":
            found = yield from self._told(view, (), end=True)
            if found is not None:
                yield from settled(found, partial(self._written, None))

    def _told(self, view: View, new: Sequence[Located], *, end: bool = False) -> Any:
        """Write the blocks that end; the library then, or None where it would not take one."""
        open_ones = strands(view, new, self.own.block_max, end=end)
        found = in_order(partial(ended, self.llm, self.own), open_ones, self.own.workers)
        blocks = sorted((block for those in found for block in those), key=lambda block: block.order)
        told = in_order(partial(tell, self.llm), blocks, self.own.workers)
        for one in told:
            after = yield from settled(view, partial(self._written, one))
            if after is None:
                return None
            view = after
        return view

    def _written(self, told: Told | None, view: View) -> Plan | None:
        with self._writing.at(view) as (store, index):
            limits = self._limits(view)
            if told is None and not self._unsettled(store, limits):
                return None
            return written(store, index, self.llm, self.own, limits, told)

    def _unsettled(self, store: RecordStore, limits: Limits) -> bool:
        """Whether there are facts without a theme, or a theme over the cap."""
        themes = themes_of(store)
        return bool(loose_facts(store, themes)) or any(len(facts) > limits.cap for facts in themes.values())

    def _limits(self, view: View) -> Limits:
        own, scale = self.own, SCALES.get(view.embedder.name.split()[0], 1.0)
        paper = Limits()
        return Limits(
            own.attach or paper.attach * scale,
            own.attach_room or paper.room * scale,
            own.purity or paper.purity * scale,
            own.edge or paper.edge * scale,
            own.merge_min or paper.merge * scale,
            own.tiny_min or paper.tiny * scale,
            own.theme_max,
            own.context,
        )

    def rebuild(self, view: View) -> Plans:
        """Take all records away; the evidence, of which none is held then, gives them anew."""
        yield from emptied(view, SPEC.writes[0])

    def estimate(self, view: View) -> int:
        """What a model is shown of the turns that are open."""
        turns = (turn for those in open_turns(view).values() for turn in those)
        return _READ * sum(tokens.count(turn.entry.text) for turn in turns)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Turns by rank within `budget` tokens. Calls no model."""
        with self._reading.at(view) as (store, index):
            return retrieve(hierarchy(view, store, index), query, budget, self.own)

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer: from themes down ("hierarchy"), or by one of the shared readers."""
        if reader != HIERARCHY:
            return collect(self.llm, view, question, reader, self.settings.reader, budget)
        with self._reading.at(view) as (store, index):
            return read(hierarchy(view, store, index), self.llm, question, budget, self.own)

    # ── looking after it ────────────────────────────────────────────────────────────────────────

    def graph(self, view: View, name: str | None, hops: int) -> Topology:
        """What is linked to a record, and which facts a theme holds (strategies/base.py: Linked)."""
        with self._reading.at(view) as (store, index):
            return picture(store, index, name, hops)

    def status(self, view: View) -> Mapping[str, Any]:
        """How many turns are open, and of the records: sizes of themes, and how many facts changed theirs."""
        store = view.derived(RecordStore.load)
        kinds = Counter(store.records[name].kind.name for name in store.visible)
        return {
            "open": sum(map(len, open_turns(view).values())),
            **{f"{kind.name}s": kinds[kind.name] for kind in SPEC.kinds},
            **_sizes(store),
            "archived": len(store) - len(store.visible),
        }

    def check(self, view: View) -> list[Finding]:
        """What must hold of the records, and bodies that do not quote the evidence."""
        store = view.derived(RecordStore.load)
        return [*faults(store, cap=self.own.theme_max), *doubled(store), *misquoted(view, store)]


def shape(view: View) -> dict[str, Any]:
    """Counts that add up over libraries: facts, themes, how many facts changed theirs, themes by size."""
    store = view.derived(RecordStore.load)
    facts = sum(name.startswith(f"{FACT.prefix}-") for name in store.visible)
    return {"facts": facts, "themes": len(themes_of(store)), **_sizes(store)}


def _sizes(store: RecordStore) -> dict[str, Any]:
    sizes = Counter(map(len, themes_of(store).values()))
    moved = sum(len(store.records[name].moved) for name in store.visible)
    return {"sizes": {str(size): sizes[size] for size in sorted(sizes)}, "reassigned": moved}
