"""RecMem: exchanges that a model is shown only when they recur, and the episodes and facts made of them then.

    observe   evidence -> exchanges -> merge first (Eq. 6), else what recurs (Eq. 5, 7)
              -> refine (Eq. 8, 9)
    tick      the same for exchanges that go on, and for what is open again
    read      the nearest of three tiers: exchanges, episodes, facts (section 3.5); calls no model

It proposes; the store disposes. Each exchange is one plan, tried on a copy of the records. One file, to be
read from top to bottom as the paper is, but for the exchanges, which know nothing of the rest and stand last.
Source: RecMem (ACL 2026 Findings), sections 3.1 to 3.5 and Appendix F.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from infinimem import tokens
from infinimem.grounding.sentences import claims
from infinimem.llm.base import CUT, LLM, in_order
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task
from infinimem.model import AGAIN, Candidate, Evidence, Located, Plan
from infinimem.settings import Settings
from infinimem.spec import Kind, StrategySpec
from infinimem.store.records import held_by, stem
from infinimem.store.view import View, whole
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.readers.pipeline import FIRST, near, pack
from infinimem.strategies.recmem.spec import FACTS_MAX, K_OLD, SPEC, RecmemSettings
from infinimem.strategies.records import asking
from infinimem.strategies.records.asking import Asker, Data, ends_exchange, named, narrated, narrative
from infinimem.strategies.records.record import Link, Record, Ref, fits, number_of, record_id
from infinimem.strategies.records.record_store import Loaded, RecordStore, VectorIndex, differing
from infinimem.strategies.records.strategy import RecordSearch, RecordStrategy, by_kind, edited, run
from infinimem.terms import DAYS, MONTHS

PAPER = 0.7
THETAS: Mapping[str, float] = {"lexical": 0.519, "static": 0.578, "minilm": 0.617}
"""Least cosine of a cluster, by embedder: at which LoCoMo takes 0.4 calls an exchange with the offline rules
(benchmarks/recurrence.py). Others have the paper's, which is that of text-embedding-3-small."""
TASKS = 6 / 7
"""What it is multiplied by for talk of tasks, as 0.6 of 0.7 in the paper (section 3.6)."""

EPISODE, FACT = SPEC.kinds
VERSION, SOURCE = SPEC.links
_NAMED = re.compile(rf"\b(?:{'|'.join((*MONTHS, *DAYS))})\b", re.IGNORECASE)

# ── what a model is asked (Appendix F) ──────────────────────────────────────────────────────────
# `turns`: [turn, …] by time; a turn is named by its id, and stands for the exchange that it is of.

TYPES = ("USER_EVENT", "USER_CONSTRAINT_OR_PREFERENCE", "TIME_ANCHORED_UPDATE", "ENTITY_RELATION")
"""Of facts; one of no such type has none."""

EPISODES = task("episodes", "turns", 2048, "tell:episodes", episodes=list_of(text=TEXT, **{"from": IDS}))
"""What happened in exchanges that are about one thing: a narrative a thread, and the turns that it tells."""

MERGE = task(
    "merge_episodes",
    "episode turns",
    1024,
    "tell:merge_episodes",
    should_merge={"type": "boolean"},
    merged=TEXT,
)
"""Whether an exchange goes on with an episode, and the episode then. `episode`: its narrative."""

REFINE = task(
    "refine",
    "episode turns facts",
    2048,
    "tell:refine",
    facts=list_of(text=TEXT, type=TEXT, **{"from": IDS}, replaces=MAYBE),
)
"""What the turns say that the episode leaves out. `facts`: [fact, …], those that are known already; one of
their ids in `replaces` tells which of them no longer holds."""


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
        due = groupby(units.in_order(units.waiting), units.ended_by)
        ended = {by: [partial(attend, name) for name in names] for by, names in due}
        yield from run(view, [step for turn in new for step in (*ended.get(turn.seq, ()), turn.seq)])

    def tick(self, view: View, event: Event) -> Plans:
        """Attend to exchanges that go on, and again to open ones: since a `forget` or an undo they may recur.

        No exchange is asked about an episode again that it was told apart from.
        """
        if event == "consolidate":
            units = view.derived(Exchanges.of)
            upto = view.max_seq if view.upto is None else view.upto
            names = units.in_order(name for name in units.visible if units.records[name].turns[-1] <= upto)
            attend = self._attending(view, [name for name in names if name not in units.waiting])
            yield from run(view, [partial(attend, name) for name in names])

    def _attending(self, view: View, again: Sequence[str] = ()) -> Callable[[str, View, bool], Plan | None]:
        """What attends to exchanges one by one; those of `again` count as not yet said before their turn."""
        later, looked = {*again}, set[str]()
        alone = later.difference(self._crowded(view)) if again else set()
        apart = {stem(doc_id) for doc_id in view.below(EPISODE.folder)} if again else set()

        def attend(name: str, view: View, asks: bool) -> Plan | None:
            looked.add(name)
            if not asks or (name in alone and not view.tried):
                return None
            with self.held(view, writing=True) as known:
                if name not in known.units.visible:
                    return None
                turns = known.units.said([name])
                seqs = {turn.seq for turn in turns}
                if not seqs.isdisjoint(view.given_up(self.llm.name)):
                    return None
                unheard = {name} | (known.units.waiting | later) - looked
                one = Attention(known, Asker(self.llm), self.own, self._theta(view), name, turns, unheard)
                op = "" if name in alone else one.attend(apart if name in later else ())
                failed = dict.fromkeys(seqs, one.asker.failure) if one.asker.failure else {}
                before = one.after if failed else known.records  # it stays raw, with all that was told
                if plan := edited(op, before, one.after, self.faults, one.asker.rejected(), failed):
                    return plan
                answered = view.tried.keys() & seqs
                return Plan(unanswered=dict.fromkeys(answered, AGAIN)) if answered else None

        return attend

    def _theta(self, view: View) -> float:
        """Least cosine of a cluster and of a merge, theta_sim."""
        scale = TASKS if self.own.talk == "tasks" else 1.0
        return self.own.theta_sim or scale * THETAS.get(view.embedder.name.split()[0], PAPER)

    def _crowded(self, view: View) -> list[str]:
        """The open exchanges that may make a cluster, in whatever order they are looked at."""
        theta, others = self._theta(view), max(self.own.theta_count - 1, 0)
        with self.held(view) as known:
            close = known.near.neighbours(known.units.in_order(known.units.visible), others)
        return [
            name
            for name, found in close.items()
            if len(found) == others and all(cosine >= theta for _, cosine in found)
        ]

    def estimate(self, view: View) -> int:
        """What a model is shown for the clusters that there are now, each exchange of them twice."""
        units = view.derived(Exchanges.of)
        return 2 * sum(tokens.count(units.records[name].text) for name in self._crowded(view))

    @contextmanager
    def held(self, view: View, *, writing: bool = False) -> Iterator[Held]:
        """Give what is known of a view, for one thread at a time."""
        records = self._writing if writing else self._reading
        units = self._units_writing if writing else self._units_reading
        with records.at(view) as (store, space), units.at(view) as (exchanges, near):
            assert isinstance(exchanges, Exchanges)
            yield Held(store, space, exchanges, near)

    def search(self, view: View, held: Held, query: str, budget: int) -> TierSearch:
        return TierSearch(view, held, query, budget, self.own, self.llm)

    def status(self, view: View) -> Mapping[str, Any]:
        units, records = view.derived(Exchanges.of), view.derived(RecordStore.load)
        raw, merged = len(units.visible), sum(map(merges, records.records.values()))
        consolidated = max(len(units) - raw - merged, 0)
        told = {"exchanges": len(units), "raw": raw, "merged": merged, "consolidated": consolidated}
        return {**told, **by_kind(records)}


@dataclass
class Attention:
    """One exchange: it joins the episode that it goes on with, or makes some with those in which it recurs.

    Args:
        theta: least cosine of both.
        unheard: exchanges that are not yet said, itself among them.
    """

    held: Held
    asker: Asker
    own: RecmemSettings
    theta: float
    name: str
    turns: Sequence[Located]
    unheard: Collection[str]

    def __post_init__(self) -> None:
        self.after = self.held.records.copy()
        self.row = self.held.near.row(self.name)

    def attend(self, without: Collection[str]) -> str:
        """Merge first, then what recurs (section 3.3); it joins no episode of `without`. Return the op."""
        if self._merge(without):
            return "merge"
        least = self.own.theta_count  # Eq. 5: with it, of the open exchanges before it in which it recurs
        nearest = self.held.near.nearest(self.row, 2 * least, (OPEN,), without=self.unheard)
        others = [other for other, cosine in nearest if cosine >= self.theta]
        if not self.asker.failure and others and len(others) + 1 >= least:
            self._cluster(others)
        return "consolidate"

    def _merge(self, without: Collection[str]) -> bool:
        """Eq. 6: the nearest episode with the exchange in it; False if it is not part of that episode's."""
        nearest = self.held.space.nearest(self.row, 1, (EPISODE.folder,), without=without)
        old = next((self.after.records[name] for name, cosine in nearest if cosine >= self.theta), None)
        if old is None or old.pinned:
            return False
        data = self.asker.ask(MERGE, episode=old.prose, turns=asking.shown_turns(self.turns))
        text = narrative(data["merged"]) if data and data["should_merge"] else ""
        if not text or _dates(old.prose) - _dates(text):
            return False
        refs = (*old.refs, *(Ref(turn.seq) for turn in self.turns))
        aux = [("merged", str(merges(old) + 1))]
        new = replace(narrated(self.after, old.id, text, refs, aux), others=old.others, links=old.links)
        if not fits(new):
            return False
        self.after.put(new)
        if self.own.refine_merged:
            self._refine({new.id: self.turns})
        return True

    def _cluster(self, others: Sequence[str]) -> None:
        """Eq. 7: episodes of the exchange and those in which it recurs, and their facts; of the nearer half
        of them, where all do not fit. An archived one without text names what the model leaves out."""
        units, self.asker.failure = self.held.units, ""
        left = {self.name, *others}
        cluster = units.said(left)
        data = self.asker.ask(EPISODES, turns=asking.shown_turns(cluster))
        if data is None:
            if self.asker.failure in CUT and len(others) > 1:
                self._cluster(others[: len(others) // 2])
            return
        of_turn = {turn.seq: units.of_turn[turn.seq] for turn in cluster}
        episodes = list[tuple[str, Collection[str]]]()
        for row in data["episodes"]:
            names = {of_turn[seq] for seq in named(row["from"], of_turn)} & left
            if names and (text := narrative(row["text"])):
                episodes.append((text, names))
                left -= names
        fresh = dict[str, Sequence[Located]]()
        for text, those in (*episodes, *([("", left)] if left else [])):
            turns = units.said(those)
            name = self.after.new_id(EPISODE.prefix, number_of(self.name)[0])
            self.after.put(narrated(self.after, name, text, (Ref(turn.seq) for turn in turns)))
            fresh |= {name: turns} if text else {}
        self._refine(fresh)

    def _refine(self, fresh: Mapping[str, Sequence[Located]]) -> None:
        """Eq. 8 and 9: the facts that episodes leave out of the turns that are new to each, side by side."""
        store, index, own = self.after, self.held.space, self.own
        index.sync(store)
        known = dict[str, dict[str, Record]]()
        for name in fresh:
            nearest = index.nearest(index.row(name), K_OLD, (FACT.folder,))
            known[name] = {f"f{at}": store.records[fact] for at, (fact, _) in enumerate(nearest, 1)}

        def ask(name: str) -> Data | None:
            text = store.records[name].prose if own.refine == "episode" else ""
            facts = asking.shown_facts(known[name].values(), "f")
            return self.asker.ask(REFINE, episode=text, turns=asking.shown_turns(fresh[name]), facts=facts)

        put = partial(asking.add_facts, store, FACT.prefix, number_of(self.name)[0])
        for episode, data in zip(fresh, in_order(ask, [*fresh], own.workers), strict=True):
            rows, old = data["facts"] if data else (), known[episode]
            for fact, row in put(Link(SOURCE, episode), rows, fresh[episode], old.values(), FACTS_MAX):
                if row["type"] in TYPES:
                    store.put(replace(fact, aux=(("type", row["type"]), *fact.aux)))
                gone = old.get(asking.bare(row["replaces"] or ""))
                if own.supersede and gone and not gone.pinned and gone.id in store.visible:
                    store.link(fact.id, Link(VERSION, gone.id))
                    store.archive(gone.id)


def merges(episode: Record) -> int:
    """How many exchanges joined an episode."""
    return whole(dict(episode.aux).get("merged")) or 0


def _dates(text: str) -> set[str]:
    return {*claims(text)["number"], *(match.group().casefold() for match in _NAMED.finditer(text))}


# ── reading (section 3.5) ───────────────────────────────────────────────────────────────────────

ROLES = 150
"""Tokens of what an answerer is told of the three tiers (Figures 15 and 16; prompts/answer.md)."""


class TierSearch(RecordSearch[RecmemSettings]):
    """What is found for one question, among the records and exchanges of a snapshot."""

    held: Held

    def by_rank(self) -> Evidence:
        """Turns by rank: by the best of what shows them, an exchange, an episode or a fact."""
        return self.evidence(self.turns(self.note("turns", self._ranked(self._tiers()))))

    def for_answer(self) -> Evidence:
        """The first turns, episodes, facts, further turns; by cosine as in the paper.

        Records are shown apart, each kind with what it is good for, unless the budget is small.
        """
        tiers = self._tiers()
        episodes, facts = (
            [self.record(one.id, one.score) for one in tiers[of]] for of in ("episodes", "facts")
        )
        if self.by_vectors:
            turns = self.turns(self._ranked({"exchanges": tiers["exchanges"]}))
            found = [*episodes, *turns, *facts]
        else:
            turns = near(self.turns(self._ranked(tiers)))
            found = [*turns[:FIRST], *episodes, *facts, *turns[FIRST:]]
        apart = ("episodes", "facts") if (episodes or facts) and self.budget >= 8 * ROLES else ()
        kept = pack(found, self.budget - (ROLES if apart else 0))
        return replace(self.evidence(kept), apart=apart)

    def _tiers(self) -> Mapping[str, Sequence[Candidate]]:
        """K_epi, K_sub and K_sem, of facts twice as many as episodes unless they are counted apart."""
        own, held = self.own, self.held
        shown = (OPEN, HELD) if own.units == "all" else (OPEN,)
        if self.by_vectors:
            best = held.near.nearest(self.row, own.k_sub, shown)
            exchanges = [Candidate(name, {"cosine": cosine}, cosine) for name, cosine in best]
        else:
            found: dict[str, float] = {}
            for seq, score in self.turn_scores.items():
                name = held.units.of_turn.get(seq)
                if name and held.units.records[name].folder in shown:
                    found.setdefault(name, score)
            exchanges = [Candidate(name, {"words": score}, score) for name, score in found.items()]
        tiers = {
            "episodes": self.nearest(EPISODE.folder, own.k_epi),
            "exchanges": exchanges[: own.k_sub],
            "facts": self.nearest(FACT.folder, own.k_sem if own.k_sem >= 0 else 2 * own.k_epi),
        }
        return {tier: self.note(tier, best) for tier, best in tiers.items()}

    def _ranked(self, tiers: Mapping[str, Sequence[Candidate]]) -> list[Candidate]:
        """The turns that the tiers show, best first, by the best of what shows them.

        An episode or an exchange, of which a turn is a part, shows it no better than it is near by itself:
        else the turns of a long episode would fill all places.
        """
        units = self.held.units
        parts: dict[int, dict[str, float]] = defaultdict(dict)
        for tier, best in tiers.items():
            store = units if tier == "exchanges" else self.store
            for one in best:
                for ref in store.records[one.id].refs if one.id in store else ():
                    parts[ref.seq].setdefault(tier, one.score)
        seqs = [seq for seq in parts if seq in units.of_turn]
        if self.by_vectors:
            alone = self.held.near.cosines(self.row, [units.of_turn[seq] for seq in seqs])
        else:
            alone = [self.turn_scores.get(seq, 0.0) for seq in seqs]
        for seq, score in zip(seqs, alone, strict=True):
            parts[seq] |= {tier: min(score, best) for tier, best in parts[seq].items() if tier != "facts"}
        return self.best_turns({seq: parts[seq] for seq in seqs})


# ── the subconscious: every exchange as it was said (sections 3.1 and 3.2, Eq. 2 to 4) ───────────
# It is derived from the files: no model is asked, and nothing of it is kept.

UNITS = StrategySpec("exchanges", "", writes=(), archived="held/", kinds=(Kind("exchange", "rx", "open/"),))
"""As if exchanges were records: those that an episode holds stand where archived ones would."""
OPEN, HELD = UNITS.record_folders
GOES_ON = 1 << 62
"""Stands for the turn that ends an exchange which none has ended yet."""


@dataclass(frozen=True, slots=True)
class Exchange(Record):
    """An exchange, `visible` while it is in no episode; `refs` are those of its turns that are in none, or if
    there is none all of them.

    Args:
        turns: all of its turns.
        by: the turn of its session that ended it, or `GOES_ON`.
    """

    turns: tuple[int, ...] = ()
    by: int = GOES_ON

    @property
    def text(self) -> str:
        return self.summary


def split(turns: Iterable[Located], starts: Sequence[int]) -> Iterator[tuple[list[Located], int]]:
    """Turns of a session as exchanges, each with the turn of the session that ended it, or `GOES_ON`: before
    its first speaker is back after a reply, or with the first turn of another session (`starts`)."""
    said: list[Located] = []
    for turn in turns:
        if said and (
            ends_exchange(said, turn) or bisect_right(starts, said[-1].seq) < bisect_left(starts, turn.seq)
        ):
            yield said, turn.seq
            said = []
        said.append(turn)
    if said:
        yield said, GOES_ON


class Exchanges(RecordStore):
    """The exchanges of a library (S_sub), as records that stand in no file."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.records: dict[str, Exchange]  # type: ignore[assignment]
        self.of_turn: dict[int, str] = {}
        """The exchange of each turn."""
        self.waiting: set[str] = set()
        """Open ones that go on, or that were not looked at since they ended."""
        self._starts: Sequence[int] = ()
        """The first turn of each session, ascending."""

    @classmethod
    def of(
        cls, view: View, known: Exchanges | None = None, changed: Collection[str] | None = None
    ) -> Exchanges:
        """The exchanges as a view shows them (`View.derived`); all anew, unless sessions only go on or begin
        behind all others."""
        if known is None or changed is None:
            known, changed = cls(view), view.ids("evidence")
        sessions = sorted(doc_id for doc_id in changed if view.group(doc_id) == "evidence")
        if not all(known._grew(view, doc_id) for doc_id in sessions):
            return cls.of(view)
        new, last = known.copy(), max(known._starts[-1:], default=0)
        new.view, files = view.bare(), view.derived(RecordStore.load)
        new._starts = [*known._starts, *sorted(at for one in sessions if (at := _first(view, one)) > last)]
        held = {ref.seq for one in files.records.values() if one.kind is EPISODE for ref in one.refs}
        lost = (name for name in files.unread if SPEC.kind_of(stem(name)) is EPISODE)
        held.update(*map(held_by, map(view.document, lost)))
        for doc_id in sessions:
            for unit in (_unit(*one, held) for one in split(_turns(view, doc_id), new._starts)):
                new.of_turn.update(dict.fromkeys(unit.turns, unit.id))
                new._set(unit.id, unit)
        told = any(doc_id.startswith(SPEC.record_folders) for doc_id in changed)
        for unit in [*new.records.values()] if told else ():
            left = {seq for seq in unit.turns if seq not in held}
            if left != ({ref.seq for ref in unit.refs} if unit.visible else set()):
                turns = [turn for turn in map(new.turn, unit.turns) if turn]
                new._set(unit.id, _unit(turns, unit.by, held) if len(turns) == len(unit.turns) else unit)
        unread, moved = {GOES_ON, *view.lines.waiting()}, differing(known.records, new.records)
        open_ones = new.waiting.union(moved) & new.visible
        new.waiting = {name for name in open_ones if new.ended_by(name) in unread}
        return new

    def _grew(self, view: View, doc_id: str) -> bool:
        """Whether a session is new and begins last, or its turns are those that it had and further ones."""
        had = sorted(seq for name in self.of_session(doc_id) for seq in self.records[name].turns)
        now, first = [turn.seq for turn in _turns(view, doc_id)], _first(view, doc_id)
        in_order = bool(had) or not first or first > max(self._starts[-1:], default=0)
        return in_order and now[: len(had)] == had and self.of_turn.keys().isdisjoint(now[len(had) :])

    def ended_by(self, name: str) -> int:
        """The turn that ended an exchange, of its session or the first of another; or `GOES_ON`."""
        unit, starts = self.records[name], self._starts
        at = bisect_right(starts, unit.turns[-1])
        return min(unit.by, starts[at]) if at < len(starts) else unit.by

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Exchanges in the order in which they end; those that go on come last."""
        return sorted(names, key=lambda name: (self.ended_by(name), self.records[name].turns[-1]))

    def said(self, names: Iterable[str]) -> list[Located]:
        """The turns of exchanges, by time and then in order."""
        units = sorted((self.records[name] for name in names), key=lambda unit: (*unit.age, unit.id))
        places = (self.turn(ref.seq) for unit in units for ref in unit.refs)
        return [place for place in places if place]


def _turns(view: View, doc_id: str) -> list[Located]:
    entries = view.document(doc_id).entries if doc_id in view else ()
    return sorted((turn for turn in entries if not view.repeats(turn)), key=lambda turn: turn.seq)


def _first(view: View, doc_id: str) -> int:
    """The first turn of a session; 0 where another file has it too."""
    entries = view.document(doc_id).entries if doc_id in view else ()
    return entries[0].seq if entries and not view.repeats(entries[0]) else 0


def _unit(turns: Sequence[Located], by: int, held: Collection[int]) -> Exchange:
    """An exchange as it is embedded (Eq. 4), without its day: exchanges of a day would be near for it."""
    left = [turn for turn in turns if turn.seq not in held]
    spoken = (turn.entry for turn in left or turns)
    rows = ((one.fields.get("speaker") or one.role, one.text) for one in spoken)
    return Exchange(
        record_id(UNITS.kinds[0].prefix, turns[0].seq),
        UNITS,
        "\n".join(f"{who}: {text}" for who, text in rows),
        time=turns[-1].entry.time,
        session=turns[0].doc_id,
        refs=tuple(Ref(turn.seq) for turn in left or turns),
        visible=bool(left),
        turns=tuple(turn.seq for turn in turns),
        by=by,
    )


class Held(NamedTuple):
    """What is known of a library: its records and its exchanges, and where both lie."""

    records: RecordStore
    space: VectorIndex
    units: Exchanges
    near: VectorIndex
