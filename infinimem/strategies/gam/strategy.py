"""GAM: turns stay evidence until their topic ends; then they are a topic, in a network of topics.

    observe   evidence -> what a turn makes due (boundaries) -> topics and their relations (consolidate)
    tick      the same for all that is active

It proposes; the store disposes. Source: arXiv 2604.12285.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infinimem.model import Located, Plan
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.gam.consolidate import Consolidation, Due, due_after, due_before
from infinimem.strategies.gam.read import TopicSearch, is_verified
from infinimem.strategies.gam.spec import SPEC, GamSettings
from infinimem.strategies.readers.pipeline import size
from infinimem.strategies.records.edits import Round
from infinimem.strategies.records.evidence import Records
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import RecordStrategy, by_kind, links


class Gam(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: GamSettings
    apart = SPEC.kinds

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A plan for what each turn makes due; turns that make nothing due are listed alone."""
        plans = Round(view)
        for turn in new:
            for makes_due in (due_before, due_after):
                due = makes_due(plans.view, turn, self.own) if plans.asks else []
                plan = self._plan(view, plans.view, due)
                if plan is not None:
                    yield from plans.propose(plan)
            plans.seen.append(turn.seq)
        yield from plans.end()

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: all sessions end."""
        if event == "consolidate":
            plan = self._plan(view, view, [Due(said, "ended") for said in _active(view)])
            if plan is not None:
                yield plan

    def _plan(self, began: View, view: View, due: Sequence[Due]) -> Plan | None:
        given_up = view.given_up(self.llm.name, began)
        left = [one._replace(turns=[turn for turn in one.turns if turn.seq not in given_up]) for one in due]
        due = [one for one in left if one.turns]
        if not due:
            return None
        with self._writing.at(view) as (store, index):
            return Consolidation(view, store, index, self.llm, self.own).plan(due, self.faults)

    def estimate(self, view: View) -> int:
        """What is active, shown twice: for its boundaries, and for its summaries."""
        return 2 * sum(map(size, _active(view)))

    def search(self, view: View, held: Records, query: str, budget: int) -> TopicSearch:
        """Turns by rank, or under the summaries of their topics. Calls no model."""
        return TopicSearch(view, held, query, budget, self.own)

    def status(self, view: View) -> Mapping[str, Any]:
        """How much is active, and how large the network is."""
        store = view.derived(RecordStore.load)
        active = _active(view)
        return {
            "active": {"turns": sum(map(len, active)), "tokens": sum(map(size, active))},
            **by_kind(store),
            "verified": sum(map(is_verified, store.records.values())),
            "links": links(store),
        }


def _active(view: View) -> list[Sequence[Located]]:
    """The turns that are in no topic, by session, the first first."""
    return sorted(open_turns(view).values(), key=lambda said: said[0].seq)
