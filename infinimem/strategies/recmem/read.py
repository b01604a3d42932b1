"""Reading: what is nearest to a question in three tiers, exchanges, episodes and facts. Calls no model.

Source: RecMem, section 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from infinimem.model import Candidate, Evidence, Retrieved, Step
from infinimem.retrieval.origins import pack
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import Trace, ranked, size
from infinimem.strategies.recmem.consolidate import Held
from infinimem.strategies.recmem.spec import RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, HELD, RAW, WAITING
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder
from infinimem.strategies.records.record import Ref, number_of

Tiers = dict[str, list[Candidate]]
"""What was found in each, best first."""

EPISODES, UNITS, FACTS = "episodes", "exchanges", "facts"
SMOOTHED = 60
"""Of a reciprocal rank: how little the first place counts before the second."""


def retrieve(view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> Evidence:
    """Turns by rank: by the sum of the reciprocal ranks of what shows them, an exchange, episode or fact; of
    equal ones by the cosine of their exchange.

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
    turns = _fused(held, query, _tiers(held, query, own, trace))
    trace.add(Step("turns", found=tuple(turns)))
    others = beside(view, held.records, query, budget, ())
    room = EvidenceBuilder(held.units, budget - size(others))
    for turn in turns:
        room.add(turn.score, (held.units.quote(Ref(int(turn.id))),))
    return trace.evidence([*room.by_rank(), *others])


def read(view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> Evidence:
    """Evidence for an answer: episodes as they are told, then exchanges as they were said, then facts, each
    tier by rank; arguments and what is kept for other evidence as in `retrieve`."""
    trace = Trace()
    tiers = _tiers(held, query, own, trace)
    others = beside(view, held.records, query, budget, ())
    units = EvidenceBuilder(held.units, budget)
    for unit in tiers[UNITS]:
        units.add(unit.score, held.units.quotes(unit.id))
    episodes, facts = ([_told(view, held, found) for found in tiers[tier]] for tier in (EPISODES, FACTS))
    shown = pack([*episodes, *units.by_rank(), *facts], budget - size(others))
    return trace.evidence([*shown, *others])


def _told(view: View, held: Held, found: Candidate) -> Retrieved:
    """An episode's narrative, or a fact, which stands in the header of its file."""
    record = held.records.records[found.id]
    document = view.document(record.doc_id)
    rows = (at for at, line in enumerate(document.lines, 1) if line.startswith("summary:"))
    start = document.header.end + 1 if record.prose else next(rows, 1)
    turns = [turn for turn in (held.records.turn(ref.seq) for ref in record.refs) if turn]
    sources = {turn.entry.source for turn in turns}
    return Retrieved(
        record.doc_id,
        start,
        start + record.prose.count("\n"),
        record.prose or record.summary,
        found.score,
        origin=tuple(turn.seq for turn in turns),
        time=record.time,
        source=sources.pop() if len(sources) == 1 else None,
        physical=True,
    )


# ── the tiers ───────────────────────────────────────────────────────────────────────────────────


def _tiers(held: Held, query: str, own: RecmemSettings, trace: Trace) -> Tiers:
    """The nearest of each tier, best first."""
    row = held.index.embed(query)
    trace.add(Step("query", (query,)))
    of_units = (RAW, WAITING, HELD) if own.units == "all" else (RAW, WAITING)
    asked = {
        EPISODES: (held.index, own.k_epi * own.read_episodes, (EPISODE.folder,)),
        UNITS: (held.near, own.k_sub * own.read_units, of_units),
        FACTS: (held.index, own.k_sem * own.read_facts, (FACT.folder,)),
    }
    tiers: Tiers = {}
    for tier, (index, most, folders) in asked.items():
        near = (Candidate(name, {"cosine": cosine}) for name, cosine in index.nearest(row, most, folders))
        tiers[tier] = ranked(near, lambda parts: parts["cosine"], lambda one: number_of(one.id))
        trace.add(Step(tier, found=tuple(tiers[tier])))
    return tiers


def _fused(held: Held, query: str, tiers: Tiers) -> list[Candidate]:
    """The turns that the tiers show, best first."""
    parts: dict[int, dict[str, float]] = defaultdict(dict)
    for tier, found in tiers.items():
        store = held.units if tier == UNITS else held.records
        for rank, one in enumerate(found, 1):
            for ref in store.records[one.id].refs:
                parts[ref.seq].setdefault(tier, 1 / (SMOOTHED + rank))
    seqs = [seq for seq in parts if seq in held.units.unit_of]
    units = [held.units.unit_of[seq] for seq in seqs]
    cosines = held.near.cosines(held.near.embed(query), units)
    near = dict(zip(seqs, cosines, strict=True))
    turns = (Candidate(str(seq), {**parts[seq], "near": near[seq]}) for seq in seqs)
    return ranked(turns, _score, lambda turn: (-turn.parts["near"], int(turn.id)))


def _score(parts: Mapping[str, float]) -> float:
    return round(sum(parts.get(tier, 0.0) for tier in (EPISODES, UNITS, FACTS)), 9)
