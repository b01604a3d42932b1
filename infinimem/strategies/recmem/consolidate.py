"""Consolidation of what recurs: an exchange joins the episode that it goes on with, or makes one with others.

Facts that the episode leaves out are records of their own. Each step is one plan, made from a library as it
is and tried on a copy of its records. Source: RecMem, sections 3.2 to 3.4, Eq. 5 to 9."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infinimem.chronology import latest
from infinimem.grounding.claims import claims, is_repetition
from infinimem.llm.base import CUT, LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Entry, Located, Plan
from infinimem.store.view import whole
from infinimem.strategies.graph.links import Link
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, Held, recurs
from infinimem.strategies.recmem.tasks import EPISODES, MERGE, REFINE, TYPES
from infinimem.strategies.records.asking import Asker, named
from infinimem.strategies.records.codec import fits
from infinimem.strategies.records.edits import Check, edited
from infinimem.strategies.records.record import Record, Ref, number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.telling import narrated, narrative, one_liner, shown_turns
from infinimem.strategies.vector_index import VectorIndex
from infinimem.terms import DAYS, MONTHS

# ── facts that an episode leaves out ─────────────────────────────────────────────────────────────


VERSION, SOURCE = SPEC.links


@dataclass(frozen=True)
class Refined:
    """What a model found beside an episode, and the facts that it was shown by the ids that it was told."""

    episode: Record
    turns: Sequence[Located]
    known: Mapping[str, Record]
    found: Sequence[Mapping[str, Any]]


def refine(
    asker: Asker,
    store: RecordStore,
    index: VectorIndex,
    episode: Record,
    turns: Sequence[Located],
    own: RecmemSettings,
) -> Refined:
    """Ask for the facts of an episode (Eq. 8: beside those nearest to it); a reply that cannot be read holds
    none.

    Args:
        asker: the model.
        store: the records, in which the episode is.
        index: where they lie, the episode among them.
        episode: that which leaves something out.
        turns: of the exchanges that are new to it, by time.
        own: how many facts are shown, and whether the episode is.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    near = index.nearest(index.row(episode.id), own.k_old, (FACT.folder,))
    known = {f"f{number}": store.records[name] for number, (name, _) in enumerate(near, 1)}
    facts = [{"id": called, "time": one.time, "text": one.summary} for called, one in known.items()]
    text = episode.prose if own.refine == "episode" else ""
    data = asker.ask(REFINE, episode=text, turns=shown_turns(turns), facts=facts)
    return Refined(episode, turns, known, data["facts"] if data else ())


def keep(store: RecordStore, refined: Refined, number: int, own: RecmemSettings) -> None:
    """Put the facts that are new and say where they come from, and archive those that they replace.

    Args:
        store: the records, which are edited.
        refined: what was found.
        number: of the facts' ids.
        own: how many there may be, and whether facts are archived.
    """
    facts = [Entry(0, one.summary, "", one.time) for one in refined.known.values()]
    times = {turn.seq: turn.entry.time for turn in refined.turns}
    most = len(facts) + own.facts_max
    for row in refined.found:
        text, seqs = one_liner(row["text"]), named(row["from"], times)
        new = Entry(0, text, "", latest(times[seq] for seq in seqs))
        if not text or not seqs or any(is_repetition(new, other) for other in facts):
            continue
        if len(facts) >= most:
            break
        facts.append(new)
        aux = [("type", row["type"])] if row["type"] in TYPES else []
        fact = narrated(store, store.new_id(FACT.prefix, number), text, map(Ref, seqs), aux)
        store.put(fact)
        store.graph.add(fact.id, Link(SOURCE, refined.episode.id))
        old = refined.known.get((row["replaces"] or "").strip())
        if own.supersede and old and not old.pinned and old.id in store.visible:
            store.graph.add(fact.id, Link(VERSION, old.id))
            store.archive(old.id)


# ── episodes ─────────────────────────────────────────────────────────────────────────────────────


_NAMED = re.compile(rf"\b(?:{'|'.join((*MONTHS, *DAYS))})\b", re.IGNORECASE)


class Consolidation:
    """Attends to one exchange.

    Args:
        held: what is known; `records` are not edited.
        llm: the model.
        own: the settings.
        thetas: least cosines of a cluster and of a merge.
        name: of the exchange.
    """

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
        """The plan for the exchange; None where it stays as it is, and nothing went wrong.

        Args:
            check: the rules of records.
            without: episodes that it was told apart from.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the model or the embedder.
        """
        op = "merge" if self._merge(without) else "consolidate"
        if op == "consolidate" and not self._asker.failure:
            self._cluster()
        if failure := self._asker.failure:  # the exchange stays raw, with all that was told of it
            said = {turn.seq: failure for turn in self._held.units.turns([self._name])}
            return edited(op, self._after, self._after, check, self._asker.rejected(), said)
        return edited(op, self._held.records, self._after, check, self._asker.rejected())

    def _merge(self, without: Collection[str]) -> bool:
        """Eq. 6: the nearest episode with the exchange in it; False where it is none of that episode's."""
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
        """Facts of these episodes; they are asked for side by side, and each beside what was known before."""
        index, after, own = self._held.index, self._after, self._own
        index.sync(after, [episode.id for episode, _ in episodes])
        found = in_order(lambda one: refine(self._asker, after, index, *one, own), episodes, own.workers)
        for refined in found:
            keep(after, refined, self._number, own)


def merges(episode: Record) -> int:
    """How many exchanges joined an episode."""
    return whole(dict(episode.aux).get("merged")) or 0


def _dates(text: str) -> set[str]:
    """The numbers of a text, and the names of months and days."""
    return {*claims(text)["number"], *(match.group().casefold() for match in _NAMED.finditer(text))}
