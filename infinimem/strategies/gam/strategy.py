"""GAM: turns stay evidence until their topic ends; then they are a topic, in a network of topics.

    observe   evidence -> what a turn makes due -> boundaries -> topics -> their relations
    tick      the same for all that is active, that is in no topic

It proposes; the store disposes. Source: arXiv 2604.12285, section 3.3, Eq. 6 to 8; Algorithms 2 and 3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, Literal, NamedTuple

from infinimem.llm.base import CUT, LLM, in_order
from infinimem.model import Located, Plan, RejectedReply
from infinimem.store.records import stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.gam.read import TopicSearch, is_verified
from infinimem.strategies.gam.spec import KIND, SPEC, GamSettings
from infinimem.strategies.gam.tasks import RELATE, TOPIC, VERIFY
from infinimem.strategies.readers.pipeline import size
from infinimem.strategies.records.asking import (
    EMPTY,
    Asker,
    Descriptor,
    descriptor,
    narrated,
    shown_descriptor,
    shown_turns,
)
from infinimem.strategies.records.evidence import Records
from infinimem.strategies.records.record import UNVERIFIED, Link, Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import RecordStrategy, Step, by_kind, edited, links, run
from infinimem.strategies.segment import ended_by, open_turns, open_until, segments, silence
from infinimem.strategies.vector_index import VectorIndex

Turns = Sequence[Located]

FORCED = ("forced", "true")
"""`aux` of a topic that was cut off although the talk went on."""


class Due(NamedTuple):
    """Active turns of a session that are looked at, and why."""

    turns: Turns
    why: Literal["ended", "paused", "full"]


class Part(NamedTuple):
    """Turns that are told as a topic; `forced`: that they were cut off although the talk goes on."""

    turns: Turns
    forced: bool = False


class Card(NamedTuple):
    """A part with its descriptor, and whether a model doubts that; or why there is none."""

    part: Part
    found: Descriptor
    unverified: bool
    failure: str


class Gam(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: GamSettings

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A plan for what each turn makes due; turns that make nothing due are listed alone."""
        steps: list[Step | int] = []
        for turn in new:
            steps += [partial(self._planned, view, partial(due, turn)) for due in (self._before, self._after)]
            steps.append(turn.seq)
        yield from run(view, steps)

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: all sessions end."""
        if event == "consolidate":
            ended = partial(self._planned, view, lambda view: [Due(said, "ended") for said in _active(view)])
            yield from run(view, [ended])

    # ── Algorithm 2: what is due ────────────────────────────────────────────────────────────────

    def _before(self, turn: Located, view: View) -> list[Due]:
        """What was said before a turn: the sessions that it ends, after a pause its own."""
        *said, _ = open_until(view, turn) or [turn]
        paused = [said] if said and 0 < self.own.gap_minutes <= silence(said[-1], turn) else []
        return [*(Due(one, "ended") for one in ended_by(view, turn)), *(Due(one, "paused") for one in paused)]

    def _after(self, turn: Located, view: View) -> list[Due]:
        """The active turns of its session up to a turn, where they are too many."""
        said = open_until(view, turn)
        return [Due(said, "full")] if size(said) > self.own.active_tokens else []

    def _planned(
        self, began: View, makes_due: Callable[[View], list[Due]], view: View, asks: bool
    ) -> Plan | None:
        given_up = view.given_up(self.llm.name, began)
        found = makes_due(view) if asks else ()
        left = (one._replace(turns=[turn for turn in one.turns if turn.seq not in given_up]) for one in found)
        if not (due := [one for one in left if one.turns]):
            return None
        with self._writing.at(view) as (store, index):
            network = TopicNetwork(view, store.copy(), index, self.llm, self.own)
            rejected, unanswered = network.grow(due)
            return edited("consolidate", store, network.store, self.faults, rejected, unanswered)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def estimate(self, view: View) -> int:
        """What is active, shown twice: for its boundaries, and for its summaries."""
        return 2 * sum(map(size, _active(view)))

    def search(self, view: View, held: Records, query: str, budget: int) -> TopicSearch:
        """Turns by rank, or under the summaries of their topics; only for these it may ask for time cues."""
        return TopicSearch(view, held, query, budget, self.own, self.llm)

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


# ── boundaries (Eq. 6, section 4.4) ─────────────────────────────────────────────────────────────


def parts(llm: LLM, own: GamSettings, due: Due) -> tuple[list[Part], Sequence[RejectedReply]]:
    """What of active turns is told as topics, and replies that could not be read.

    At the end of a session that is all; after a pause all but the last part, which may go on. Of too many
    turns likewise, unless no part ends or the last is too large by itself: then all, the last one forced.
    Where no reply can be read, the end of a session ends one topic, and too many turns are cut in two.
    """
    turns = due.turns
    asked = segments(llm, turns, True, workers=own.workers) if own.partition == "semantic" else None
    ends = accumulate(len(part.turns) for part in asked.segments) if asked else _ruled(turns, own)
    cuts = [0, *(at for at in ends if at < len(turns)), len(turns)]
    *done, tail = (Part(turns[start:end]) for start, end in pairwise(cuts))
    rejected = asked.rejected if asked else ()
    if due.why == "full":
        if not done and rejected and len(turns) > 1:  # at the longest silence, or else in the middle
            gaps = [silence(before, after) for before, after in pairwise(turns)]
            at = gaps.index(max(gaps)) + 1 if max(gaps) > 0 else len(turns) // 2
            done, tail = [Part(turns[:at], forced=True)], Part(turns[at:])
        if not done or size(tail.turns) > own.active_tokens:
            done.append(tail._replace(forced=True))
    return ([*done, tail] if due.why == "ended" else done), rejected


def _ruled(turns: Turns, own: GamSettings) -> Iterator[int]:
    """Where a rule cuts that knows no topics."""
    most = {"turn": 1, "turns": own.window or 3, "window": own.window or 256}.get(own.partition)
    said = 0
    for at, turn in enumerate(turns, 1):
        said += size((turn,)) if own.partition == "window" else 1
        if most and said >= most:
            yield at
            said = 0


# ── Algorithm 3: topics and their relations ─────────────────────────────────────────────────────


@dataclass
class TopicNetwork:
    """Topics that grow in number, tried on a copy of the records, which the index follows."""

    view: View
    store: RecordStore
    index: VectorIndex
    llm: LLM
    own: GamSettings

    def __post_init__(self) -> None:
        self.asker = Asker(self.llm)

    def grow(self, due: Sequence[Due]) -> tuple[list[RejectedReply], dict[int, str]]:
        """Tell all that is due; return replies that could not be read, and turns about which none could."""
        own = self.own
        cut = in_order(partial(parts, self.llm, own), due, own.workers)
        ended = [part for some, _ in cut for part in some]
        unanswered: dict[int, str] = {}
        for told in chain.from_iterable(in_order(self._told, ended, own.workers)):
            if told.failure:
                unanswered |= {turn.seq: told.failure for turn in told.part.turns}
            else:
                self._add(told)
        return [*(one for _, some in cut for one in some), *self.asker.rejected()], unanswered

    def _told(self, part: Part) -> list[Card]:
        """Eq. 7: c_sum, or why there is none; of halves, where a part does not fit."""
        asker = Asker(self.llm)
        data = asker.ask(TOPIC, turns=shown_turns(part.turns))
        if asker.failure in CUT and (half := len(part.turns) // 2):
            halves = (part._replace(turns=turns) for turns in (part.turns[:half], part.turns[half:]))
            return [told for some in halves for told in self._told(some)]
        found = descriptor(data["summary"], data["keywords"]).cut() if data else EMPTY
        failure = asker.failure or ("" if found.summary else "EMPTY")
        wrong = None
        if self.own.cues == "model" and not failure:  # "self-consistency verification" (section 3.4)
            wrong = asker.ask(VERIFY, summary=found.summary, turns=shown_turns(part.turns))
        self.asker.take(asker)
        return [Card(part, found, bool(wrong and wrong["unsupported"]), failure)]

    def _add(self, told: Card) -> None:
        """Put a topic into the network, with an edge at most to each of its candidates (Eq. 8)."""
        store, part, found, own = self.store, told.part, told.found, self.own
        first = part.turns[0]
        name = store.own_id(KIND.prefix, first.seq)
        refs = (Ref(turn.seq) for turn in part.turns)
        aux = [FORCED] if part.forced else []
        topic = narrated(store, name, found.summary, refs, aux, found.keywords)
        marks = dict.fromkeys((*topic.aux, *(UNVERIFIED if told.unverified else ())))
        store.put(replace(topic, session=stem(first.doc_id), aux=tuple(marks)))
        self.index.sync(store)
        names = self._candidates(name)
        calls = [names] if own.relations == "one" and names else [[one] for one in names]
        for related in in_order(partial(self._related, name), calls, own.workers):
            for other, (relation, confidence) in related.items():
                if relation in SPEC.links and confidence > own.tau:
                    store.link(name, Link(relation, other, round(confidence, 3)))

    def _candidates(self, name: str) -> list[str]:
        """The nearest topics, and the one that it was cut off from."""
        store, topic, index = self.store, self.store.records[name], self.index
        near = index.nearest(index.row(name), self.own.candidates, (KIND.folder,), without=(name,))
        said = self.view.document(f"{EVIDENCE}{topic.session}").entries
        at = bisect_left(said, topic.refs[0].seq, key=lambda turn: turn.seq)
        before = Ref(said[at - 1].seq) if at else None
        others = map(store.records.__getitem__, store.of_session(topic.session or ""))
        cut_off = (one.id for one in others if FORCED in one.aux and before in one.refs)
        return list(dict.fromkeys([*(other for other, _ in near), *cut_off]))

    def _related(self, topic: str, names: Sequence[str]) -> dict[str, tuple[str, float]]:
        """What a model says first of each of the others; names that it makes up are left out."""
        called = {str(at): name for at, name in enumerate(names, 1)}
        shown = partial(shown_descriptor, self.store)
        others = [shown(name) | {"id": short} for short, name in called.items()]
        data = self.asker.ask(RELATE, topic=shown(topic), others=others)
        rows = [(called.get(row["id"].strip(), ""), row) for row in (data["relations"] if data else ())]
        return {name: (row["relation"], float(row["confidence"])) for name, row in reversed(rows) if name}
