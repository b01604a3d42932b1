"""Reading: what is nearest to a question in three tiers, exchanges, episodes and facts. Calls no model.

Source: RecMem, section 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from infinimem.model import Candidate, Evidence, Stage
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import FIRST, near, pack, ranked
from infinimem.strategies.recmem.spec import RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, HELD, OPEN, Held
from infinimem.strategies.records.evidence import RecordSearch

EPISODES, UNITS, FACTS = "episodes", "exchanges", "facts"

Tiers = Mapping[str, Sequence[Candidate]]
"""What was found in each, best first."""


class TierSearch(RecordSearch[RecmemSettings]):
    """What is found for one question, among the records and exchanges of a snapshot."""

    def __init__(self, view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> None:
        super().__init__(view, (held.records, held.index), query, budget, own)
        self._held = held
        self._whole = budget

    def by_rank(self) -> Evidence:
        """Turns by rank: by the best of what shows them, an exchange, an episode or a fact."""
        turns = self._ranked(self._tiers())
        self.trace.add(Stage("turns", found=tuple(turns)))
        return self.evidence(self.turns(turns))

    def for_answer(self) -> Evidence:
        """The first turns, episodes, facts, further turns; by cosine as in the paper."""
        tiers = self._tiers()
        episodes, facts = ([self.record(one.id, one.score) for one in tiers[of]] for of in (EPISODES, FACTS))
        if self.by_vectors:
            turns = self._ranked({UNITS: tiers[UNITS]})
            found = [*episodes, *self.turns(turns, self._whole), *facts]
        else:
            said = near(self.turns(self._ranked(tiers), self._whole))
            found = [*said[:FIRST], *episodes, *facts, *said[FIRST:]]
        return self.evidence(pack(found, self.budget))

    def _tiers(self) -> Tiers:
        """The best of each tier."""
        own = self.own
        tiers = {
            EPISODES: self.nearest(EPISODE.folder, own.k_epi),
            UNITS: self._exchanges(own.k_sub),
            FACTS: self.nearest(FACT.folder, own.k_sem if own.k_sem >= 0 else 2 * own.k_epi),
        }
        for tier, best in tiers.items():
            self.trace.add(Stage(tier, found=tuple(best)))
        return tiers

    def _exchanges(self, count: int) -> list[Candidate]:
        held, everything = self._held, self.own.units == "all"
        if self.by_vectors:
            best = held.near.nearest(self.row, count, (OPEN, HELD) if everything else (OPEN,))
            return [Candidate(name, {"cosine": cosine}, cosine) for name, cosine in best]
        found: dict[str, float] = {}
        for seq, score in self.turn_scores.items():
            name = held.units.of_turn.get(seq)
            if name and (everything or held.units.is_open(name)):
                found.setdefault(name, score)
        return [Candidate(name, {"words": score}, score) for name, score in [*found.items()][:count]]

    def _alone(self, seqs: Sequence[int]) -> Sequence[float]:
        """How near to the question turns are by themselves."""
        if self.by_vectors:
            return self._held.near.cosines(self.row, [self._held.units.of_turn[seq] for seq in seqs])
        return [self.turn_scores.get(seq, 0.0) for seq in seqs]

    def _ranked(self, tiers: Tiers) -> list[Candidate]:
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
        for seq, score in zip(seqs, self._alone(seqs), strict=True):
            shown = {tier: min(score, parts[seq][tier]) for tier in (EPISODES, UNITS) if tier in parts[seq]}
            parts[seq] |= shown
        turns = (Candidate(str(seq), parts[seq]) for seq in seqs)
        return ranked(turns, lambda of: max(of.values()), lambda turn: int(turn.id))
