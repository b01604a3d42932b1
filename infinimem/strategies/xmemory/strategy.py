"""xMemory: talk in episodes, their facts in themes that one objective balances, read from the top down.

    observe   evidence -> blocks that ended (C.1) -> episode, facts -> attach, split, merge (partition.py)
    tick      the same for all that is open, and for facts that are in no theme
    read      representative themes, facts (stage I) -> episodes and messages that a gate admits (stage II)

A block is one plan. An open one stands nowhere; it is what no record names. Where the text gives no number,
it is that of the published code. One file, in the order of the paper's sections 3.2 and 3.3; themes alone are
apart. Source: arXiv 2602.02007.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from infinimem.errors import ModelNotConfigured, escape
from infinimem.grounding.sentences import day_of, fits
from infinimem.index.vectors import DIGITS
from infinimem.llm.base import CUT, Reply, in_order
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task
from infinimem.model import Candidate, Evidence, Finding, Located, Plan, RejectedReply, Stage
from infinimem.store.records import stem
from infinimem.store.view import Outcome, View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.readers.pipeline import pack, ranked
from infinimem.strategies.records import asking, strategy
from infinimem.strategies.records.asking import Asker, Segment, add_facts, narrative, one_liner, open_turns
from infinimem.strategies.records.record import Link, Ref, number_of
from infinimem.strategies.records.record_store import RecordStore, VectorIndex
from infinimem.strategies.records.strategy import EvidenceBuilder, Records, RecordSearch, RecordStrategy
from infinimem.strategies.xmemory.partition import bounded, group, homes, members
from infinimem.strategies.xmemory.spec import EPISODE, FACT, SOURCE, SPEC, XmemorySettings, scaled
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of

TELL = task("episode", "turns reason", 2048, "tell:episode", title=TEXT, content=TEXT, when=MAYBE)
"""A block told. `turns`: [turn, …] in order; `reason`: why they are one, "" if nobody said."""
FACTS = task("facts", "episode turns", 2048, "tell:facts", facts=list_of(text=TEXT, **{"from": IDS}))
"""What the turns say that will hold for long. `episode`: what was told of them."""
GATE = task(
    "gate",
    "question themes facts episodes",
    512,
    "tell:gate",
    sufficient={"type": "boolean"},
    episodes=IDS,
    messages=IDS,
)
"""Which episodes answer what facts leave open, and of which the messages are needed. `themes` and
`facts`: [fact, …]; `episodes`: [{"id", "title", "time"}, …], the likeliest first."""
GUESS = replace(task("guess", "question themes facts episodes", 64, "tell:guess", answer=TEXT), logprobs=True)
"""A short answer, whose log probabilities tell how sure a model is. `episodes`: [fact, …], what they tell."""

PORTION = 200
"""Turns that are looked at before anything is written."""
MOST = 40
"""Facts of a block."""
SCALES: Mapping[str, float] = {"lexical": 0.903, "static": 0.958, "minilm": 1.195}
"""What the thresholds of the published code are multiplied by, by embedder, so that a theme has as many facts
as in the paper (benchmarks/themes.py). Others have them as they are, for text-embedding-3-small."""
HOLDS, NEAR = "holds", "near"
"""Links of a picture: from a theme to its facts, and to the themes that are nearest."""
NEIGHBOURS = 2
_NEVER = 1 << 62
"""Stands for the turn that ends what is ended because someone asked."""


class Strand(NamedTuple):
    """Turns of a session in no record that follow each other, so many of which were looked at before.

    `by` is the turn that ends the last block, the first of another session; None where it stays open.
    """

    turns: tuple[Located, ...]
    seen: int
    by: int | None


class Block(NamedTuple):
    """A block that ended, why, the turn that ended it, and replies about it that could not be read.

    Once it is told, with what a model made of it: no episode if there is nothing to tell, or why (`failure`).
    """

    turns: tuple[Located, ...]
    reason: str
    by: int
    rejected: tuple[RejectedReply, ...] = ()
    episode: Mapping[str, Any] = MappingProxyType({})
    facts: Sequence[Mapping[str, Any]] = ()
    failure: str = ""


class XMemory(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: XmemorySettings
    shown = 3

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Tell the blocks that these turns end, a plan each; turns of open blocks are listed alone."""
        began = view
        for start in range(0, len(new), PORTION):
            portion = new[start : start + PORTION]
            after = yield from self._write_ended(began, view, portion)
            if after is None:
                return
            view = (yield Plan(empty=tuple(turn.seq for turn in portion))).view

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: tell all that is open, and group facts that are in no theme."""
        if event == "consolidate":
            after = yield from self._write_ended(view, view, (), end=True)
            if after is not None:
                yield from strategy.settled(after, partial(self._written, None))

    def _write_ended(
        self, began: View, view: View, new: Sequence[Located], *, end: bool = False
    ) -> Generator[Plan, Outcome, View | None]:
        """Write the blocks that end; None where the library took none, or no answer was given about any."""
        given_up = view.given_up(self.llm.name, began)
        open_ones = [*strands(view, new, self.own.block_max, given_up, end=end)]
        by_strand = in_order(self._ended, open_ones, self.own.workers)
        ended = sorted(chain.from_iterable(by_strand), key=lambda block: (block.by, block.turns[0].seq))
        blocks = [*chain.from_iterable(in_order(self._tell, ended, self.own.workers))]
        for block in blocks:
            after = yield from strategy.settled(view, partial(self._written, block))
            if after is None:
                return None
            view = after
        return None if blocks and all(block.failure for block in blocks) else view

    # ── segment: where a block ends (C.1) ───────────────────────────────────────────────────────

    def _ended(self, strand: Strand) -> list[Block]:
        """The blocks of a strand that ended; a model says where others begin, and a full one ends without it.

        It is asked at each message, as in the paper; or once a block is full or ends, and then the last part
        of a full one stays open.
        """
        most, asker, blocks = max(self.own.block_max, 1), Asker(self.llm), list[Block]()
        each, block = self.own.segmenter == "each", strand.turns[: strand.seen]

        def parts(block: Sequence[Located], by: int) -> list[Block]:
            """Each part ends for the reason that the next begins."""
            told = [Segment(tuple(block))] if each else asking.segments(asker, block, strict=False)
            ends = zip(told, [*(part.reason for part in told[1:]), ""], strict=True)
            return [Block(part.turns, why, by, asker.rejected()) for part, why in ends]

        for turn in strand.turns[strand.seen :]:
            if each and block:
                talk = [turn] if len(block) == most else [*block, turn]
                last = asking.segments(asker, talk, strict=False)[-1]
                if last.turns == (turn,):
                    blocks.append(Block(block, last.reason, turn.seq, asker.rejected()))
                    block = ()
            block = (*block, turn)
            if not each and len(block) >= most:
                *ended, rest = parts(block, turn.seq)
                block = rest.turns if ended else ()
                blocks += ended or [rest]
        return [*blocks, *parts(block, strand.by)] if strand.by is not None and block else blocks

    # ── describe: an episode, and then its facts (3.2, C.1) ─────────────────────────────────────

    def _tell(self, block: Block) -> list[Block]:
        """Ask for the episode of a block, and then for its facts; of its halves, where it does not fit."""
        asker, turns = Asker(self.llm), asking.shown_turns(block.turns)
        episode, data = asker.ask(TELL, turns=turns, reason=block.reason), None
        if episode and not narrative(episode["content"]):
            asker.failure = "EMPTY" if one_liner(episode["title"]) else ""
            episode = None  # without a title either, the block holds nothing to tell: "Safe travels!"
        if episode and not asker.failure:
            data = asker.ask(FACTS, episode=episode["content"], turns=turns)
        if asker.failure in CUT and (middle := len(block.turns) // 2):
            halves = (block._replace(turns=turns) for turns in (block.turns[:middle], block.turns[middle:]))
            return [part for half in halves for part in self._tell(half)]
        rejected, facts = (*block.rejected, *asker.rejected()), data["facts"] if data else ()
        return [block._replace(rejected=rejected, episode=episode or {}, facts=facts, failure=asker.failure)]

    def _written(self, block: Block | None, view: View) -> Plan | None:
        """The plan that writes what was told of a block, and groups all facts that are in no theme."""
        seqs = [turn.seq for turn in block.turns] if block else []
        if block and block.failure:
            return Plan(unanswered=dict.fromkeys(seqs, block.failure), rejected=block.rejected)
        if block and not block.episode:
            return Plan(empty=tuple(seqs))
        with self._writing.at(view) as (store, index):
            after, asker = store.copy(), Asker(self.llm)
            if block:
                turns, told = block.turns, block.episode
                if any(turn.seq in view.cited or not store.stands(turn) for turn in turns):
                    return None
                first, session = turns[0].seq, stem(turns[0].doc_id)
                name, title = after.own_id(EPISODE.prefix, first), one_liner(told["title"])
                episode = asking.narrated(after, name, narrative(told["content"]), [*map(Ref, seqs)])
                said = [(turn.entry.text, day_of(turn.entry.time)) for turn in turns]
                when = told["when"] if told["when"] and fits(told["when"], said) else None
                after.put(replace(episode, summary=title or episode.summary, when=when, session=session))
                source = Link(SOURCE, name)
                for fact, _ in add_facts(after, FACT.prefix, first, source, block.facts, turns, (), MOST):
                    after.put(replace(fact, session=session))
                index.sync(after)
            own = scaled(self.own, SCALES.get(view.embedder.name.split()[0], 1.0))
            group(after, view.derived(members), index, asker, own)
            rejected = (*(block.rejected if block else ()), *asker.rejected())
            return strategy.edited("write", store, after, self.faults, rejected)

    def search(self, view: View, held: Records, query: str, budget: int) -> ThemeSearch:
        return ThemeSearch(view, held, query, budget, self.own, self.llm)

    def drawn(self, view: View, store: RecordStore, index: VectorIndex) -> tuple[RecordStore, Sequence[str]]:
        """Link themes to their facts and to near themes."""
        linked, themes = store.copy(), view.derived(members)
        for theme, facts in themes.items():
            linked.relink(theme, HOLDS, (Link(HOLDS, fact) for fact in facts))
        for theme, near in index.neighbours(themes, NEIGHBOURS).items():
            linked.relink(theme, NEAR, (Link(NEAR, one, round(cos, 3)) for one, cos in near if cos > 0))
        return linked, (HOLDS, NEAR)

    def label(self, store: RecordStore, name: str) -> str:
        """Add f before and after the change that made it."""
        aux, label = dict(store.records[name].aux), super().label(store, name)
        is_made = aux.keys() >= {"made", "from", "f"}
        return f"{label} ({aux['made']}: f {aux['from']} to {aux['f']})" if is_made else label

    def status(self, view: View) -> Mapping[str, Any]:
        """How many turns are open, and of the records: sizes of themes, and how many facts changed theirs."""
        store = view.derived(RecordStore.load)
        sizes = Counter(map(len, view.derived(members).values()))
        return {
            "open": sum(map(len, open_turns(view).values())),
            **strategy.by_kind(store),
            "reassigned": sum(len(store.records[name].moved) for name in store.visible),
            "sizes": {str(size): sizes[size] for size in sorted(sizes)},
        }

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """As of all strategies of records, and themes over the cap, unless nothing is to be split."""
        rules = [partial(bounded, self.own.theme_max)] if self.own.split else []
        return strategy.faults(store, only, *rules)


def strands(
    view: View, new: Sequence[Located], most: int, given_up: Collection[int], *, end: bool
) -> Iterator[Strand]:
    """What is open, as of new turns (what was said behind them is not there yet), but for some turns.

    The first turn of a session ends what is open in all others, and a turn that a record names what is
    open before it. Where more than `most` turns were looked at, an undo reopened them, and they are looked
    at anew.
    """
    fresh = {turn.seq for turn in new}
    begins = [turn for turn in new if view.document(turn.doc_id).entries[0].seq == turn.seq]
    upto = new[-1].seq if new else _NEVER
    waiting = open_turns(view, *(() if begins or end else sorted({turn.doc_id for turn in new})))
    for doc_id, left in sorted(waiting.items()):
        ends = [*(turn.seq for turn in begins if turn.doc_id != doc_id), _NEVER]
        among = {turn.seq for turn in left}
        entries = (turn for turn in view.document(doc_id).entries if turn.seq <= upto)
        said = [turn for turn in entries if turn.seq in among or not view.repeats(turn)]
        keys = ((turn.seq in among, ends[bisect(ends, turn.seq)]) for turn in said)
        for (is_open, by), run in groupby(zip(keys, said, strict=True), key=itemgetter(0)):
            *_, last = some = [turn for _, turn in run]
            turns = tuple(turn for turn in some if turn.seq not in given_up)
            if is_open and turns:
                at = next((at for at, one in enumerate(turns) if one.seq in fresh), len(turns))
                stays = last is said[-1] and by == _NEVER and not end
                yield Strand(turns, at if at <= most else 0, None if stays else by)


# ── reading (3.3) ────────────────────────────────────────────────────────────────────────────────


SUPPORT = 0.5
"""What the nearest of its facts counts beside an episode's own nearness."""
EARLY = 3
"""Probes of which none may fail; of all of them one may."""
FALLBACK = 3
"""Episodes that are shown where a model's choice could not be read."""

_ANSWER = re.compile(r'"answer"\s*:\s*"(.*)"', re.DOTALL)

Probe = tuple[float, bool, bool]
"""What an episode would add: its gain, whether it is shown for that, and whether its messages are."""


class ThemeSearch(RecordSearch[XmemorySettings]):
    """What is found for one question; the gate asks the model."""

    def open_turns(self) -> Iterable[int]:
        return (turn.seq for turns in open_turns(self.view).values() for turn in turns)

    def by_rank(self) -> Evidence:
        """Turns by the best of the facts and episodes that show them; asks no model."""
        words = self.turn_scores
        parts: dict[int, dict[str, float]] = defaultdict(dict)
        if self.own.records:
            facts, episodes = self._shown("coverage")
            for fact in facts:
                for ref in self.store.records[fact.id].refs:
                    parts[ref.seq].setdefault("fact", fact.parts["near"])
            best = max(words.values(), default=0.0) or 1.0
            for episode, _ in episodes:
                for ref in self.store.records[episode.id].refs:
                    near = episode.parts["near"] * words.get(ref.seq, 0.0) / best
                    parts[ref.seq].setdefault("episode", near)
        if self.own.rank == "library" or not self.own.records:
            for seq, score in words.items():
                parts[seq]["words"] = score
        return self.evidence(self.turns(self.note("turns", self.best_turns(parts))))

    def for_answer(self) -> Evidence:
        """Facts, then episodes, and messages behind those that need them."""
        facts, episodes = self._shown(self.own.gate)
        facts.sort(key=lambda one: -one.parts["near"])  # where room is short the nearest stay
        items = [self.record(one.id, one.parts["near"]) for one in facts]
        for episode, messages in episodes:
            items.append(self.record(episode.id, episode.score))
            if messages or not self.store.records[episode.id].prose:
                room = EvidenceBuilder(self.store, self.budget)
                room.add(episode.score, self.store.quotes(episode.id))
                items += room.by_rank()
        return self.evidence(pack(items, self.budget))

    def _shown(self, gate: str) -> tuple[list[Candidate], list[tuple[Candidate, bool]]]:
        """Facts in the order in which they were taken; episodes, each with whether its messages are shown.

        Stage I: themes of what is near to the question, and then facts of these themes, as representatives
        that cover what it leads to (Eq. 4). Stage II: the episodes that these lead to and those that are near
        themselves, the likeliest first, as far as they lower the reader's uncertainty.
        """
        own, known, themes = self.own, self.view.derived(members), list[Candidate]()
        theme_of = homes(known)
        names = [one.id for one in self.nearest(FACT.folder, own.pool)]
        if own.represent:
            near = sorted({theme_of[name] for name in names if name in theme_of}, key=number_of)
            themes = self.note("themes", self._picked(near, own.themes, len(known)))
            taken = {one.id for one in themes}
            among = [name for name in names if theme_of.get(name) in taken or name not in theme_of]
            facts = self._picked(among, own.facts, len(theme_of))
        else:
            names = names[: own.facts]
            scored = zip(names, self._near(names), strict=True)
            facts = [Candidate(name, {"near": score}) for name, score in scored]
        self.note("facts", facts)
        support: dict[str, float] = {}
        for fact, share in zip(facts, min_max([fact.parts["near"] for fact in facts]), strict=True):
            for name in self.store.visible.intersection(self.store.out(fact.id, SOURCE)):
                support[name] = max(share, support.get(name, 0.0))
        nearest = (one.id for one in self.nearest(EPISODE.folder, own.episodes))
        names = [*dict.fromkeys([*support, *nearest])]
        scores = self._near(names)
        rows = (
            Candidate(name, {"near": score, "share": share, "support": SUPPORT * support.get(name, 0.0)})
            for name, score, share in zip(names, scores, min_max(scores), strict=True)
        )
        best = ranked(rows, lambda one: one["share"] + one["support"], lambda one: number_of(one.id))
        episodes = self.note("episodes", best[: own.episodes])
        self.trace.add(admitted := self._admitted(gate, themes, facts, episodes))
        by_id = {one.id: one for one in episodes}
        return facts, [(by_id[one.id], bool(one.via)) for one in admitted.found]

    def _picked(self, names: Sequence[str], budget: int, count: int) -> list[Candidate]:
        """The representatives among these records, of so many, in the order in which they are taken."""
        own, scored = self.own, zip(names, self._near(names), strict=True)
        scores = dict(sorted(scored, key=lambda one: (-one[1], number_of(one[0]), one[0])))
        others = self.index.neighbours(names, min(own.neighbours, count // own.share))
        near = {
            name: {name: 1.0} | {one: cos for one, cos in others[name] if one in scores and cos > 0}
            for name in scores
        }
        taken = pick(scores, near, budget, own.alpha, own.normaliser, own.coverage)
        return [Candidate(name, {"near": scores[name]}) for name in taken]

    def _near(self, names: Sequence[str]) -> list[float]:
        """How near records are to it; what search does not find is as near as nothing."""
        if self.by_vectors:
            return self.index.cosines(self.row, names)
        return [self.record_scores[self.store.records[name].folder].get(name, 0.0) for name in names]

    def _admitted(
        self, gate: str, themes: Sequence[Candidate], facts: Sequence[Candidate], episodes: list[Candidate]
    ) -> Stage:
        """The episodes that are shown, by way of "messages" those with theirs."""
        if gate == "none" or not episodes:
            return Stage("gate", found=tuple(Candidate(one.id, via="messages") for one in episodes))
        context = {"question": self.query, "themes": self._rows(themes), "facts": self._rows(facts)}
        if gate == "batch":
            return self._chosen(context, episodes)
        failure = ""
        if gate == "loss":
            if (before := self._uncertainty(context)) is not None:
                stage = probed(episodes, self._by_loss(before, context, episodes))
                return replace(stage, asked=(f"H0 {round(before, 6)}", *stage.asked))
            failure = "the model tells no log probabilities"
            if model := self.own.gate_model:
                raise ModelNotConfigured(
                    f"{escape(model)}, the gate_model of [xmemory], tells no log probabilities"
                )
        return replace(probed(episodes, self._by_words(facts, episodes)), failure=failure)

    def _chosen(self, context: Mapping[str, Any], episodes: Sequence[Candidate]) -> Stage:
        """The episodes that one call chooses by their titles; names that it makes up are dropped."""
        named = {f"e{at}": self.store.records[one.id] for at, one in enumerate(episodes, 1)}
        rows = [{"id": name, "time": one.time, "title": one.summary} for name, one in named.items()]
        reply = self.llm.complete(GATE, {**context, "episodes": rows})
        if reply.data is None:
            first = tuple(Candidate(one.id) for one in episodes[:FALLBACK])
            return Stage("gate", found=first, failure=reply.failure or "")
        whole = {*map(asking.bare, reply.data["messages"])}
        names = dict.fromkeys(name for name in map(asking.bare, reply.data["episodes"]) if name in named)
        found = tuple(Candidate(named[name].id, via="messages" * (name in whole)) for name in names)
        return Stage("gate", found=found, stop="done" if reply.data["sufficient"] else "")

    def _by_loss(
        self, before: float, context: Mapping[str, Any], episodes: Iterable[Candidate]
    ) -> Iterator[Probe]:
        """IG(e) = H(context) - H(context + e), each episode by itself."""
        for episode in episodes:
            after = self._uncertainty(context, episode)
            gain = before - after if after is not None else 0.0
            yield gain, gain > self.own.gain_min, gain > self.own.gain_messages

    def _uncertainty(self, context: Mapping[str, Any], *episodes: Candidate) -> float | None:
        """H of the answer to what a model is shown; another than the reader, where one is named (4.1)."""
        asked = replace(GUESS, model=self.own.gate_model)
        return uncertainty(self.llm.complete(asked, {**context, "episodes": self._rows(episodes)}))

    def _by_words(self, facts: Iterable[Candidate], episodes: Iterable[Candidate]) -> Iterator[Probe]:
        """Episodes while they add a word of the question; with messages where these add one."""
        records = self.store.records
        left = set(query_terms(self.query)).difference(*(terms_of(records[one.id].summary) for one in facts))
        for episode in (records[one.id] for one in episodes):
            told = left.intersection(terms_of(f"{episode.summary}\n{episode.prose}"))
            more = left.intersection(terms_of(self.store.text(episode.id))) - told
            left -= told | more
            yield float(len(told | more)), bool(told or more), bool(more)

    def _rows(self, found: Iterable[Candidate]) -> list[dict[str, str | None]]:
        return asking.shown_facts(self.store.records[one.id] for one in found)


def min_max(values: Sequence[float]) -> list[float]:
    """Values from 0 for the least to 1 for the largest (s~ of Eq. 4); 0.5 each where all are equal."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    spread = high - low
    return [round((value - low) / spread, DIGITS) if round(spread, DIGITS) else 0.5 for value in values]


def pick(
    relevance: Mapping[str, float],
    near: Mapping[str, Mapping[str, float]],
    budget: int,
    alpha: float,
    kind: Literal["max", "total"] = "max",
    target: float = 1.0,
) -> list[str]:
    """Candidates in the order in which they are taken, by coverage (`alpha`) and relevance (Eq. 4).

    `near` has those that each covers, with the cosine: itself with 1, and its neighbours above 0. What is not
    covered yet counts as a share of Z: the largest coverage of one, or as in the published code that of all.
    It ends at `budget` or once this share of all is covered; of equal ones the first is taken.
    """
    shares = dict(zip(relevance, min_max([*relevance.values()]), strict=True))
    sums = [sum(near[one].values()) for one in relevance] or [1.0]
    whole = max(sums) if kind == "max" else sum(sums)
    known, taken = set[str](), list[str]()

    def score(one: str) -> tuple[float, float]:
        gain = sum(weight for other, weight in near[one].items() if other not in known) / whole
        return round(alpha * gain + (1 - alpha) * shares[one], DIGITS), shares[one]

    while len(taken) < min(budget, len(near)) and len(known) < target * len(near):
        taken.append(max((one for one in relevance if one not in taken), key=score))
        known.update(near[taken[-1]])
    return taken


def probed(episodes: Sequence[Candidate], probes: Iterable[Probe]) -> Stage:
    """Show the likeliest until one of the first three adds too little, or a second; at least the first."""
    found, gains, stop = list[Candidate](), list[float](), ""
    for episode, (gain, enough, messages) in zip(episodes, probes, strict=True):
        gains.append(round(gain, 6))
        if enough:
            found.append(Candidate(episode.id, {"gain": gains[-1]}, via="messages" * messages))
        elif len(gains) <= EARLY or len(gains) - len(found) > 1:
            stop = f"probe {len(gains)} adds too little"
            break
    shown = found or [Candidate(episodes[0].id, {"gain": gains[0]})]
    return Stage("gate", tuple(map(str, gains)), tuple(shown), stop=stop)


def uncertainty(reply: Reply) -> float | None:
    """H, the mean of -log p over the tokens of an answer; None where the model does not tell them."""
    text = "".join(token for token, _ in reply.logprobs)
    answer = _ANSWER.search(text)
    start, end = answer.span(1) if answer else (0, len(text))
    ends = accumulate(len(token) for token, _ in reply.logprobs)
    pieces = zip(reply.logprobs, ends, strict=True)
    losses = [-logprob for (token, logprob), at in pieces if at > start and at - len(token) < end]
    return sum(losses) / len(losses) if losses else None
