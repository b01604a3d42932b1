"""xMemory: talk in episodes, their facts in themes that one objective balances, read from the top down.

    observe   evidence -> blocks that ended -> episode, facts -> attach, split, merge, theme
    tick      the same for all that is open, and for facts that are in no theme

It proposes; the store disposes. Source: arXiv 2602.02007.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

from infinimem.llm.base import LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Finding, Located, Plan
from infinimem.settings import Settings
from infinimem.store.view import Outcome, View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.links import Link, Topology
from infinimem.strategies.readers.pipeline import size
from infinimem.strategies.records import edits
from infinimem.strategies.records.asking import Asker
from infinimem.strategies.records.edits import edited, settled
from infinimem.strategies.records.evidence import Records
from infinimem.strategies.records.record import Record
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import RecordStrategy, by_kind, picture
from infinimem.strategies.segment import open_turns
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory.partition import Memo
from infinimem.strategies.xmemory.read import ThemeSearch
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings, scaled
from infinimem.strategies.xmemory.write import Themes, Told, bounded, ended, group, keep, strands, tell

PORTION = 200
"""Turns that are looked at before anything is written."""
SCALES: Mapping[str, float] = {"lexical": 0.903, "static": 0.958, "minilm": 1.195}
"""What the thresholds of the published code are multiplied by, by embedder, so that a theme has as many facts
as in the paper (benchmarks/themes.py). Others have them as they are, for text-embedding-3-small."""
HOLDS, NEAR = "holds", "near"
"""Links of a picture: from a theme to its facts, and to the themes that are nearest."""
NEIGHBOURS = 2
_READ = 3
"""How often what is open is shown to a model, about."""


class XMemory(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: XmemorySettings

    def __init__(self, llm: LLM, settings: Settings) -> None:
        super().__init__(llm, settings)
        self._memos = WeakKeyDictionary[VectorIndex, Memo]()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Tell the blocks that these turns end, a plan each; turns of open blocks are listed alone."""
        began = view
        for start in range(0, len(new), PORTION):
            portion = new[start : start + PORTION]
            found = yield from self._told(began, view, portion)
            if found is None:
                return
            view = (yield Plan(empty=tuple(turn.seq for turn in portion))).view

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: tell all that is open, and group facts that are in no theme."""
        if event == "consolidate":
            found = yield from self._told(view, view, (), end=True)
            if found is not None:
                yield from settled(found, partial(self._written, None))

    def _told(
        self, began: View, view: View, new: Sequence[Located], *, end: bool = False
    ) -> Generator[Plan, Outcome, View | None]:
        """Write the blocks that end; None where the library took none, or no answer was given about any."""
        given_up = view.given_up(self.llm.name, began)
        open_ones = [one.without(given_up) for one in strands(view, new, self.own.block_max, end=end)]
        found = in_order(partial(ended, self.llm, self.own), open_ones, self.own.workers)
        blocks = sorted((block for those in found for block in those), key=lambda block: block.order)
        failed = 0
        for told in chain.from_iterable(in_order(partial(tell, self.llm), blocks, self.own.workers)):
            if told.failure:
                unanswered = {turn.seq: told.failure for turn in told.block.turns}
                view = (yield Plan(unanswered=unanswered, rejected=told.rejected)).view
                failed += 1
                continue
            if not told.episode:
                view = (yield Plan(empty=tuple(turn.seq for turn in told.block.turns))).view
                continue
            after = yield from settled(view, partial(self._written, told))
            if after is None:
                return None
            view = after
        return None if blocks and failed == len(blocks) else view

    def _written(self, told: Told | None, view: View) -> Plan | None:
        """The plan that writes what was told of a block, and groups all facts that are in no theme."""
        with self._writing.at(view) as (store, index):
            after, asker, fresh = store.copy(), Asker(self.llm), list[str]()
            if told:
                if any(turn.seq in store.held or not store.stands(turn) for turn in told.block.turns):
                    return None
                _, *fresh = names = keep(after, told)
                index.sync(after, names)
            own = scaled(self.own, SCALES.get(view.embedder.name.split()[0], 1.0))
            memo = self._memos.setdefault(index, {})
            group(after, view.derived(Themes.load), fresh, index, memo, asker, own)
            rejected = (*(told.rejected if told else ()), *asker.rejected())
            return edited("write", store, after, self.faults, rejected)

    def estimate(self, view: View) -> int:
        """What a model is shown of the turns that are open."""
        return _READ * sum(map(size, open_turns(view).values()))

    def search(self, view: View, held: Records, query: str, budget: int) -> ThemeSearch:
        """Turns by rank, or evidence from themes down to messages, for which the gate may ask a model."""
        return ThemeSearch(view, held, query, budget, self.own, self.llm)

    def graph(self, view: View, name: str | None, hops: int) -> Topology:
        """What is linked to a record, facts of themes, near themes, and f before and after a change."""
        with self._reading.at(view) as (store, index):
            drawn, themes = store.copy(), view.derived(Themes.load).facts
            for theme, facts in themes.items():
                drawn.relink(theme, HOLDS, (Link(HOLDS, fact) for fact in facts))
            for theme, near in index.neighbours(themes, NEIGHBOURS).items():
                drawn.relink(theme, NEAR, (Link(NEAR, one, round(cos, 3)) for one, cos in near if cos > 0))
            return picture(drawn, index, name, hops, (HOLDS, NEAR), _told)

    def status(self, view: View) -> Mapping[str, Any]:
        """How many turns are open, and of the records: sizes of themes, and how many facts changed theirs."""
        store = view.derived(RecordStore.load)
        sizes = Counter(map(len, view.derived(Themes.load).facts.values()))
        return {
            "open": sum(map(len, open_turns(view).values())),
            **by_kind(store),
            "reassigned": sum(len(store.records[name].moved) for name in store.visible),
            "sizes": {str(size): sizes[size] for size in sorted(sizes)},
        }

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """As of all strategies of records, and themes over the cap, unless nothing is to be split."""
        cap = (partial(bounded, self.own.theme_max),) if self.own.split else ()
        return edits.faults(store, only, *cap)

    def check(self, view: View) -> list[Finding]:
        """As of all strategies of records, and facts that two themes hold."""
        return [*super().check(view), *view.derived(Themes.load).doubled(view.derived(RecordStore.load))]


def _told(record: Record) -> str:
    aux = dict(record.aux)
    if "f" not in aux:
        return record.summary
    return f"{record.summary} ({aux.get('made', 'made')}: f {aux.get('from', '')} to {aux['f']})"
