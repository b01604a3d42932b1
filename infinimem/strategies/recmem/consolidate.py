"""Consolidation of what recurs: an exchange joins the episode that it goes on with, or makes one with others.

Each step is one plan, made from a library as it is and tried on a copy of its records.
Source: RecMem, sections 3.2 and 3.3, Eq. 5 to 7.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from infinimem.grounding.claims import claims
from infinimem.grounding.sentences import sentences
from infinimem.llm.base import LLM
from infinimem.llm.parallel import in_order
from infinimem.markdown.characters import one_line
from infinimem.model import Finding, Located, Plan
from infinimem.store.view import View
from infinimem.strategies.recmem.refine import is_pinned, keep, refine
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, HELD, Units, recurs
from infinimem.strategies.recmem.tasks import EPISODES, MERGE
from infinimem.strategies.records import rules
from infinimem.strategies.records.asking import Asked, named, shown
from infinimem.strategies.records.codec import clean_prose, fits
from infinimem.strategies.records.descriptor import SUMMARY, Descriptor, unverified
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, moment, number_of
from infinimem.strategies.records.record_store import RecordStore, puts
from infinimem.strategies.vector_index import Loaded, VectorIndex

PROSE = 4000
"""Characters of an episode."""

_RULES = (rules.evidence_stands, rules.links_stand, rules.header_fits)
_DAYS = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Held:
    """What is known of a library: its records and its exchanges, and where both lie."""

    records: RecordStore
    index: VectorIndex
    units: Units
    near: VectorIndex

    def is_open(self, name: str) -> bool:
        """Whether there is such an exchange, and no episode holds all of it."""
        return name in self.units and self.units.records[name].state != HELD

    def move(self, name: str, state: str, to: str) -> bool:
        """Let an exchange that stands there stand elsewhere until the library is looked at anew."""
        if name not in self.units or self.units.records[name].state != state:
            return False
        self.units.move(name, to)
        self.near.sync(self.units, (name,))
        return True


class Holding:
    """Gives `Held` of the view that was asked for last, for one thread at a time."""

    def __init__(self) -> None:
        self._records, self._units = Loaded(), Loaded(Units.of)

    @contextmanager
    def at(self, view: View) -> Iterator[Held]:
        """As `Loaded.at`; the exchanges may be moved."""
        with self._records.at(view) as (records, index), self._units.at(view) as (units, near):
            assert isinstance(units, Units)
            yield Held(records, index, units.copy(), near)


class Consolidation:
    """Attends to one exchange.

    Args:
        held: what is known; `records` are not edited.
        llm: the model.
        own: the settings.
        thetas: least cosines of a cluster and of a merge.
    """

    def __init__(self, held: Held, llm: LLM, own: RecmemSettings, thetas: tuple[float, float]) -> None:
        self._held = held
        self._own = own
        self._theta_sim, self._theta_merge = thetas
        self._asked = Asked(llm)
        self._after = held.records.copy()

    def of(self, name: str, without: Collection[str] = ()) -> Plan | None:
        """The plan for an exchange; None where it stays as it is, and nothing went wrong.

        Args:
            name: of the exchange.
            without: episodes that were asked about.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the model or the embedder.
        """
        touched = self._merged(name, without)
        op = "merge"
        if touched is None:
            op, touched = "consolidate", self._recurring(name)
        rejected = tuple(self._asked.rejected)
        notes = tuple(f"{one.task}: a reply that could not be read ({one.reasons[0]})" for one in rejected)
        if touched and (wrong := rules.new_faults(self._held.records, self._after, faults, touched)):
            notes += tuple(f"not written, for {one.where} would be wrong: {one.what}" for one in wrong)
        elif touched:
            return Plan(op, records=puts(self._held.records, self._after), notes=notes, rejected=rejected)
        return Plan(notes=notes, rejected=rejected) if notes else None

    # ── merge first ─────────────────────────────────────────────────────────────────────────────

    def _merged(self, name: str, without: Collection[str]) -> list[str] | None:
        """Eq. 6: the nearest episode with the exchange in it; None where it is none of that episode's."""
        row = self._held.near.row(name)
        near = self._held.index.nearest(row, 1, (EPISODE.folder,), without=without)
        if not near or near[0][1] < self._theta_merge:
            return None
        old = self._after.records[near[0][0]]
        if is_pinned(old):
            return None
        turns = self._held.units.turns([name])
        data = self._asked.ask(MERGE, episode=old.prose, turns=shown(turns))
        if data is None or not data["should_merge"]:
            return None
        new = self._episode(
            old.id, data["merged"], (*old.refs, *(Ref(turn.seq) for turn in turns)), old.others
        )
        if new is None or _dates(old.prose) - _dates(new.prose):
            return None
        count = int(dict(old.aux).get("merged", "0")) + 1
        new = replace(new, aux=(("merged", str(count)), *new.aux))
        if not fits(new, self._after.links(old.id)):
            return None
        self._after.put(new)
        touched = [new.id]
        if self._own.refine_merged:
            touched += self._refined([(new, turns)], name)
        return touched

    # ── recurrence ──────────────────────────────────────────────────────────────────────────────

    def _recurring(self, name: str) -> list[str]:
        """Eq. 5 and 7: episodes of the exchanges in which this one recurs, and their facts.

        What the model leaves out of all episodes is named by an archived one without text: it recurs no more,
        as the whole cluster leaves the raw ones in the paper.
        """
        held, own = self._held, self._own
        others = recurs(held.units, held.near, name, self._theta_sim, own.theta_count)
        if not others:
            return []
        cluster = held.units.turns([name, *others])
        data = self._asked.ask(EPISODES, turns=shown(cluster))
        if data is None:
            return []
        number = number_of(name)[0]
        left = {*others, name}
        made: list[tuple[Record, Sequence[Located]]] = []
        for row in data["episodes"]:
            units = {
                held.units.unit_of[seq] for seq in named(row["from"], [turn.seq for turn in cluster])
            } & left
            turns = held.units.turns(units)
            refs = tuple(Ref(turn.seq) for turn in turns)
            new = turns and self._episode(self._after.new_id(EPISODE.prefix, number), row["text"], refs)
            if new:
                self._after.put(new)
                made.append((new, turns))
                left -= units
        touched = [new.id for new, _ in made]
        if left:
            refs = tuple(Ref(turn.seq) for turn in held.units.turns(left))
            rest = self._episode(self._after.new_id(EPISODE.prefix, number), "", refs, empty=True)
            assert rest
            self._after.put(rest)
            touched.append(rest.id)
        return [*touched, *self._refined(made, name)]

    def _refined(self, episodes: Sequence[tuple[Record, Sequence[Located]]], name: str) -> list[str]:
        """Facts of these episodes; they are asked for side by side, and each beside what was known before."""
        index, after, own = self._held.index, self._after, self._own
        index.sync(after, [episode.id for episode, _ in episodes])
        ask = partial(_ask, self._asked, after, index, own)
        found = in_order(ask, episodes, own.workers)
        number = number_of(name)[0]
        return [fact for refined in found for fact in keep(after, refined, number, own)]

    def _episode(
        self, name: str, text: str, refs: Sequence[Ref], others: tuple[str, ...] = (), *, empty: bool = False
    ) -> Record | None:
        """An episode with this text; None where nothing is left of it."""
        prose = clean_prose(text[:PROSE])
        if not prose and not empty:
            return None
        refs = sorted(set(refs))
        quotes = [self._after.quote(ref) for ref in refs]
        doubted = unverified(Descriptor(prose, ()), quotes)
        times = [said.time for said in quotes if said.time]
        return Record(
            name,
            SPEC,
            one_line(next(sentences(prose), ""))[:SUMMARY],
            time=max(times, key=moment, default=None),
            refs=tuple(refs),
            visible=not empty,
            aux=UNVERIFIED if doubted else (),
            prose=prose,
            others=others,
        )


def _ask(asked: Asked, store: RecordStore, index: VectorIndex, own: RecmemSettings, of: Any) -> Any:
    episode, turns = of
    return refine(asked, store, index, episode, turns, own)


def _dates(text: str) -> set[str]:
    """The numbers of a text, and the names of months and days."""
    return {*claims(text)["number"], *(match.group().casefold() for match in _DAYS.finditer(text))}


def faults(store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
    """What does not hold (records/rules.py)."""
    return rules.faults(store, _RULES, only)


def doubled(store: RecordStore) -> Iterator[Finding]:
    """Turns that two episodes hold."""
    held: dict[int, str] = {}
    for name, record in sorted(store.records.items()):
        if record.kind is EPISODE:
            for ref in record.refs:
                if (other := held.setdefault(ref.seq, name)) != name:
                    what = f"turn {ref.seq} is in {other} too; take the line out of one"
                    yield Finding("error", what, record.doc_id)
