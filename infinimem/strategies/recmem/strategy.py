"""RecMem: exchanges that a model is shown only when they recur, and the episodes and facts made of them then.

    observe   evidence -> exchanges (subconscious) -> merge first, then cluster what recurs -> refine
    tick      the same for exchanges that go on, and for what is open again

It proposes; the store disposes. Each step is one plan, tried on a copy of the records.
Source: RecMem (ACL 2026 Findings), sections 3.2 to 3.4, Eq. 5 to 9.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from infinimem import tokens
from infinimem.grounding.claims import claims
from infinimem.llm.base import CUT, LLM, in_order
from infinimem.model import AGAIN, Located, Plan
from infinimem.settings import Settings
from infinimem.store.records import stem
from infinimem.store.view import View, whole
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.recmem.read import TierSearch
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, HELD, OPEN, Exchanges, Held, held
from infinimem.strategies.recmem.tasks import EPISODES, MERGE, REFINE, TYPES
from infinimem.strategies.records.asking import (
    Asker,
    Data,
    named,
    narrated,
    narrative,
    new_facts,
    shown_turns,
)
from infinimem.strategies.records.record import Link, Record, Ref, fits, number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import Check, RecordStrategy, by_kind, edited, run
from infinimem.strategies.vector_index import Loaded
from infinimem.terms import DAYS, MONTHS

PAPER = 0.7
THETAS: Mapping[str, float] = {"lexical": 0.519, "static": 0.578, "minilm": 0.617}
"""Least cosine of a cluster, by embedder: at which LoCoMo takes 0.4 calls an exchange with the offline rules
(benchmarks/recurrence.py). Others have the paper's, which is that of text-embedding-3-small."""

VERSION, SOURCE = SPEC.links
AT_ONCE = 256
"""Exchanges that one product compares with all."""
SLACK = 1e-4
"""How far it may be off."""
_NAMED = re.compile(rf"\b(?:{'|'.join((*MONTHS, *DAYS))})\b", re.IGNORECASE)


class RecMem(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: RecmemSettings

    def __init__(self, llm: LLM, settings: Settings) -> None:
        super().__init__(llm, settings)
        self._units_writing, self._units_reading = Loaded(Exchanges.of), Loaded(Exchanges.of)

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Attend to the exchanges that these turns end; what is looked at without a plan is listed alone."""
        units, attend = view.derived(Exchanges.of), self._attending(view)
        due = groupby(units.in_order(units.waiting), lambda name: units.records[name].by)
        ended = {by: [partial(attend, name) for name in names] for by, names in due}
        yield from run(view, [step for turn in new for step in (*ended.get(turn.seq, ()), turn.seq)])

    def tick(self, view: View, event: Event) -> Plans:
        """Attend to exchanges that go on, and again to open ones: since a `forget` or an undo they may recur.

        No exchange is asked about an episode again that it was told apart from.
        """
        if event == "consolidate":
            units = view.derived(Exchanges.of)
            upto = view.max_seq if view.upto is None else view.upto
            names = [name for name in units.open() if units.records[name].turns[-1] <= upto]
            attend = self._attending(view, [name for name in names if name not in units.waiting])
            yield from run(view, [partial(attend, name) for name in names])

    def _attending(self, view: View, again: Sequence[str] = ()) -> Callable[[str, View, bool], Plan | None]:
        """What attends to exchanges one by one; those of `again` count as not yet said before their turn."""
        later, looked = {*again}, set[str]()
        alone = later - self._crowded(view, again)
        apart = {stem(doc_id) for doc_id in view.below(EPISODE.folder)} if again else set()

        def attend(name: str, view: View, asks: bool) -> Plan | None:
            looked.add(name)
            with held(view, self._writing, self._units_writing) as known:
                if not known.units.is_open(name):
                    return None
                turns = {turn.seq for turn in known.units.said([name])}
                if not asks or not turns.isdisjoint(view.given_up(self.llm.name)):
                    return None
                if name not in alone:
                    unheard = {name} | (known.units.waiting | later) - looked
                    made = Consolidation(known, self.llm, self.own, self._thetas(view), name, unheard)
                    if plan := made.plan(self.faults, apart if name in later else ()):
                        return plan
                answered = view.tried.keys() & turns
                return Plan(unanswered=dict.fromkeys(answered, AGAIN)) if answered else None

        return attend

    def _crowded(self, view: View, names: Sequence[str]) -> set[str]:
        """Those of these exchanges that may make a cluster with others of them, in whatever order."""
        if len(names) < max(self.own.theta_count, 1):
            return set()
        with self.held(view) as known:
            rows = np.stack([known.near.row(name) for name in names])
        least, found = self._thetas(view)[0] - SLACK, set[str]()
        for at in range(0, len(rows), AT_ONCE):
            close = (rows[at : at + AT_ONCE] @ rows.T >= least).sum(axis=1)
            found.update(
                names[at + place] for place in np.flatnonzero(close >= self.own.theta_count).tolist()
            )
        return found

    def _thetas(self, view: View) -> tuple[float, float]:
        """Least cosines of a cluster and of a merge."""
        scale = 6 / 7 if self.own.talk == "tasks" else 1.0
        sim = self.own.theta_sim or scale * THETAS.get(view.embedder.name.split()[0], PAPER)
        return sim, self.own.theta_merge or sim

    def estimate(self, view: View) -> int:
        """What a model is shown for the clusters that there are now, each exchange of them twice."""
        units = view.derived(Exchanges.of)
        found = self._crowded(view, units.open())
        return 2 * sum(tokens.count(units.records[name].text) for name in found)

    def held(self, view: View) -> AbstractContextManager[Held]:
        """The exchanges of a view beside its records."""
        return held(view, self._reading, self._units_reading)

    def search(self, view: View, held: Held, query: str, budget: int) -> TierSearch:
        """Turns by rank, or what the three tiers hold. Calls no model."""
        return TierSearch(view, held, query, budget, self.own)

    def status(self, view: View) -> Mapping[str, Any]:
        """How many exchanges there are, and in what."""
        units, records = view.derived(Exchanges.of), view.derived(RecordStore.load)
        states = Counter(unit.state for unit in units.records.values())
        merged = sum(map(merges, records.records.values()))
        return {
            "exchanges": len(units),
            "raw": states[OPEN],
            "merged": merged,
            "consolidated": max(states[HELD] - merged, 0),
            **by_kind(records),
        }


# ── one exchange ────────────────────────────────────────────────────────────────────────────────


@dataclass
class Consolidation:
    """Attends to one exchange: it joins the episode that it goes on with, or makes some with what recurs.

    Args:
        thetas: least cosines of a cluster and of a merge.
        unheard: exchanges that are not yet said, itself among them.
    """

    held: Held
    llm: LLM
    own: RecmemSettings
    thetas: tuple[float, float]
    name: str
    unheard: Collection[str]

    def __post_init__(self) -> None:
        self.asker = Asker(self.llm)
        self.after = self.held.records.copy()

    def plan(self, check: Check, without: Collection[str] = ()) -> Plan | None:
        """The plan for the exchange, which joins no episode of `without`; None where it stays as it is."""
        op = "merge" if self._merge(without) else "consolidate"
        if op == "consolidate" and not self.asker.failure:
            self._cluster()
        if failure := self.asker.failure:  # the exchange stays raw, with all that was told of it
            said = {turn.seq: failure for turn in self.held.units.said([self.name])}
            return edited(op, self.after, self.after, check, self.asker.rejected(), said)
        return edited(op, self.held.records, self.after, check, self.asker.rejected())

    def _merge(self, without: Collection[str]) -> bool:
        """Eq. 6: the nearest episode with the exchange in it; False if it is not part of that episode's."""
        row = self.held.near.row(self.name)
        near = self.held.index.nearest(row, 1, (EPISODE.folder,), without=without)
        if not near or near[0][1] < self.thetas[1]:
            return False
        old = self.after.records[near[0][0]]
        if old.pinned:
            return False
        turns = self.held.units.said([self.name])
        data = self.asker.ask(MERGE, episode=old.prose, turns=shown_turns(turns))
        text = narrative(data["merged"]) if data and data["should_merge"] else ""
        if not text or _dates(old.prose) - _dates(text):
            return False
        refs = (*old.refs, *(Ref(turn.seq) for turn in turns))
        aux = [("merged", str(merges(old) + 1))]
        new = replace(narrated(self.after, old.id, text, refs, aux), others=old.others, links=old.links)
        if not fits(new):
            return False
        self.after.put(new)
        if self.own.refine_merged:
            self._refine({new.id: turns})
        return True

    def _recurs(self) -> list[str]:
        """Eq. 5: the open exchanges before it in which it recurs; none if they are fewer than `theta_count`.

        The paper's text asks for so many others; its Appendix B and its code count it, as is done here.
        """
        near, most = self.held.near, 2 * self.own.theta_count
        found = near.nearest(near.row(self.name), most, (OPEN,), without=self.unheard)
        close = [other for other, cosine in found if cosine >= self.thetas[0]]
        return close if len(close) + 1 >= self.own.theta_count else []

    def _cluster(self) -> None:
        """Eq. 7: episodes of the exchange and those in which it recurs, and their facts.

        What the model leaves out of all episodes is named by an archived one without text: it recurs no more,
        as the whole cluster leaves the raw ones in the paper.
        """
        units, others, data = self.held.units, self._recurs(), None
        while others and data is None:
            cluster, self.asker.failure = units.said([self.name, *others]), ""
            data = self.asker.ask(EPISODES, turns=shown_turns(cluster))
            others = others if data else others[: len(others) // 2] if self.asker.failure in CUT else []
        if data is None:
            return
        left = {self.name, *others}
        fresh: dict[str, Sequence[Located]] = {}
        for row in data["episodes"]:
            names = {units.of_turn[seq] for seq in named(row["from"], (turn.seq for turn in cluster))} & left
            if names and (text := narrative(row["text"])):
                fresh |= self._episode(text, names)
                left -= names
        if left:
            self._episode("", left)
        self._refine(fresh)

    def _episode(self, text: str, names: Collection[str]) -> dict[str, Sequence[Located]]:
        """Put a new episode of exchanges; its name, and their turns."""
        turns = self.held.units.said(names)
        name = self.after.new_id(EPISODE.prefix, number_of(self.name)[0])
        self.after.put(narrated(self.after, name, text, (Ref(turn.seq) for turn in turns)))
        return {name: turns}

    def _refine(self, fresh: Mapping[str, Sequence[Located]]) -> None:
        """Eq. 8 and 9: the facts that episodes leave out of the turns that are new to each, side by side.

        A model is shown the nearest facts that are known. Those that a new one replaces are archived.
        """
        store, index, own = self.after, self.held.index, self.own
        index.sync(store)
        known = dict[str, dict[str, Record]]()
        for name in fresh:
            near = index.nearest(index.row(name), own.k_old, (FACT.folder,))
            known[name] = {f"f{at}": store.records[fact] for at, (fact, _) in enumerate(near, 1)}

        def ask(name: str) -> Data | None:
            rows = [{"id": id_, "time": one.time, "text": one.summary} for id_, one in known[name].items()]
            text = store.records[name].prose if own.refine == "episode" else ""
            return self.asker.ask(REFINE, episode=text, turns=shown_turns(fresh[name]), facts=rows)

        for episode, data in zip(fresh, in_order(ask, [*fresh], own.workers), strict=True):
            old = known[episode]
            rows = data["facts"] if data else ()
            for row, text, refs in new_facts(rows, fresh[episode], old.values(), own.facts_max):
                name = store.new_id(FACT.prefix, number_of(self.name)[0])
                aux = [("type", row["type"])] if row["type"] in TYPES else []
                store.put(narrated(store, name, text, refs, aux))
                store.link(name, Link(SOURCE, episode))
                gone = old.get((row["replaces"] or "").strip())
                if own.supersede and gone and not gone.pinned and gone.id in store.visible:
                    store.link(name, Link(VERSION, gone.id))
                    store.archive(gone.id)


def merges(episode: Record) -> int:
    """How many exchanges joined an episode."""
    return whole(dict(episode.aux).get("merged")) or 0


def _dates(text: str) -> set[str]:
    """The numbers of a text, and the names of months and days."""
    return {*claims(text)["number"], *(match.group().casefold() for match in _NAMED.finditer(text))}
