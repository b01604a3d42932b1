"""Consolidation of what recurs: an exchange joins the episode that it goes on with, or makes one with others.

Facts that the episode leaves out are records of their own. Each step is one plan, made from a library as it
is and tried on a copy of its records. Source: RecMem, sections 3.2 to 3.4, Eq. 5 to 9.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from infinimem.grounding.claims import claims
from infinimem.llm.base import CUT, LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Located, Plan
from infinimem.store.view import whole
from infinimem.strategies.graph.links import Link
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, Held, recurs
from infinimem.strategies.recmem.tasks import EPISODES, MERGE, REFINE, TYPES
from infinimem.strategies.records.asking import Asker, Data, named
from infinimem.strategies.records.codec import fits
from infinimem.strategies.records.edits import Check, edited
from infinimem.strategies.records.record import Record, Ref, number_of
from infinimem.strategies.records.telling import narrated, narrative, new_facts, shown_turns
from infinimem.terms import DAYS, MONTHS

VERSION, SOURCE = SPEC.links
_NAMED = re.compile(rf"\b(?:{'|'.join((*MONTHS, *DAYS))})\b", re.IGNORECASE)


class Consolidation:
    """Attends to one exchange."""

    def __init__(
        self, held: Held, llm: LLM, own: RecmemSettings, thetas: tuple[float, float], name: str
    ) -> None:
        self._held = held
        self._own = own
        self._theta_sim, self._theta_merge = thetas
        self._name = name
        self._number = number_of(name)[0]
        self._asker = Asker(llm)
        self._after = held.records.copy()

    def plan(self, check: Check, without: Collection[str] = ()) -> Plan | None:
        """The plan for the exchange, which joins no episode of `without`; None where it stays as it is."""
        op = "merge" if self._merge(without) else "consolidate"
        if op == "consolidate" and not self._asker.failure:
            self._cluster()
        if failure := self._asker.failure:  # the exchange stays raw, with all that was told of it
            said = {turn.seq: failure for turn in self._held.units.turns([self._name])}
            return edited(op, self._after, self._after, check, self._asker.rejected(), said)
        return edited(op, self._held.records, self._after, check, self._asker.rejected())

    def _merge(self, without: Collection[str]) -> bool:
        """Eq. 6: the nearest episode with the exchange in it; False if it is not part of that episode's."""
        row = self._held.near.row(self._name)
        near = self._held.index.nearest(row, 1, (EPISODE.folder,), without=without)
        if not near or near[0][1] < self._theta_merge:
            return False
        old = self._after.records[near[0][0]]
        if old.pinned:
            return False
        turns = self._held.units.turns([self._name])
        data = self._asker.ask(MERGE, episode=old.prose, turns=shown_turns(turns))
        text = narrative(data["merged"]) if data and data["should_merge"] else ""
        if not text or _dates(old.prose) - _dates(text):
            return False
        refs = (*old.refs, *(Ref(turn.seq) for turn in turns))
        aux = [("merged", str(merges(old) + 1))]
        new = replace(narrated(self._after, old.id, text, refs, aux), others=old.others)
        if not fits(new, self._after.links(old.id)):
            return False
        self._after.put(new)
        if self._own.refine_merged:
            self._refine([(new, turns)])
        return True

    def _cluster(self) -> None:
        """Eq. 5 and 7: episodes of the exchanges in which this one recurs, and their facts.

        What the model leaves out of all episodes is named by an archived one without text: it recurs no more,
        as the whole cluster leaves the raw ones in the paper.
        """
        units, own = self._held.units, self._own
        others = [*recurs(units, self._held.near, self._name, self._theta_sim, own.theta_count)]
        data = None
        while others and data is None:
            cluster, self._asker.failure = units.turns([self._name, *others]), ""
            data = self._asker.ask(EPISODES, turns=shown_turns(cluster))
            others = others if data else others[: len(others) // 2] if self._asker.failure in CUT else []
        if data is None:
            return
        left, made = {self._name, *others}, []
        for row in data["episodes"]:
            told = {units.unit_of[seq] for seq in named(row["from"], (turn.seq for turn in cluster))} & left
            text = narrative(row["text"])
            if told and text:
                made.append(self._told(text, told))
                left -= told
        if left:
            self._told("", left)
        self._refine(made)

    def _told(self, text: str, names: Collection[str]) -> tuple[Record, Sequence[Located]]:
        """A new episode of exchanges, and their turns."""
        turns = self._held.units.turns(names)
        name = self._after.new_id(EPISODE.prefix, self._number)
        new = narrated(self._after, name, text, (Ref(turn.seq) for turn in turns))
        self._after.put(new)
        return new, turns

    def _refine(self, episodes: Sequence[tuple[Record, Sequence[Located]]]) -> None:
        """Facts of these episodes, with the turns that are new to each; asked for side by side."""
        self._held.index.sync(self._after, [episode.id for episode, _ in episodes])
        found = in_order(lambda one: self._facts(*one), episodes, self._own.workers)
        for (episode, turns), (known, rows) in zip(episodes, found, strict=True):
            self._keep(episode, turns, known, rows)

    def _facts(
        self, episode: Record, turns: Sequence[Located]
    ) -> tuple[Mapping[str, Record], Sequence[Data]]:
        """The facts nearest to an episode by the ids that a model is told, and those it finds (Eq. 8)."""
        index, own = self._held.index, self._own
        near = index.nearest(index.row(episode.id), own.k_old, (FACT.folder,))
        known = {f"f{number}": self._after.records[name] for number, (name, _) in enumerate(near, 1)}
        facts = [{"id": called, "time": one.time, "text": one.summary} for called, one in known.items()]
        text = episode.prose if own.refine == "episode" else ""
        data = self._asker.ask(REFINE, episode=text, turns=shown_turns(turns), facts=facts)
        return known, data["facts"] if data else ()

    def _keep(
        self, episode: Record, turns: Sequence[Located], known: Mapping[str, Record], rows: Sequence[Data]
    ) -> None:
        """Put the facts that are new and say where they come from, and archive those that they replace."""
        store = self._after
        for row, text, refs in new_facts(rows, turns, known.values(), self._own.facts_max):
            aux = [("type", row["type"])] if row["type"] in TYPES else []
            fact = narrated(store, store.new_id(FACT.prefix, self._number), text, refs, aux)
            store.put(fact)
            store.graph.add(fact.id, Link(SOURCE, episode.id))
            old = known.get((row["replaces"] or "").strip())
            if self._own.supersede and old and not old.pinned and old.id in store.visible:
                store.graph.add(fact.id, Link(VERSION, old.id))
                store.archive(old.id)


def merges(episode: Record) -> int:
    """How many exchanges joined an episode."""
    return whole(dict(episode.aux).get("merged")) or 0


def _dates(text: str) -> set[str]:
    """The numbers of a text, and the names of months and days."""
    return {*claims(text)["number"], *(match.group().casefold() for match in _NAMED.finditer(text))}
