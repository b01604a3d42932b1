"""Reading: what is nearest to a question in three tiers, exchanges, episodes and facts. Calls no model.

Source: RecMem, section 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from infinimem.model import Candidate, Evidence, Stage
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import FIRST, near, pack, ranked
from infinimem.strategies.recmem.spec import RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, HELD, OPEN, Held
from infinimem.strategies.records.evidence import RecordSearch, records_found, turns_found
from infinimem.strategies.records.record import number_of

EPISODES, UNITS, FACTS = "episodes", "exchanges", "facts"

Tiers = Mapping[str, Sequence[Candidate]]
"""What was found in each, best first."""
Alone = Callable[[Sequence[int]], Sequence[float]]
"""How near to the question turns are by themselves."""


class TierSearch(RecordSearch[RecmemSettings]):
    """What is found for one question, among the records and exchanges of a snapshot."""

    def __init__(self, view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> None:
        super().__init__(view, (held.records, held.index), query, budget, own)
        self._held = held
        self._whole = budget

    def by_rank(self) -> Evidence:
        """Turns by rank: by the best of what shows them, an exchange, an episode or a fact."""
        turns = self._ranked(*self._tiers())
        self.trace.add(Stage("turns", found=tuple(turns)))
        return self.evidence(self.turns(turns))

    def for_answer(self) -> Evidence:
        """The first turns, episodes, facts, further turns; by cosine as in the paper."""
        tiers, alone = self._tiers()
        episodes, facts = ([self.record(one.id, one.score) for one in tiers[of]] for of in (EPISODES, FACTS))
        if self.own.rank == "cosine":
            turns = self._ranked({UNITS: tiers[UNITS]}, alone)
            found = [*episodes, *self.turns(turns, self._whole), *facts]
        else:
            said = near(self.turns(self._ranked(tiers, alone), self._whole))
            found = [*said[:FIRST], *episodes, *facts, *said[FIRST:]]
        return self.evidence(pack(found, self.budget))

    def _tiers(self) -> tuple[Tiers, Alone]:
        """The best of each tier."""
        own = self.own
        most = {EPISODES: own.k_epi, UNITS: own.k_sub, FACTS: own.k_sem if own.k_sem >= 0 else 2 * own.k_epi}
        tiers, alone = self._by_cosine(most) if own.rank == "cosine" else self._by_words()
        tiers = {tier: found[: most[tier]] for tier, found in tiers.items()}
        for tier, best in tiers.items():
            self.trace.add(Stage(tier, found=tuple(best)))
        return tiers, alone

    def _by_cosine(self, most: Mapping[str, int]) -> tuple[Tiers, Alone]:
        """As the paper ranks (section 3.5): by vectors alone."""
        held, row = self._held, self.index.embed(self.query)
        where = {
            EPISODES: (held.index, (EPISODE.folder,)),
            UNITS: (held.near, (OPEN, HELD) if self.own.units == "all" else (OPEN,)),
            FACTS: (held.index, (FACT.folder,)),
        }
        tiers = {}
        for tier, (index, folders) in where.items():
            best = (Candidate(name, {"cosine": cos}) for name, cos in index.nearest(row, most[tier], folders))
            tiers[tier] = ranked(best, lambda parts: parts["cosine"], lambda one: number_of(one.id))
        return tiers, lambda seqs: held.near.cosines(row, [held.units.of_turn[seq] for seq in seqs])

    def _by_words(self) -> tuple[Tiers, Alone]:
        """By the library's search, in which words count, and vectors beside them."""
        held, said = self._held, turns_found(self.view, self.query)
        records = records_found(self.view, self.store, self.query)
        units: dict[str, float] = {}
        for seq, score in said.items():
            name = held.units.of_turn.get(seq)
            if name and (self.own.units == "all" or held.units.is_open(name)):
                units.setdefault(name, score)
        best = {EPISODES: records[EPISODE.folder], UNITS: units, FACTS: records[FACT.folder]}
        tiers = {
            tier: [Candidate(name, {"words": score}, score) for name, score in found.items()]
            for tier, found in best.items()
        }
        return tiers, lambda seqs: [said.get(seq, 0.0) for seq in seqs]

    def _ranked(self, tiers: Tiers, alone: Alone) -> list[Candidate]:
        """The turns that the tiers show, best first, by the best of what shows them.

        An episode or an exchange, of which a turn is a part, shows it no better than it is near by itself:
        else the turns of a long episode would fill all places.
        """
        units = self._held.units
        parts: dict[int, dict[str, float]] = defaultdict(dict)
        for tier, best in tiers.items():
            store = units if tier == UNITS else self.store
            for one in best:
                for ref in store.records[one.id].refs if one.id in store else ():
                    parts[ref.seq].setdefault(tier, one.score)
        seqs = [seq for seq in parts if seq in units.of_turn]
        for seq, score in zip(seqs, alone(seqs), strict=True):
            shown = {tier: min(score, parts[seq][tier]) for tier in (EPISODES, UNITS) if tier in parts[seq]}
            parts[seq] |= shown
        turns = (Candidate(str(seq), parts[seq]) for seq in seqs)
        return ranked(turns, lambda of: max(of.values()), lambda turn: int(turn.id))
