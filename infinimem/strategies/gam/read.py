"""Reading: topics near to a question, those related to them, and of their turns the best by several factors.

Calls no model. Source: GAM, section 3.4, Eq. 9 to 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from math import exp, prod
from pathlib import Path

from infinimem.embedders import cross_encoder
from infinimem.grounding.asked import asks_when
from infinimem.grounding.when import day_of, mentions
from infinimem.model import Candidate, Evidence, Located, Retrieved, Stage
from infinimem.retrieval.priors import asked_of, nameless, read_dates
from infinimem.store.view import View
from infinimem.strategies.gam.consolidate import KIND
from infinimem.strategies.gam.spec import SPEC, GamSettings
from infinimem.strategies.graph.walk import either_way
from infinimem.strategies.readers.budget import pack
from infinimem.strategies.readers.pipeline import Trace, ranked, size
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder, told
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.records.record import DEGRADED, UNVERIFIED, Record, Ref, moment, number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.relevance import records_found, turns_found
from infinimem.strategies.records.speakers import speakers
from infinimem.strategies.vector_index import DIGITS, Row, VectorIndex

SPREAD = 0.05  # by which a cosine exceeds that of rank ten which has the probability 0.73
_ANY_DAY = date(2000, 1, 1)
"""Against which words are read that name a time, where no more is asked than that they do."""


def is_verified(topic: Record) -> bool:
    """Whether a model told it, and claimed nothing that was not said."""
    return not {*DEGRADED, *UNVERIFIED}.intersection(topic.aux)


def probabilities(cosines: Sequence[float]) -> list[float]:
    """P_sem without the paper's cross-encoder: how far a cosine is above that of rank ten."""
    tenth = sorted(cosines, reverse=True)[:10][-1] if cosines else 0.0
    return [round(1 / (1 + exp((tenth - cosine) / SPREAD)), DIGITS) for cosine in cosines]


class Search:
    """What is found for one question. A turn in no topic counts as verified: nobody told it in other words.

    At most a quarter of the budget is kept for people's notes, and for records that cannot be read.

    Args:
        view: the snapshot.
        store: its topics.
        index: where they lie.
        query: a question or keywords, any text.
        budget: tokens of all texts together.
        own: how many topics and turns are looked at, and what counts.
    """

    def __init__(
        self, view: View, store: RecordStore, index: VectorIndex, query: str, budget: int, own: GamSettings
    ) -> None:
        self._trace = Trace()
        self._view = view
        self._store = store
        self._index = index
        self._query = query
        self._own = own
        self._others = beside(view, store, query, budget, ())
        self._budget = budget - size(self._others)
        self._within: dict[int, str] = {}
        """The turns that the question leads to, each with its topic; "" for those in none."""
        self._trace.add(Stage("query", (query,)))

    @cached_property
    def _row(self) -> Row:
        return self._index.embed(nameless(self._query, speakers(self._view)))

    def by_rank(self) -> Evidence:
        """The best turns, those that are in no topic among them; without `drill` topics' summaries. What does
        not fit is passed over for what comes behind it."""
        found = self._turns() if self._own.drill else self._summaries()
        return self._trace.evidence([*found, *self._others])

    def by_topic(self) -> Evidence:
        """The best turns by time, each under the summary of its topic."""
        if not self._own.drill:
            return self.by_rank()
        heads: dict[str, Retrieved] = {}
        pieces: list[Retrieved] = []
        for turn in self._turns()[: self._own.final]:
            name = self._within[turn.seqs[0]]
            if name and name not in heads:
                heads[name] = told(self._view, self._store, name, turn.score)
                pieces.append(heads[name])
            pieces.append(turn)
        kept = pack(pieces, self._budget)
        groups: dict[str | int, list[Retrieved]] = {}
        for turn in sorted((one for one in kept if one.seqs), key=lambda one: (moment(one.time), one.seqs)):
            name = self._within[turn.seqs[0]]
            head = [heads[name]] if name and heads[name] in kept else []
            groups.setdefault(name or turn.seqs[0], head).append(turn)
        return self._trace.evidence([*(piece for group in groups.values() for piece in group), *self._others])

    # ── topics ──────────────────────────────────────────────────────────────────────────────────

    def _anchors(self) -> list[Candidate]:
        """V_top: the nearest topics; those that a person archived are none."""
        most = self._own.anchors
        if self._own.rerank == "cosine":
            near = self._index.nearest(self._row, most, (KIND.folder,))
            found = [Candidate(name, {"cosine": cosine}, cosine) for name, cosine in near]
        else:
            words = records_found(self._view, self._store, self._query)[KIND.folder]
            found = [Candidate(name, {"words": score}, score) for name, score in [*words.items()][:most]]
        self._trace.add(Stage("anchors", found=tuple(found)))
        return found

    def _neighbours(self, anchors: Sequence[str]) -> list[Candidate]:
        """Topics one edge from the anchors, followed either way, those of most weight (Eq. 9)."""
        best: dict[str, Candidate] = {}
        for name in anchors:
            for link in either_way(self._store.graph, name, SPEC.links):
                weight = link.weight or 0.0
                if link.to not in anchors and (link.to not in best or weight > best[link.to].score):
                    best[link.to] = Candidate(link.to, {"weight": weight}, weight, name)
        found = ranked(best.values(), lambda parts: parts["weight"], lambda one: number_of(one.id))
        self._trace.add(Stage("neighbours", found=tuple(found[: self._own.neighbours])))
        return found[: self._own.neighbours]

    def _summaries(self) -> list[Retrieved]:
        """The anchors' alone: what is left of the system without its turns."""
        best = self._anchors()[: self._own.final]
        return pack((told(self._view, self._store, one.id, one.score) for one in best), self._budget)

    # ── turns ───────────────────────────────────────────────────────────────────────────────────

    def _turns(self) -> list[Retrieved]:
        """The best turns that fit, by rank (Eq. 11)."""
        names = sorted(self._store.records)
        if self._own.network:
            names = [one.id for one in self._anchors()]
            names += [one.id for one in self._neighbours(names)]
        for name in reversed(names):  # Eq. 10
            self._within |= dict.fromkeys((ref.seq for ref in self._store.records[name].refs), name)
        for said in open_turns(self._view).values():  # else what was said a moment ago would not be found
            self._within |= dict.fromkeys((turn.seq for turn in said), "")
        found = {seq: turn for seq in self._within if (turn := self._store.turn(seq)) and turn.text.strip()}
        best = ranked(
            self._scored(found), self._score, lambda one: (-one.parts.get("cosine", 0), int(one.id))
        )
        self._trace.add(Stage("turns", found=tuple(best)))
        room = EvidenceBuilder(self._store, self._budget)
        for one in best:
            room.add(one.score, (self._store.quote(Ref(int(one.id))),))
        return room.by_rank()

    def _scored(self, turns: Mapping[int, Located]) -> Iterator[Candidate]:
        """Turns with P_sem, and the factors that hold of them."""
        dates, rest = read_dates(self._query)
        timed = bool(dates) or asks_when(self._query)
        asked = asked_of(rest, speakers(self._view))
        for seq, parts in self._near(turns).items():
            entry, name = turns[seq].entry, self._within[seq]
            if self._own.factors:
                mine = asked.oneself and entry.role == "user"
                parts |= {
                    "time": float(timed and bool(mentions(entry.text, day_of(entry.time) or _ANY_DAY))),
                    "role": float(mine or entry.fields.get("speaker") in asked.speakers),
                    "conf": float(not name or is_verified(self._store.records[name])),
                }
            yield Candidate(str(seq), parts, via=name)

    def _near(self, turns: Mapping[int, Located]) -> dict[int, dict[str, float]]:
        """P_sem of the turns that are nearest, as "p"."""
        if self._own.rerank == "library" and not self._own.cross_encoder:
            words = turns_found(self._view, self._query)
            most = max(words.values(), default=0.0)
            return {seq: {"p": round(words[seq] / most, DIGITS)} for seq in turns if words.get(seq, 0.0) > 0}
        rows = zip(turns, self._index.of_turns(self._row, list(turns.values())), strict=True)
        best = dict(sorted(rows, key=lambda one: (-one[1], one[0]))[: self._own.prefilter])
        shares = probabilities([*best.values()])
        if self._own.cross_encoder:
            model = cross_encoder.connect(Path(self._own.cross_encoder).expanduser())
            shares = model.probabilities(self._query, (turns[seq].text for seq in best))
        return {seq: {"cosine": best[seq], "p": p} for seq, p in zip(best, shares, strict=True)}

    def _score(self, parts: Mapping[str, float]) -> float:
        own = self._own
        betas = {"time": own.beta_time, "role": own.beta_role, "conf": own.beta_conf}
        hold = (beta for name, beta in betas.items() if parts.get(name))
        return round(prod(hold, start=parts["p"]), DIGITS)
