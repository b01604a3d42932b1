"""Reading from the top down: themes, facts, and episodes with their messages where facts are not enough.

Source: xMemory, section 3.3; where the text gives no number, the values of the published code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from infinimem.errors import ModelNotConfigured, escape
from infinimem.llm.base import LLM, Reply
from infinimem.model import Candidate, Evidence, Stage
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import pack, ranked
from infinimem.strategies.records.asking import bare
from infinimem.strategies.records.evidence import EvidenceBuilder, Records, RecordSearch
from infinimem.strategies.records.record import Record, number_of
from infinimem.strategies.segment import open_turns
from infinimem.strategies.xmemory.partition import DIGITS, EPISODE, FACT, SOURCE, homes, members
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.strategies.xmemory.tasks import GATE, GUESS
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of

# ── stage I: representatives that cover what a question leads to ─────────────────────────────────


Near = Sequence[Mapping[int, float]]
"""Of each candidate those that it covers, with the cosine: itself with 1, and its neighbours above 0."""


def min_max(values: Sequence[float]) -> list[float]:
    """Values from 0 for the least to 1 for the largest (s~ of Eq. 4); 0.5 each where all are equal."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    spread = high - low
    return [round((value - low) / spread, DIGITS) if round(spread, DIGITS) else 0.5 for value in values]


def pick(
    relevance: Sequence[float],
    near: Near,
    budget: int,
    alpha: float,
    kind: Literal["max", "total"] = "max",
    target: float = 1.0,
) -> list[int]:
    """Candidates in the order in which they are taken, by coverage (`alpha`) and relevance (Eq. 4).

    What one covers that is not covered yet counts as a share of Z: the largest coverage of one, or as in the
    published code that of all. It ends at `budget` or once this share of all is covered.
    """
    shares, sums = min_max(relevance), [sum(covered.values()) for covered in near] or [1.0]
    whole = max(sums) if kind == "max" else sum(sums)
    known, taken = set[int](), list[int]()

    def score(one: int) -> float:
        gain = sum(weight for other, weight in near[one].items() if other not in known) / whole
        return round(alpha * gain + (1 - alpha) * shares[one], DIGITS)

    while len(taken) < min(budget, len(near)) and len(known) < target * len(near):
        left = (one for one in range(len(near)) if one not in taken)
        taken.append(max(left, key=lambda one: (score(one), shares[one], -one)))
        known.update(near[taken[-1]])
    return taken


# ── stage II: which episodes are shown, and which with their messages ────────────────────────────


EARLY = 3
"""Probes of which none may fail; of all of them one may."""
FALLBACK = 3
"""Episodes that are shown where a model's choice could not be read."""

_ANSWER = re.compile(r'"answer"\s*:\s*"(.*)"', re.DOTALL)

Probe = tuple[float, bool, bool]
"""What an episode would add: its gain, whether it is shown for that, and whether its messages are."""


class Admitted(NamedTuple):
    """The episodes that are shown, by their places, each with whether its messages are too; and why.

    `gains` are of those that were probed, `stop` says why no more were, `failure` why another gate
    decided; `before` is H without any episode.
    """

    shown: Sequence[tuple[int, bool]]
    gains: Sequence[float] = ()
    stop: str = ""
    failure: str = ""
    before: float | None = None


def _rows(records: Sequence[Record]) -> list[dict[str, str | None]]:
    return [
        {"id": str(at), "time": one.time, "text": one.prose or one.summary}
        for at, one in enumerate(records, 1)
    ]


def admitted(probes: Iterable[Probe]) -> Admitted:
    """Show the likeliest until one of the first three adds too little, or a second; at least the first."""
    shown, gains, stop = list[tuple[int, bool]](), list[float](), ""
    for number, (gain, enough, messages) in enumerate(probes, 1):
        gains.append(round(gain, 6))
        if enough:
            shown.append((number - 1, messages))
        elif number <= EARLY or number - len(shown) > 1:
            stop = f"probe {number} adds too little"
            break
    return Admitted(shown or [(0, False) for _ in gains[:1]], gains, stop)


def uncertainty(reply: Reply) -> float | None:
    """H, the mean of -log p over the tokens of an answer; None where the model does not tell them."""
    text = "".join(token for token, _ in reply.logprobs)
    answer = _ANSWER.search(text)
    start, end = answer.span(1) if answer else (0, len(text))
    losses, at = list[float](), 0
    for token, logprob in reply.logprobs:
        if at < end and at + len(token) > start:
            losses.append(-logprob)
        at += len(token)
    return sum(losses) / len(losses) if losses else None


def chosen(reply: Reply, names: Sequence[str]) -> Admitted:
    """The episodes that one call chose; names that are made up are dropped."""
    if reply.data is None:
        return Admitted([(at, False) for at, _ in enumerate(names[:FALLBACK])], failure=reply.failure or "")
    whole = {*map(bare, reply.data["messages"])}
    known = dict.fromkeys(name for name in map(bare, reply.data["episodes"]) if name in names)
    stop = "done" if reply.data["sufficient"] else ""
    return Admitted([(names.index(name), name in whole) for name in known], stop=stop)


# ── the search ───────────────────────────────────────────────────────────────────────────────────


SUPPORT = 0.5
"""What the nearest of its facts counts beside an episode's own nearness."""


class ThemeSearch(RecordSearch[XmemorySettings]):
    """What is found for one question; the gate asks the model."""

    def __init__(
        self, view: View, records: Records, query: str, budget: int, own: XmemorySettings, llm: LLM
    ) -> None:
        is_open = (turn.seq for turns in open_turns(view).values() for turn in turns)
        super().__init__(view, records, query, budget, own, is_open)
        self._llm = llm
        self._themes = view.derived(members)

    def by_rank(self) -> Evidence:
        """Turns by the best of the facts and episodes that show them; asks no model."""
        said = self.turn_scores
        parts: dict[int, dict[str, float]] = defaultdict(dict)
        if self.own.records:
            facts, episodes = self._shown(replace(self.own, gate="coverage"))
            for fact in facts:
                for ref in self.store.records[fact.id].refs:
                    parts[ref.seq].setdefault("fact", fact.parts["near"])
            best = max(said.values(), default=0.0) or 1.0
            for episode, _ in episodes:
                for ref in self.store.records[episode.id].refs:
                    near = episode.parts["near"] * said.get(ref.seq, 0.0) / best
                    parts[ref.seq].setdefault("episode", near)
        if self.own.rank == "library" or not self.own.records:
            for seq, score in said.items():
                parts[seq]["words"] = score
        rows = (Candidate(str(seq), those) for seq, those in parts.items())
        turns = ranked(rows, lambda those: max(those.values()), lambda turn: int(turn.id))
        self.trace.add(Stage("turns", found=tuple(turns)))
        return self.evidence(self.turns(turns))

    def for_answer(self) -> Evidence:
        """Facts, then episodes, and messages behind those that need them."""
        facts, episodes = self._shown(self.own)
        facts.sort(key=lambda one: -one.parts["near"])  # where room is short the nearest stay
        items = [self.record(one.id, one.parts["near"]) for one in facts]
        for episode, messages in episodes:
            items.append(self.record(episode.id, episode.score))
            if messages or not self.store.records[episode.id].prose:
                room = EvidenceBuilder(self.store, self.budget)
                room.add(episode.score, self.store.quotes(episode.id))
                items += room.by_rank()
        return self.evidence(pack(items, self.budget))

    def _shown(self, own: XmemorySettings) -> tuple[list[Candidate], list[tuple[Candidate, bool]]]:
        """Facts in the order in which they were taken; episodes, each with whether its messages are shown."""
        themes, facts = self._representatives()
        episodes = self._episodes(facts)
        gate = self._gate(own, *map(self._records, (themes, facts, episodes)))
        rows = []
        for at, messages in gate.shown:
            parts = {"gain": gate.gains[at]} if gate.gains else {}
            rows.append(Candidate(episodes[at].id, parts, via="messages" * messages))
        asked = (*(() if gate.before is None else (f"H0 {gate.before}",)), *map(str, gate.gains))
        self.trace.add(Stage("gate", asked, tuple(rows), stop=gate.stop, failure=gate.failure))
        return facts, [(episodes[at], messages) for at, messages in gate.shown]

    def _records(self, some: Sequence[Candidate]) -> list[Record]:
        return [self.store.records[one.id] for one in some]

    # ── stage I ─────────────────────────────────────────────────────────────────────────────────

    def _representatives(self) -> tuple[list[Candidate], list[Candidate]]:
        """Stage I: themes, and facts of theirs, that represent what is near to the question (Eq. 4)."""
        own, theme_of, themes = self.own, homes(self._themes), list[Candidate]()
        names = [one.id for one in self.nearest(FACT.folder, own.pool)]
        if own.represent:
            near = sorted({theme_of[name] for name in names if name in theme_of}, key=number_of)
            themes = self._picked(near, own.themes, len(self._themes))
            self.trace.add(Stage("themes", found=tuple(themes)))
            taken = {one.id for one in themes}
            among = [name for name in names if theme_of.get(name) in taken or name not in theme_of]
            facts = self._picked(among, own.facts, len(theme_of))
        else:
            names = names[: own.facts]
            scored = zip(names, self._near(names), strict=True)
            facts = [Candidate(name, {"near": score}) for name, score in scored]
        self.trace.add(Stage("facts", found=tuple(facts)))
        return themes, facts

    def _episodes(self, facts: Sequence[Candidate]) -> list[Candidate]:
        """The episodes that facts lead to and those that are near themselves, the likeliest first."""
        support: dict[str, float] = {}
        shares = min_max([fact.parts["near"] for fact in facts])
        for fact, share in zip(facts, shares, strict=True):
            for name in filter(self.store.visible.__contains__, self.store.out(fact.id, SOURCE)):
                support[name] = max(share, support.get(name, 0.0))
        nearest = (one.id for one in self.nearest(EPISODE.folder, self.own.episodes))
        names = list(dict.fromkeys([*support, *nearest]))
        scores = self._near(names)
        rows = (
            Candidate(name, {"near": score, "share": share, "support": SUPPORT * support.get(name, 0.0)})
            for name, score, share in zip(names, scores, min_max(scores), strict=True)
        )
        best = ranked(rows, lambda one: one["share"] + one["support"], lambda one: number_of(one.id))
        self.trace.add(Stage("episodes", found=tuple(best[: self.own.episodes])))
        return best[: self.own.episodes]

    def _picked(self, names: Sequence[str], budget: int, count: int) -> list[Candidate]:
        """The representatives among these records, of so many, in the order in which they are taken."""
        own, scores = self.own, self._near(names)
        order = sorted(zip(names, scores, strict=True), key=lambda one: (-one[1], number_of(one[0]), one[0]))
        place = {name: rank for rank, (name, _) in enumerate(order)}
        near = [{rank: 1.0} for rank in range(len(order))]
        for name, others in self.index.neighbours(names, min(own.neighbours, count // own.share)).items():
            near[place[name]] |= {place[one]: cos for one, cos in others if one in place and cos > 0}
        relevance = [score for _, score in order]
        taken = pick(relevance, near, budget, own.alpha, own.normaliser, own.coverage)
        return [Candidate(order[rank][0], {"near": order[rank][1]}) for rank in taken]

    def _near(self, names: Sequence[str]) -> list[float]:
        """How near records are to it; what search does not find is as near as nothing."""
        if self.by_vectors:
            return self.index.cosines(self.row, names)
        return [self.record_scores[self.store.records[name].folder].get(name, 0.0) for name in names]

    # ── stage II ────────────────────────────────────────────────────────────────────────────────

    def _gate(
        self, own: XmemorySettings, themes: list[Record], facts: list[Record], episodes: list[Record]
    ) -> Admitted:
        """Choose the episodes that are shown, the likeliest first. A model is shown the themes and facts that
        were picked: the coarse context."""
        if own.gate == "none" or not episodes:
            return Admitted([(at, True) for at in range(len(episodes))])
        context: dict[str, Any] = {"question": self.query, "themes": _rows(themes), "facts": _rows(facts)}
        if own.gate == "batch":
            names = [f"e{at}" for at, _ in enumerate(episodes, 1)]
            titles = zip(names, episodes, strict=True)
            rows = [{"id": name, "time": one.time, "title": one.summary} for name, one in titles]
            return chosen(self._llm.complete(GATE, {**context, "episodes": rows}), names)
        failure = ""
        if own.gate == "loss":
            before = self._uncertainty(context, [])
            if before is not None:
                probes = self._by_loss(before, context, episodes)
                return admitted(probes)._replace(before=round(before, 6))
            failure = "the model tells no log probabilities"
            if own.gate_model:
                name = escape(own.gate_model)
                raise ModelNotConfigured(
                    f"{name}, the gate_model of [xmemory], tells no log probabilities; name another"
                )
        return admitted(self._by_words(facts, episodes))._replace(failure=failure)

    def _by_loss(self, before: float, context: dict[str, Any], episodes: list[Record]) -> Iterator[Probe]:
        """IG(e) = H(context) - H(context + e), each episode by itself."""
        for episode in episodes:
            after = self._uncertainty(context, [episode])
            gain = before - after if after is not None else 0.0
            yield gain, gain > self.own.gain_min, gain > self.own.gain_messages

    def _uncertainty(self, context: Mapping[str, Any], episodes: Sequence[Record]) -> float | None:
        """H of the answer to what a model is shown; another than the reader, where one is named (4.1)."""
        task = replace(GUESS, model=self.own.gate_model)
        return uncertainty(self._llm.complete(task, {**context, "episodes": _rows(episodes)}))

    def _by_words(self, facts: list[Record], episodes: list[Record]) -> Iterator[Probe]:
        """Episodes while they add a word of the question; with messages where these add one."""
        left = set(query_terms(self.query)).difference(*(terms_of(fact.summary) for fact in facts))
        for episode in episodes:
            told = left.intersection(terms_of(f"{episode.summary}\n{episode.prose}"))
            more = left.intersection(terms_of(self.store.text(episode.id))) - told
            left -= told | more
            yield float(len(told | more)), bool(told or more), bool(more)
