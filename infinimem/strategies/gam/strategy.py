"""GAM: turns stay evidence until their topic ends; then they are a topic, in a network of topics.

    observe   evidence (Eq. 6) -> what a turn makes due (Algorithm 2) -> topics (Eq. 7) -> relations (Eq. 8)
    tick      the same for all that is active, that is in no topic
    read      anchors, their neighbours (Eq. 9), the turns of both (Eq. 10), the best by factors (Eq. 11)

It proposes; the store disposes. Source: arXiv 2604.12285, sections 3.3 and 3.4; Algorithms 2 and 3;
Appendix E.1 and E.2 for the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property, partial
from itertools import chain
from math import exp, inf, prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

from infinimem.embedders.local import cross_encoder
from infinimem.grounding.sentences import asks, day_of, mentions
from infinimem.index.questions import asked_of, nameless, read_dates
from infinimem.index.vectors import DIGITS, Matrix
from infinimem.llm.base import CUT, in_order
from infinimem.llm.tasks import IDS, TEXT, TEXTS, list_of, task
from infinimem.model import Candidate, Evidence, Located, Plan, Retrieved
from infinimem.store.lines import SPEAKER, stem
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.gam.spec import CANDIDATES, KIND, SPEC, GamSettings
from infinimem.strategies.readers.pipeline import pack, ranked, size
from infinimem.strategies.records import asking, strategy
from infinimem.strategies.records.asking import EMPTY, Asker, Descriptor, descriptor, open_turns, shown_turns
from infinimem.strategies.records.record import UNVERIFIED, Link, Ref, moment, number_of
from infinimem.strategies.records.record_store import RecordStore, VectorIndex
from infinimem.strategies.records.strategy import Records, RecordSearch, RecordStrategy, Step

Turns = Sequence[Located]

FORCED = ("forced", "true")
"""`aux` of a topic that was cut off although the talk went on."""
SCORED, CUED = 200, 50
"""Of the turns that a question leads to, those that are scored by their vectors, and those that a model is
asked about; the nearest."""
SPREAD = 0.05  # by which a cosine exceeds that of rank ten which has the probability 0.73
_ANY_DAY = date(2000, 1, 1)
"""Against which words are read that name a time, where no more is asked than that they do."""

# ── what a model is asked ───────────────────────────────────────────────────────────────────────

TOPIC = task("topic", "turns", 512, "tell:topic", keywords=TEXTS, summary=TEXT)
"""What turns in a row are about: keywords, the most telling first, and one or two sentences."""

RELATE = task(
    "relate",
    "topic others",
    1024,
    "tell:relate",
    relations=list_of(id=TEXT, relation=TEXT, confidence={"type": "number", "minimum": 0, "maximum": 1}),
)
"""How a topic that just ended is related to earlier ones, and how sure that is. `topic`, `others`: an anchor,
[anchor, …]; which relations there are stands in the template, others are none."""

VERIFY = task("verify_topic", "summary turns", 512, "tell:verify_topic", unsupported=TEXTS)
"""What a topic's summary claims and its turns do not say."""

TIMES = task("time_cues", "question turns", 512, "tell:time_cues", turns=IDS)
"""The turns whose words tell of a time that the question is about."""


class Gam(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: GamSettings
    shown = 2  # for its boundaries, and for its summaries

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A plan for what each turn makes due; turns that make nothing due are listed alone."""
        steps: list[Step | int] = []
        for turn in new:
            steps += [partial(self._planned, view, partial(due, turn)) for due in (self._before, self._after)]
            steps.append(turn.seq)
        yield from strategy.run(view, steps)

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: all sessions end."""
        if event == "consolidate":
            yield from strategy.run(view, [partial(self._planned, view, self._everything)])

    # ── Algorithm 2: what is due ────────────────────────────────────────────────────────────────

    def _before(self, turn: Located, view: View) -> list[Due]:
        """What was said before a turn: the sessions that it ends, after a pause its own."""
        *said, _ = asking.open_until(view, turn) or [turn]
        ended = [Due(one, "ended") for one in asking.ended_by(view, turn)]
        paused = said and 0 < self.own.gap_minutes <= asking.silence(said[-1], turn)
        return [*ended, Due(said, "paused")] if paused else ended

    def _after(self, turn: Located, view: View) -> list[Due]:
        """The active turns of its session up to a turn, where they are too many."""
        said = asking.open_until(view, turn)
        return [Due(said, "full")] if size(said) > self.own.active_tokens else []

    def _everything(self, view: View) -> list[Due]:
        sessions = sorted(open_turns(view).values(), key=lambda said: said[0].seq)
        return [Due(said, "ended") for said in sessions]

    def _planned(
        self, began: View, makes_due: Callable[[View], list[Due]], view: View, asks: bool
    ) -> Plan | None:
        given_up = view.given_up(self.llm.name, began)
        found = makes_due(view) if asks else ()
        left = (one._replace(turns=[turn for turn in one.turns if turn.seq not in given_up]) for one in found)
        if not (due := [one for one in left if one.turns]):
            return None
        with self._writing.at(view) as (store, index):
            after, asker, workers = store.copy(), Asker(self.llm), self.own.workers
            ended = [*chain.from_iterable(in_order(partial(parts, asker, self.own), due, workers))]
            unanswered = dict[int, str]()
            for part in chain.from_iterable(in_order(partial(self._told, asker), ended, workers)):
                if part.failure:
                    unanswered |= {turn.seq: part.failure for turn in part.turns}
                else:
                    self._add(after, index, asker, part)
            return strategy.edited("consolidate", store, after, self.faults, asker.rejected(), unanswered)

    # ── Algorithm 3: topics and their relations ─────────────────────────────────────────────────

    def _told(self, asker: Asker, part: Part) -> list[Part]:
        """Eq. 7: c_sum, or why there is none; of halves, where a part does not fit. c_raw are its turns."""
        fresh, turns = Asker(self.llm), shown_turns(part.turns)
        data = fresh.ask(TOPIC, turns=turns)
        if fresh.failure in CUT and (half := len(part.turns) // 2):
            halves = (part._replace(turns=turns) for turns in (part.turns[:half], part.turns[half:]))
            return [told for some in halves for told in self._told(asker, some)]
        told = descriptor(data["summary"], data["keywords"]).cut() if data else EMPTY
        failure = fresh.failure or ("" if told.summary else "EMPTY")
        wrong = None
        if self.own.cues == "model" and not failure:  # "self-consistency verification" (section 3.4)
            wrong = fresh.ask(VERIFY, summary=told.summary, turns=turns)
        asker.take(fresh)
        return [part._replace(told=told, doubted=bool(wrong and wrong["unsupported"]), failure=failure)]

    def _add(self, store: RecordStore, index: VectorIndex, asker: Asker, part: Part) -> None:
        """Put a topic into the network, with an edge at most to each of its candidates (Eq. 8): the nearest
        topics, and the one that it was cut off from."""
        own, first = self.own, part.turns[0]
        name, session = store.own_id(KIND.prefix, first.seq), stem(first.doc_id)
        refs, aux = (Ref(turn.seq) for turn in part.turns), [FORCED] if part.forced else []
        topic = asking.narrated(store, name, part.told.summary, refs, aux, part.told.keywords)
        marks = dict.fromkeys((*topic.aux, *(UNVERIFIED if part.doubted else ())))
        store.put(replace(topic, session=session, aux=tuple(marks)))
        index.sync(store)
        near = index.nearest(index.row(name), CANDIDATES, (KIND.folder,), without=(name,))
        others = map(store.records.__getitem__, store.of_session(session))
        before = [other for other in others if other.refs[-1:] < topic.refs[:1]][-1:]
        cut_off = (other.id for other in before if FORCED in other.aux)
        names = list(dict.fromkeys([*(other for other, _ in near), *cut_off]))
        calls = [names] if own.relations == "one" and names else [[one] for one in names]
        for related in in_order(partial(self._related, store, asker, name), calls, own.workers):
            for other, (relation, confidence) in related.items():
                if relation in SPEC.links and confidence > own.tau:
                    store.link(name, Link(relation, other, round(confidence, 3)))

    def _related(
        self, store: RecordStore, asker: Asker, topic: str, names: Sequence[str]
    ) -> dict[str, tuple[str, float]]:
        """What a model says first of each of the others; names that it makes up are left out."""
        called = {str(at): name for at, name in enumerate(names, 1)}
        shown = partial(asking.shown_descriptor, store)
        others = [shown(name) | {"id": short} for short, name in called.items()]
        data = asker.ask(RELATE, topic=shown(topic), others=others)
        rows = [(called.get(asking.bare(row["id"]), ""), row) for row in (data["relations"] if data else ())]
        return {name: (row["relation"], float(row["confidence"])) for name, row in reversed(rows) if name}

    def search(self, view: View, held: Records, query: str, budget: int) -> TopicSearch:
        return TopicSearch(view, held, query, budget, self.own, self.llm)

    def status(self, view: View) -> Mapping[str, Any]:
        store = view.derived(RecordStore.load)
        active = open_turns(view).values()  # G_event
        return {
            "active": {"turns": sum(map(len, active)), "tokens": sum(map(size, active))},
            **strategy.by_kind(store),
            "verified": sum(UNVERIFIED[0] not in topic.aux for topic in store.records.values()),
            "links": strategy.links(store),
        }


# ── boundaries (section 3.3) ────────────────────────────────────────────────────────────────────


class Due(NamedTuple):
    """Active turns of a session that are looked at, and why."""

    turns: Turns
    why: Literal["ended", "paused", "full"]


class Part(NamedTuple):
    """Turns that are told as a topic; `forced`: that they were cut off although the talk goes on.

    Once they are told, with their descriptor, and whether a model doubts that; or why there is none.
    """

    turns: Turns
    forced: bool = False
    told: Descriptor = EMPTY
    doubted: bool = False
    failure: str = ""


def parts(asker: Asker, own: GamSettings, due: Due) -> list[Part]:
    """What of active turns is told as topics.

    At the end of a session that is all; after a pause all but the last part, which may go on. Of too many
    turns likewise, unless no part ends or the last is too large by itself: then all, the last one forced.
    Where no reply can be read, all is one part.
    """
    turns = due.turns
    if own.partition == "semantic":
        cut = [[*part.turns] for part in asking.segments(asker, turns, True, workers=own.workers)]
    else:
        most = {"turn": 1, "turns": own.window or 3, "window": own.window or 256}.get(own.partition, inf)
        cut = [[]]
        for turn in turns:
            if (size(cut[-1]) if own.partition == "window" else len(cut[-1])) >= most:
                cut.append([])
            cut[-1].append(turn)
    *done, tail = map(Part, cut)
    if due.why == "full" and (not done or size(tail.turns) > own.active_tokens):
        done.append(tail._replace(forced=True))
    return [*done, tail] if due.why == "ended" else done


# ── reading (section 3.4) ───────────────────────────────────────────────────────────────────────


class TopicSearch(RecordSearch[GamSettings]):
    """What is found for one question; a turn in no topic is verified: nobody told it in other words."""

    @cached_property
    def row(self) -> Matrix:
        return self.index.embed(nameless(self.query, self.view.lines.names(SPEAKER)))

    def by_rank(self) -> Evidence:
        """The best turns, those that are in no topic among them; without `drill` anchors' summaries."""
        if self.own.drill:
            return self.evidence(self._turns())
        best = self._anchors()[: self.own.final]
        return self.evidence(pack((self.record(one.id, one.score) for one in best), self.budget))

    def for_answer(self) -> Evidence:
        """The best turns by time, each under the summary of its topic."""
        if not self.own.drill:
            return self.by_rank()
        heads: dict[str, Retrieved] = {}
        pieces: list[Retrieved] = []
        for turn in self._turns(by_model=self.own.cues == "model")[: self.own.final]:
            name = self._within[turn.seqs[0]]
            if name and name not in heads:
                heads[name] = self.record(name, turn.score)
                pieces.append(heads[name])
            pieces.append(turn)
        kept = pack(pieces, self.budget)
        groups: dict[str | int, list[Retrieved]] = {}
        for turn in sorted((one for one in kept if one.seqs), key=lambda one: (moment(one.time), one.seqs)):
            name = self._within[turn.seqs[0]]
            head = [heads[name]] if name and heads[name] in kept else []
            groups.setdefault(name or turn.seqs[0], head).append(turn)
        return self.evidence(chain.from_iterable(groups.values()))

    def _anchors(self) -> list[Candidate]:
        """V_top: the nearest topics; those that a person archived are none."""
        return self.note("anchors", self.nearest(KIND.folder, self.own.anchors))

    def _neighbours(self, anchors: Sequence[str]) -> list[Candidate]:
        """Eq. 9: topics one edge from the anchors, followed either way, those of most weight."""
        best: dict[str, Candidate] = {}
        for name in anchors:
            for link in strategy.either_way(self.store, name, SPEC.links):
                weight = link.weight or 0.0
                if link.to not in anchors and (link.to not in best or weight > best[link.to].score):
                    best[link.to] = Candidate(link.to, {"weight": weight}, weight, name)
        found = ranked(best.values(), lambda parts: parts["weight"], lambda one: number_of(one.id))
        return self.note("neighbours", found[: self.own.neighbours])

    @cached_property
    def _within(self) -> dict[int, str]:
        """Eq. 10: the turns that the question leads to, each with its topic; "" for those in none."""
        within: dict[int, str] = {}
        names = sorted(self.store.records)
        if self.own.network:
            names = [one.id for one in self._anchors()]
            names += [one.id for one in self._neighbours(names)]
        for name in reversed(names):
            within |= dict.fromkeys((ref.seq for ref in self.store.records[name].refs), name)
        for said in open_turns(self.view).values():  # else what was said a moment ago would not be found
            within |= dict.fromkeys((turn.seq for turn in said), "")
        return within

    def _turns(self, *, by_model: bool = False) -> list[Retrieved]:
        """Eq. 11: the best turns that fit, by rank; who says which tell of a time, a model or rules."""
        found = {seq: turn for seq in self._within if (turn := self.store.turn(seq)) and turn.text.strip()}
        asked = asked_of(read_dates(self.query)[1], self.view.lines.names(SPEAKER))
        parts = self._likely(found)
        near = {seq: found[seq] for seq in sorted(parts, key=lambda seq: -parts[seq]["p"])}
        when = {*self._timed(near, by_model and self.own.beta_time != 1)}
        for seq, those in parts.items():
            entry, name = found[seq].entry, self._within[seq]
            mine = asked.oneself and entry.role == "user"
            those["time"] = float(seq in when)
            those["role"] = float(mine or entry.fields.get("speaker") in asked.speakers)
            those["conf"] = float(not name or UNVERIFIED[0] not in self.store.records[name].aux)
        scored = (Candidate(str(seq), those, via=self._within[seq]) for seq, those in parts.items())
        betas = {"time": self.own.beta_time, "role": self.own.beta_role, "conf": self.own.beta_conf}

        def score(parts: Mapping[str, float]) -> float:
            hold = (beta for name, beta in betas.items() if parts[name])
            return round(prod(hold, start=parts["p"]), DIGITS)

        best = ranked(scored, score, lambda one: (-one.parts.get("cosine", 0), int(one.id)))
        return self.turns(self.note("turns", best))

    def _likely(self, turns: Mapping[int, Located]) -> dict[int, dict[str, float]]:
        """P_sem of the turns that are nearest, as "p"; of the library's search, what share of the best one's
        score each has, and without a cross-encoder, how far a cosine is above that of rank ten."""
        if self.own.rerank == "library" and not self.own.cross_encoder:
            words = self.turn_scores
            most = max(words.values(), default=0.0)
            return {seq: {"p": round(words[seq] / most, DIGITS)} for seq in turns if words.get(seq, 0.0) > 0}
        rows = zip(turns, self.index.of_turns(self.row, list(turns.values())), strict=True)
        best = dict(sorted(rows, key=lambda one: (-one[1], one[0]))[:SCORED])
        tenth = [*best.values()][:10][-1] if best else 0.0
        shares = [round(1 / (1 + exp((tenth - cosine) / SPREAD)), DIGITS) for cosine in best.values()]
        if self.own.cross_encoder:
            likely = cross_encoder(Path(self.own.cross_encoder).expanduser())
            shares = likely(self.query, (turns[seq].text for seq in best))
        return {seq: {"cosine": best[seq], "p": p} for seq, p in zip(best, shares, strict=True)}

    def _timed(self, turns: Mapping[int, Located], by_model: bool) -> Collection[int]:
        """The turns that tell a time that the question asks for: by a light prompt, of the nearest (section
        4.1), or by rule, as where no reply is of use."""
        near = [*turns.values()][:CUED] if by_model else []
        data = Asker(self.llm).ask(TIMES, question=self.query, turns=shown_turns(near)) if near else None
        if data:
            return asking.named(data["turns"], turns)
        if not (read_dates(self.query)[0] or asks("when", self.query)):
            return ()
        entries = ((seq, turn.entry) for seq, turn in turns.items())
        return [seq for seq, one in entries if mentions(one.text, day_of(one.time) or _ANY_DAY)]
