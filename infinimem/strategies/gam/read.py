"""Reading: topics near to a question, those related to them, and of their turns the best by several factors.

Calls no model. Source: GAM, section 3.4, Eq. 9 to 11.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import cached_property
from math import exp, prod
from pathlib import Path

from infinimem.embedders.local import cross_encoder
from infinimem.grounding.sentences import asks
from infinimem.grounding.when import day_of, mentions
from infinimem.index.questions import asked_of, nameless, read_dates
from infinimem.index.vectors import DIGITS, Matrix
from infinimem.llm.base import LLM
from infinimem.model import Candidate, Evidence, Located, Retrieved, Stage
from infinimem.store.lines import SPEAKER
from infinimem.store.view import View
from infinimem.strategies.gam.spec import KIND, SPEC, GamSettings
from infinimem.strategies.gam.tasks import TIMES
from infinimem.strategies.links import either_way
from infinimem.strategies.readers.pipeline import pack, ranked
from infinimem.strategies.records.asking import Asker, named, shown_turns
from infinimem.strategies.records.evidence import Records, RecordSearch
from infinimem.strategies.records.record import DEGRADED, UNVERIFIED, Record, moment, number_of
from infinimem.strategies.segment import open_turns

SPREAD = 0.05  # by which a cosine exceeds that of rank ten which has the probability 0.73
CUED = 50
"""Turns that a model is asked about."""
_ANY_DAY = date(2000, 1, 1)
"""Against which words are read that name a time, where no more is asked than that they do."""


Turns = Mapping[int, Located]
"""By seq."""


def is_verified(topic: Record) -> bool:
    """Whether a model told it, and claimed nothing that was not said."""
    return not {*DEGRADED, *UNVERIFIED}.intersection(topic.aux)


def probabilities(cosines: Sequence[float]) -> list[float]:
    """P_sem without the paper's cross-encoder: how far a cosine is above that of rank ten."""
    tenth = sorted(cosines, reverse=True)[:10][-1] if cosines else 0.0
    return [round(1 / (1 + exp((tenth - cosine) / SPREAD)), DIGITS) for cosine in cosines]


class TopicSearch(RecordSearch[GamSettings]):
    """What is found for one question; a turn in no topic is verified: nobody told it in other words."""

    def __init__(
        self, view: View, records: Records, query: str, budget: int, own: GamSettings, llm: LLM
    ) -> None:
        super().__init__(view, records, query, budget, own)
        self._llm = llm

    @cached_property
    def _within(self) -> dict[int, str]:
        """The turns that the question leads to, each with its topic (Eq. 10); "" for those in none."""
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

    @property
    def by_vectors(self) -> bool:
        return self.own.rerank == "cosine"

    @cached_property
    def row(self) -> Matrix:
        return self.index.embed(nameless(self.query, self.view.lines.names(SPEAKER)))

    def by_rank(self) -> Evidence:
        """The best turns, those that are in no topic among them; without `drill` topics' summaries."""
        found = self._turns() if self.own.drill else self._summaries()
        return self.evidence(found)

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
        return self.evidence(piece for group in groups.values() for piece in group)

    # ── topics ──────────────────────────────────────────────────────────────────────────────────

    def _anchors(self) -> list[Candidate]:
        """V_top: the nearest topics; those that a person archived are none."""
        found = self.nearest(KIND.folder, self.own.anchors)
        self.trace.add(Stage("anchors", found=tuple(found)))
        return found

    def _neighbours(self, anchors: Sequence[str]) -> list[Candidate]:
        """Topics one edge from the anchors, followed either way, those of most weight (Eq. 9)."""
        best: dict[str, Candidate] = {}
        for name in anchors:
            for link in either_way(self.store, name, SPEC.links):
                weight = link.weight or 0.0
                if link.to not in anchors and (link.to not in best or weight > best[link.to].score):
                    best[link.to] = Candidate(link.to, {"weight": weight}, weight, name)
        found = ranked(best.values(), lambda parts: parts["weight"], lambda one: number_of(one.id))
        self.trace.add(Stage("neighbours", found=tuple(found[: self.own.neighbours])))
        return found[: self.own.neighbours]

    def _summaries(self) -> list[Retrieved]:
        """The anchors' alone: what is left of the system without its turns."""
        best = self._anchors()[: self.own.final]
        return pack((self.record(one.id, one.score) for one in best), self.budget)

    # ── turns ───────────────────────────────────────────────────────────────────────────────────

    def _turns(self, *, by_model: bool = False) -> list[Retrieved]:
        """The best turns that fit, by rank (Eq. 11); who says which tell of a time, a model or rules."""
        found = {seq: turn for seq in self._within if (turn := self.store.turn(seq)) and turn.text.strip()}
        parts = self._near(found)
        if self.own.factors:
            asked = asked_of(read_dates(self.query)[1], self.view.lines.names(SPEAKER))
            near = {seq: found[seq] for seq in sorted(parts, key=lambda seq: -parts[seq]["p"])}
            when = {*(self._timed if by_model else self._mentions)(near)}
            for seq, those in parts.items():
                entry, name = found[seq].entry, self._within[seq]
                mine = asked.oneself and entry.role == "user"
                those["time"] = float(seq in when)
                those["role"] = float(mine or entry.fields.get("speaker") in asked.speakers)
                those["conf"] = float(not name or is_verified(self.store.records[name]))
        scored = (Candidate(str(seq), those, via=self._within[seq]) for seq, those in parts.items())
        best = ranked(scored, self._score, lambda one: (-one.parts.get("cosine", 0), int(one.id)))
        self.trace.add(Stage("turns", found=tuple(best)))
        return self.turns(best)

    def _mentions(self, turns: Turns) -> Collection[int]:
        """The turns that tell a time, if the question asks for one."""
        if not (read_dates(self.query)[0] or asks("when", self.query)):
            return ()
        entries = ((seq, turn.entry) for seq, turn in turns.items())
        return [seq for seq, one in entries if mentions(one.text, day_of(one.time) or _ANY_DAY)]

    def _timed(self, turns: Turns) -> Collection[int]:
        """The same by a light prompt (section 4.1), of the nearest; by rule where no reply is of use."""
        near = [*turns.values()][:CUED]
        data = Asker(self._llm).ask(TIMES, question=self.query, turns=shown_turns(near)) if near else None
        return named(data["turns"], turns) if data else self._mentions(turns)

    def _near(self, turns: Mapping[int, Located]) -> dict[int, dict[str, float]]:
        """P_sem of the turns that are nearest, as "p"."""
        if self.own.rerank == "library" and not self.own.cross_encoder:
            words = self.turn_scores
            most = max(words.values(), default=0.0)
            return {seq: {"p": round(words[seq] / most, DIGITS)} for seq in turns if words.get(seq, 0.0) > 0}
        rows = zip(turns, self.index.of_turns(self.row, list(turns.values())), strict=True)
        best = dict(sorted(rows, key=lambda one: (-one[1], one[0]))[: self.own.prefilter])
        shares = probabilities([*best.values()])
        if self.own.cross_encoder:
            model = cross_encoder(Path(self.own.cross_encoder).expanduser())
            shares = model.probabilities(self.query, (turns[seq].text for seq in best))
        return {seq: {"cosine": best[seq], "p": p} for seq, p in zip(best, shares, strict=True)}

    def _score(self, parts: Mapping[str, float]) -> float:
        own = self.own
        betas = {"time": own.beta_time, "role": own.beta_role, "conf": own.beta_conf}
        hold = (beta for name, beta in betas.items() if parts.get(name))
        return round(prod(hold, start=parts["p"]), DIGITS)
