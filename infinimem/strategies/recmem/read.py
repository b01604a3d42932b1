"""Reading: what is nearest to a question in three tiers, exchanges, episodes and facts. Calls no model.

Source: RecMem, section 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from infinimem.model import Candidate, Evidence, Retrieved, Stage
from infinimem.store.view import View
from infinimem.strategies.readers.beside import FIRST
from infinimem.strategies.readers.budget import pack
from infinimem.strategies.readers.pipeline import Trace, near, ranked, size
from infinimem.strategies.recmem.spec import RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, HELD, RAW, WAITING, Held
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder, told
from infinimem.strategies.records.record import number_of
from infinimem.strategies.records.relevance import records_found, turns_found

EPISODES, UNITS, FACTS = "episodes", "exchanges", "facts"

Tiers = Mapping[str, Sequence[Candidate]]
"""What was found in each, best first."""
Alone = Callable[[Sequence[int]], Sequence[float]]
"""How near to the question turns are by themselves."""


def retrieve(view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> Evidence:
    """Turns by rank: by the best of what shows them, an exchange, an episode or a fact.

    What does not fit is passed over for what comes behind it. At most a quarter of the budget is kept for
    people's notes, and for records that cannot be read.

    Args:
        view: the snapshot.
        held: its records and exchanges.
        query: a question or keywords, any text.
        budget: tokens of all texts together.
        own: how many are looked at in which tier.
    """
    trace = Trace()
    turns = _turns(held, *_search(view, held, query, own, trace))
    trace.add(Stage("turns", found=tuple(turns)))
    others = beside(view, held.records, query, budget, ())
    return trace.evidence([*_said(held, turns, budget - size(others)), *others])


def read(view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> Evidence:
    """Evidence for an answer: the turns that come first, episodes as they are told, facts, and further turns
    that are not far behind; ranked by cosine as in the paper: episodes, exchanges, facts.

    Arguments and what is kept for other evidence as in `retrieve`.
    """
    trace = Trace()
    tiers, alone = _search(view, held, query, own, trace)
    episodes, facts = (
        [told(view, held.records, one.id, one.score) for one in tiers[tier]] for tier in (EPISODES, FACTS)
    )
    if own.rank == "cosine":
        turns = _turns(held, {UNITS: tiers[UNITS]}, alone)
        found = [*episodes, *_said(held, turns, budget), *facts]
    else:
        said = near(_said(held, _turns(held, tiers, alone), budget))
        found = [*said[:FIRST], *episodes, *facts, *said[FIRST:]]
    others = beside(view, held.records, query, budget, ())
    return trace.evidence([*pack(found, budget - size(others)), *others])


# ── the tiers ───────────────────────────────────────────────────────────────────────────────────


def _search(view: View, held: Held, query: str, own: RecmemSettings, trace: Trace) -> tuple[Tiers, Alone]:
    """The best of each tier."""
    trace.add(Stage("query", (query,)))
    most = {EPISODES: own.k_epi, UNITS: own.k_sub, FACTS: own.k_sem}
    by_cosine = own.rank == "cosine"
    tiers, alone = _by_cosine(held, query, own, most) if by_cosine else _by_words(view, held, query, own)
    tiers = {tier: found[: most[tier]] for tier, found in tiers.items()}
    for tier, best in tiers.items():
        trace.add(Stage(tier, found=tuple(best)))
    return tiers, alone


def _by_cosine(held: Held, query: str, own: RecmemSettings, most: Mapping[str, int]) -> tuple[Tiers, Alone]:
    """As the paper ranks (section 3.5): by vectors alone."""
    row = held.index.embed(query)
    where = {
        EPISODES: (held.index, (EPISODE.folder,)),
        UNITS: (held.near, (RAW, WAITING, HELD) if own.units == "all" else (RAW, WAITING)),
        FACTS: (held.index, (FACT.folder,)),
    }
    tiers = {}
    for tier, (index, folders) in where.items():
        best = (Candidate(name, {"cosine": cos}) for name, cos in index.nearest(row, most[tier], folders))
        tiers[tier] = ranked(best, lambda parts: parts["cosine"], lambda one: number_of(one.id))
    return tiers, lambda seqs: held.near.cosines(row, [held.units.unit_of[seq] for seq in seqs])


def _by_words(view: View, held: Held, query: str, own: RecmemSettings) -> tuple[Tiers, Alone]:
    """By the library's search, in which words count, and vectors beside them."""
    said, records = turns_found(view, query), records_found(view, held.records, query)
    units: dict[str, float] = {}
    for seq, score in said.items():
        name = held.units.unit_of.get(seq)
        if name and (own.units == "all" or held.is_open(name)):
            units.setdefault(name, score)
    best = {EPISODES: records[EPISODE.folder], UNITS: units, FACTS: records[FACT.folder]}
    tiers = {
        tier: [Candidate(name, {"words": score}, score) for name, score in found.items()]
        for tier, found in best.items()
    }
    return tiers, lambda seqs: [said.get(seq, 0.0) for seq in seqs]


# ── their turns ─────────────────────────────────────────────────────────────────────────────────


def _turns(held: Held, tiers: Tiers, alone: Alone) -> list[Candidate]:
    """The turns that the tiers show, best first, by the best of what shows them.

    An episode or an exchange, of which a turn is a part, shows it no better than it is near by itself: else
    the turns of a long episode would fill all places.
    """
    parts: dict[int, dict[str, float]] = defaultdict(dict)
    for tier, best in tiers.items():
        store = held.units if tier == UNITS else held.records
        for one in best:
            for ref in store.records[one.id].refs if one.id in store else ():
                parts[ref.seq].setdefault(tier, one.score)
    seqs = [seq for seq in parts if seq in held.units.unit_of]
    for seq, score in zip(seqs, alone(seqs), strict=True):
        parts[seq] |= {tier: min(score, parts[seq][tier]) for tier in (EPISODES, UNITS) if tier in parts[seq]}
    turns = (Candidate(str(seq), parts[seq]) for seq in seqs)
    return ranked(turns, lambda of: max(of.values()), lambda turn: int(turn.id))


def _said(held: Held, turns: Sequence[Candidate], budget: int) -> list[Retrieved]:
    """These turns as evidence, as far as they fit."""
    room = EvidenceBuilder(held.units, budget)
    room.add_turns(turns)
    return room.by_rank()
