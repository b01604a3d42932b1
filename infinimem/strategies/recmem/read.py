"""Reading: what is nearest to a question in three tiers, exchanges, episodes and facts. Calls no model.

Source: RecMem, section 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from infinimem.model import Candidate, Evidence, Retrieved, Step
from infinimem.retrieval.origins import pack
from infinimem.retrieval.searcher import searcher
from infinimem.store.records import stem
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import Trace, ranked, size
from infinimem.strategies.recmem.consolidate import Held
from infinimem.strategies.recmem.spec import RecmemSettings
from infinimem.strategies.recmem.subconscious import EPISODE, FACT, HELD, RAW, WAITING
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder
from infinimem.strategies.records.record import Ref, number_of

EPISODES, UNITS, FACTS = "episodes", "exchanges", "facts"

LOOKED_AT = 200
"""Rows of the library's search among which the tiers are found."""


def retrieve(view: View, held: Held, query: str, budget: int, own: RecmemSettings) -> Evidence:
    """Turns by rank: by the best cosine of what shows them, an exchange, an episode or a fact.

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
    turns = _fused(held, _search(view, held, query, own, trace))
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
    tiers = _search(view, held, query, own, trace).tiers
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


@dataclass(frozen=True)
class _Found:
    """What was found in each tier, best first, and how near to the question any turn is by itself."""

    tiers: Mapping[str, Sequence[Candidate]]
    near: Callable[[Sequence[int]], Sequence[float]]


def _search(view: View, held: Held, query: str, own: RecmemSettings, trace: Trace) -> _Found:
    """The best of each tier."""
    trace.add(Step("query", (query,)))
    most = {
        EPISODES: own.k_epi * own.read_episodes,
        UNITS: own.k_sub * own.read_units,
        FACTS: own.k_sem * own.read_facts,
    }
    by_words = own.rank == "library"
    found = _by_words(view, held, query, own, most) if by_words else _by_cosine(held, query, own, most)
    for tier, best in found.tiers.items():
        trace.add(Step(tier, found=tuple(best)))
    return found


def _by_cosine(held: Held, query: str, own: RecmemSettings, most: Mapping[str, int]) -> _Found:
    """As the paper ranks (section 3.5): by vectors alone."""
    row = held.index.embed(query)
    of_units = (RAW, WAITING, HELD) if own.units == "all" else (RAW, WAITING)
    where = {
        EPISODES: (held.index, (EPISODE.folder,)),
        UNITS: (held.near, of_units),
        FACTS: (held.index, (FACT.folder,)),
    }
    tiers = {}
    for tier, (index, folders) in where.items():
        best = (Candidate(name, {"cosine": cos}) for name, cos in index.nearest(row, most[tier], folders))
        tiers[tier] = ranked(best, lambda parts: parts["cosine"], lambda one: number_of(one.id))

    def near(seqs: Sequence[int]) -> Sequence[float]:
        return held.near.cosines(row, [held.units.unit_of[seq] for seq in seqs])

    return _Found(tiers, near)


def _by_words(view: View, held: Held, query: str, own: RecmemSettings, most: Mapping[str, int]) -> _Found:
    """By the library's search, in which words count, and vectors beside them."""
    said = {item.seqs[0]: item.score for item in searcher(view).entries(query, LOOKED_AT, "evidence")}
    best: dict[str, dict[str, float]] = {EPISODES: {}, UNITS: {}, FACTS: {}}
    for item in searcher(view).entries(query, LOOKED_AT):
        for tier, kind in ((EPISODES, EPISODE), (FACTS, FACT)):
            if item.doc_id.startswith(kind.folder):
                best[tier].setdefault(stem(item.doc_id), item.score)
    for seq, score in said.items():
        name = held.units.unit_of.get(seq)
        if name and (own.units == "all" or held.is_open(name)):
            best[UNITS].setdefault(name, score)
    tiers = {
        tier: [Candidate(name, {"words": score}, score) for name, score in [*those.items()][: most[tier]]]
        for tier, those in best.items()
    }
    return _Found(tiers, lambda seqs: [said.get(seq, 0.0) for seq in seqs])


def _fused(held: Held, found: _Found) -> list[Candidate]:
    """The turns that the tiers show, best first."""
    parts: dict[int, dict[str, float]] = defaultdict(dict)
    for tier, best in found.tiers.items():
        store = held.units if tier == UNITS else held.records
        for one in best:
            for ref in store.records[one.id].refs if one.id in store else ():
                parts[ref.seq].setdefault(tier, one.score)
    seqs = [seq for seq in parts if seq in held.units.unit_of]
    for seq, score in zip(seqs, found.near(seqs), strict=True):
        parts[seq] |= {tier: min(score, parts[seq][tier]) for tier in (EPISODES, UNITS) if tier in parts[seq]}
    turns = (Candidate(str(seq), parts[seq]) for seq in seqs)
    return ranked(turns, _score, lambda turn: int(turn.id))


def _score(parts: Mapping[str, float]) -> float:
    """The best of what shows a turn. An episode or an exchange, of which it is a part, shows it no better
    than it is near by itself: else the turns of a long episode would fill all places."""
    return max(parts.values())
