"""Reading from the top down: themes, facts, and episodes with their messages where facts are not enough.

Source: xMemory, section 3.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from infinimem.llm.base import LLM
from infinimem.model import Candidate, Evidence, Stage
from infinimem.store.view import View
from infinimem.strategies.readers.budget import pack
from infinimem.strategies.readers.pipeline import Trace, ranked, size
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder, told
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.records.record import number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.relevance import records_found, turns_found
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory.gate import choose
from infinimem.strategies.xmemory.select import min_max, pick
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.strategies.xmemory.themes import EPISODES, FACT, Themes
from infinimem.strategies.xmemory.write import SOURCE

SUPPORT = 0.5
"""What the nearest of its facts counts beside an episode's own nearness."""

SHARE = 6
"""One record covers as many others as this part of all at most: else the first would stand for all of a
small library. In the paper 10 of some 64 themes are neighbours."""


class Search:
    """A question to a library.

    Args:
        view: the library.
        store: its records.
        index: where they lie.
        llm: asked by the gate.
        query: in plain words.
        budget: tokens of all texts together; what does not fit is passed over for what comes behind it. At
            most a quarter of it is kept for open turns, and people's notes.
        own: how many are looked at.
    """

    def __init__(
        self,
        view: View,
        store: RecordStore,
        index: VectorIndex,
        llm: LLM,
        query: str,
        budget: int,
        own: XmemorySettings,
    ) -> None:
        self._view, self._store, self._index, self._llm = view, store, index, llm
        self._query, self._own = query, own
        self._themes = view.derived(Themes.load)
        self._trace = Trace()
        self._trace.add(Stage("query", (query,)))
        is_open = (turn.seq for turns in open_turns(view).values() for turn in turns)
        self._others = beside(view, store, query, budget, is_open)
        self._budget = budget - size(self._others)
        self._row = index.embed(query) if own.rank == "cosine" else None
        self._found = records_found(view, store, query) if own.rank == "library" else {}

    def by_rank(self) -> Evidence:
        """Turns by the best of the facts and episodes that show them; asks no model."""
        said = turns_found(self._view, self._query)
        parts: dict[int, dict[str, float]] = defaultdict(dict)
        if self._own.records:
            facts, episodes = self._shown(replace(self._own, gate="coverage"))
            for fact in facts:
                for ref in self._store.records[fact.id].refs:
                    parts[ref.seq].setdefault("fact", fact.parts["near"])
            best = max(said.values(), default=0.0) or 1.0
            for episode, _ in episodes:
                for ref in self._store.records[episode.id].refs:
                    near = episode.parts["near"] * said.get(ref.seq, 0.0) / best
                    parts[ref.seq].setdefault("episode", near)
        if self._own.rank == "library" or not self._own.records:
            for seq, score in said.items():
                parts[seq]["words"] = score
        found = (Candidate(str(seq), those) for seq, those in parts.items())
        turns = ranked(found, lambda those: max(those.values()), lambda turn: int(turn.id))
        self._trace.add(Stage("turns", found=tuple(turns)))
        room = EvidenceBuilder(self._store, self._budget)
        room.add_turns(turns)
        return self._trace.evidence([*room.by_rank(), *self._others])

    def by_records(self) -> Evidence:
        """Facts, then episodes, and messages behind those that need them.

        Raises:
            ModelUnavailable: the model that the gate asks does not answer.
        """
        facts, episodes = self._shown(self._own)
        facts.sort(key=lambda one: -one.parts["near"])  # where room is short the nearest stay
        items = [told(self._view, self._store, one.id, one.parts["near"]) for one in facts]
        for episode, messages in episodes:
            items.append(told(self._view, self._store, episode.id, episode.score))
            if messages or not self._store.records[episode.id].prose:
                room = EvidenceBuilder(self._store, self._budget)
                room.add(episode.score, self._store.quotes(episode.id))
                items += room.by_rank()
        return self._trace.evidence([*pack(items, self._budget), *self._others])

    def _shown(self, own: XmemorySettings) -> tuple[list[Candidate], list[tuple[Candidate, bool]]]:
        """Facts in the order in which they were taken, and episodes, each with whether its messages are
        shown. The trace has what the gate found: of all that were probed H and the gains."""
        facts = self._facts()
        episodes = self._episodes(facts)
        lines, tales = ([self._store.records[one.id] for one in some] for some in (facts, episodes))
        said = [self._store.text(one.id) for one in episodes]
        gate = choose(self._llm, own, self._query, lines, tales, said)
        rows = []
        for at, messages in gate.shown:
            parts = {"gain": gate.gains[at]} if gate.gains else {}
            rows.append(Candidate(episodes[at].id, parts, via="messages" * messages))
        asked = (*(() if gate.before is None else (f"H0 {gate.before}",)), *map(str, gate.gains))
        self._trace.add(Stage("gate", asked, tuple(rows), stop=gate.stop, failure=gate.failure))
        return facts, [(episodes[at], messages) for at, messages in gate.shown]

    # ── stage I ─────────────────────────────────────────────────────────────────────────────────

    def _facts(self) -> list[Candidate]:
        """Facts that represent what is near to the question (Eq. 4)."""
        own, theme_of = self._own, self._themes.of
        names = self._nearest(FACT.folder, own.pool)
        if own.represent:
            themes = sorted({theme_of[name] for name in names if name in theme_of}, key=number_of)
            groups = self._picked(themes, own.themes, len(self._themes.facts))
            self._trace.add(Stage("themes", found=tuple(groups)))
            taken = {one.id for one in groups}
            among = [name for name in names if theme_of.get(name) in taken or name not in theme_of]
            facts = self._picked(among, own.facts, len(theme_of))
        else:
            names = names[: own.facts]
            scored = zip(names, self._near(names), strict=True)
            facts = [Candidate(name, {"near": score}) for name, score in scored]
        self._trace.add(Stage("facts", found=tuple(facts)))
        return facts

    def _episodes(self, facts: Sequence[Candidate]) -> list[Candidate]:
        """The episodes that facts lead to and those that are near themselves, the likeliest first."""
        support: dict[str, float] = {}
        shares = min_max([fact.parts["near"] for fact in facts])
        for fact, share in zip(facts, shares, strict=True):
            for name in self._store.graph.out(fact.id, SOURCE):
                support[name] = max(share, support.get(name, 0.0))
        names = list(dict.fromkeys([*support, *self._nearest(EPISODES.folder, self._own.episodes)]))
        scores = self._near(names)
        rows = (
            Candidate(name, {"near": score, "share": share, "support": SUPPORT * support.get(name, 0.0)})
            for name, score, share in zip(names, scores, min_max(scores), strict=True)
        )
        found = ranked(rows, lambda one: one["share"] + one["support"], lambda one: number_of(one.id))
        self._trace.add(Stage("episodes", found=tuple(found[: self._own.episodes])))
        return found[: self._own.episodes]

    def _picked(self, names: Sequence[str], budget: int, count: int) -> list[Candidate]:
        """The representatives among these records, of so many, in the order in which they are taken."""
        own, scores = self._own, self._near(names)
        order = sorted(zip(names, scores, strict=True), key=lambda one: (-one[1], number_of(one[0]), one[0]))
        place = {name: rank for rank, (name, _) in enumerate(order)}
        near = [{rank: 1.0} for rank in range(len(order))]
        for name, others in self._index.neighbours(names, min(own.neighbours, count // SHARE)).items():
            near[place[name]] |= {place[one]: cos for one, cos in others if one in place and cos > 0}
        taken = pick([score for _, score in order], near, budget, own.alpha, kind=own.normaliser)
        return [Candidate(order[rank][0], {"near": order[rank][1]}) for rank in taken]

    def _nearest(self, folder: str, count: int) -> list[str]:
        """The records of a folder that are nearest to the question: by vectors, as in the paper, or by the
        library's search."""
        if self._row is None:
            return [*self._found[folder]][:count]
        return [name for name, _ in self._index.nearest(self._row, count, (folder,))]

    def _near(self, names: Sequence[str]) -> list[float]:
        """How near records are to it; what search does not find is as near as nothing."""
        if self._row is None:
            return [self._found[self._store.records[name].folder].get(name, 0.0) for name in names]
        return self._index.cosines(self._row, names)
