"""RecMem: exchanges that a model is shown only when they recur, and the episodes and facts made of them then.

    observe   evidence -> exchanges (subconscious) -> consolidate: merge first, then what recurs -> refine
    tick      the same for exchanges that go on, and for what is raw again

It proposes; the store disposes. Source: RecMem (ACL 2026 Findings).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from infinimem import tokens
from infinimem.llm.base import LLM
from infinimem.model import AGAIN, Located, Plan
from infinimem.settings import Settings
from infinimem.store.records import stem
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.recmem.consolidate import Consolidation, merges
from infinimem.strategies.recmem.read import TierSearch
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import (
    EPISODE,
    HELD,
    RAW,
    WAITING,
    Held,
    Holding,
    Units,
    crowded,
)
from infinimem.strategies.records.edits import Round
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import RecordStrategy, by_kind

_Step = tuple[int, str | None]
"""A turn to list, or an exchange to attend to."""

PAPER = 0.7
THETAS: Mapping[str, float] = {"lexical": 0.519, "static": 0.578, "minilm": 0.617}
"""Least cosine of a cluster, by embedder: at which LoCoMo takes 0.4 calls an exchange with the offline rules
(benchmarks/recurrence.py). Others have the paper's, which is that of text-embedding-3-small."""


class RecMem(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: RecmemSettings
    apart = (EPISODE,)

    def __init__(self, llm: LLM, settings: Settings) -> None:
        super().__init__(llm, settings)
        self._to_write, self._to_read = Holding(self._writing), Holding(self._reading)

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Attend to the exchanges that these turns end; what is looked at without a plan is listed alone."""
        due = view.derived(Units.of).due()
        steps = [(turn.seq, name) for turn in new for name in (*due.get(turn.seq, ()), None)]
        yield from self._attended(view, steps)

    def tick(self, view: View, event: Event) -> Plans:
        """Attend to exchanges that go on, and again to the raw ones, which may recur since a `forget` or an
        undo.

        No exchange is asked about an episode again that it was told apart from.
        """
        if event == "consolidate":
            units = view.derived(Units.of)
            names = units.open()
            raw = [name for name in names if units.records[name].state == RAW]
            yield from self._attended(view, [(0, name) for name in names], raw)

    def _crowded(self, view: View, names: Sequence[str]) -> set[str]:
        """Those of these exchanges that others of them make a cluster with, if they all were raw before."""
        if len(names) < self.own.theta_count:
            return set()
        with self._to_read.at(view) as held:
            return crowded(held.near, names, self._thetas(view)[0], self.own.theta_count)

    def _attended(self, view: View, steps: Sequence[_Step], again: Sequence[str] = ()) -> Plans:
        """Go through the steps. The raw ones of `again` count as not yet said until it is their turn."""
        left, looked, plans = deque(steps), list[str](), Round(view)
        hidden = set(again)
        alone = hidden - self._crowded(view, again)
        told = {stem(doc_id) for doc_id in view.below(EPISODE.folder)} if again else set()
        while left:
            plan, view = None, plans.view
            with self._to_write.at(view) as held:
                for name in hidden:
                    held.move(name, RAW, WAITING)
                looked = [name for name in looked if held.move(name, WAITING, RAW)]
                while left and plan is None:
                    seq, unit = left.popleft()
                    if unit is None:
                        plans.seen.append(seq)
                    elif held.is_open(unit):
                        seqs = {turn.seq for turn in held.units.turns([unit])}
                        asks = plans.asks and seqs.isdisjoint(view.given_up(self.llm.name))
                        if asks and unit not in alone:
                            made = Consolidation(held, self.llm, self.own, self._thetas(view), unit)
                            plan = made.plan(self.faults, told if unit in hidden else ())
                        if asks and plan is None and (answered := view.tried.keys() & seqs):
                            plan = Plan(unanswered=dict.fromkeys(answered, AGAIN))
                        hidden.discard(unit)
                        looked.append(unit)
                        held.move(unit, WAITING, RAW)
            if plan is not None:
                yield from plans.propose(plan)
        yield from plans.end()

    def _thetas(self, view: View) -> tuple[float, float]:
        """Least cosines of a cluster and of a merge."""
        own = self.own
        sim = own.theta_sim or THETAS.get(view.embedder.name.split()[0], PAPER)
        return sim, own.theta_merge or sim

    def estimate(self, view: View) -> int:
        """What a model is shown for the clusters that there are now, each exchange of them twice."""
        units = view.derived(Units.of)
        found = self._crowded(view, units.open())
        return 2 * sum(tokens.count(units.records[name].text) for name in found)

    def held(self, view: View) -> AbstractContextManager[Held]:
        """The exchanges of a view beside its records."""
        return self._to_read.at(view)

    def search(self, view: View, held: Held, query: str, budget: int) -> TierSearch:
        """Turns by rank, or what the three tiers hold. Calls no model."""
        return TierSearch(view, held, query, budget, self.own)

    def status(self, view: View) -> Mapping[str, Any]:
        """How many exchanges there are, and in what."""
        units, records = view.derived(Units.of), view.derived(RecordStore.load)
        states = Counter(unit.state for unit in units.records.values())
        merged = sum(map(merges, records.records.values()))
        return {
            "exchanges": len(units),
            "raw": states[RAW] + states[WAITING],
            "merged": merged,
            "consolidated": max(states[HELD] - merged, 0),
            **by_kind(records),
        }
