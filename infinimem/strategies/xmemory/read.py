"""Reading from the top down: themes, facts, and episodes with their messages where facts are not enough.

Source: xMemory, section 3.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from infinimem.llm.base import LLM
from infinimem.model import Candidate, Evidence, Retrieved, Step
from infinimem.store.view import View
from infinimem.strategies.readers.budget import pack
from infinimem.strategies.readers.pipeline import Trace, ranked, size
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder, told
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.records.record import Ref, number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.relevance import records_found, turns_found
from infinimem.strategies.vector_index import Scored, VectorIndex
from infinimem.strategies.xmemory.gate import Admitted, Episode, by_words, choose
from infinimem.strategies.xmemory.select import min_max, pick
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.strategies.xmemory.themes import EPISODES, FACT, GROUP, Themes
from infinimem.strategies.xmemory.write import SOURCE

SUPPORT = 0.5
"""What the nearest of its facts counts beside an episode's own nearness."""

SHARE = 6
"""One record covers as many others as this part of all at most: else the first would stand for all of a
small library. In the paper 10 of some 64 themes are neighbours."""

Near = Callable[[Sequence[str]], Sequence[float]]
"""How near records are to the question."""


class Hierarchy:
    """A library as it is read: its records, where they lie, and the theme of each fact."""

    def __init__(self, view: View, store: RecordStore, index: VectorIndex) -> None:
        self.view, self.store, self.index = view, store, index
        themes = view.derived(Themes.load)
        self.theme_of = themes.of
        self.sizes = {FACT.folder: len(themes.of), GROUP.folder: len(themes.facts)}


def retrieve(of: Hierarchy, query: str, budget: int, own: XmemorySettings) -> Evidence:
    """Turns by rank: by the best of the facts and episodes that show them; asks no model.

    What does not fit is passed over for what comes behind it. At most a quarter of the budget is kept for
    open turns, and people's notes.

    Args:
        of: the hierarchy.
        query: a question or keywords, any text.
        budget: tokens of all texts together.
        own: how many are looked at.
    """
    trace = Trace()
    trace.add(Step("query", (query,)))
    said = turns_found(of.view, query)
    others = _others(of, query, budget)
    parts: dict[int, dict[str, float]] = defaultdict(dict)
    if own.records:
        found = _found(of, query, own, trace)
        shown = by_words(query, [of.store.records[one.id] for one in found.facts], found.probed(of))
        trace.add(_gated(found, shown))
        for fact in found.facts:
            for ref in of.store.records[fact.id].refs:
                parts[ref.seq].setdefault("fact", fact.parts["near"])
        best = max(said.values(), default=0.0) or 1.0
        for episode in (found.episodes[at] for at, _ in shown.shown):
            for ref in of.store.records[episode.id].refs:
                parts[ref.seq].setdefault("episode", episode.parts["near"] * said.get(ref.seq, 0.0) / best)
    if own.rank == "library" or not own.records:
        for seq, score in said.items():
            parts[seq]["words"] = score
    turns = ranked(
        (Candidate(str(seq), those) for seq, those in parts.items()),
        lambda those: max(those.values()),
        lambda turn: int(turn.id),
    )
    trace.add(Step("turns", found=tuple(turns)))
    room = EvidenceBuilder(of.store, budget - size(others))
    for turn in turns:
        room.add(turn.score, (of.store.quote(Ref(int(turn.id))),))
    return trace.evidence([*room.by_rank(), *others])


def read(of: Hierarchy, llm: LLM, question: str, budget: int, own: XmemorySettings) -> Evidence:
    """Evidence for an answer: facts, then episodes, and messages behind those that need them.

    Args:
        of, budget, own: as in `retrieve`.
        llm: asked by the gate.
        question: in plain words.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    trace = Trace()
    trace.add(Step("query", (question,)))
    found = _found(of, question, own, trace)
    shown = choose(llm, own, question, [of.store.records[one.id] for one in found.facts], found.probed(of))
    trace.add(_gated(found, shown))
    others = _others(of, question, budget)
    facts = sorted(found.facts, key=lambda one: -one.parts["near"])  # where room is short the nearest stay
    items = [told(of.view, of.store, one.id, one.parts["near"]) for one in facts]
    for at, messages in shown.shown:
        episode = found.episodes[at]
        items.append(told(of.view, of.store, episode.id, episode.score))
        if messages or not of.store.records[episode.id].prose:
            room = EvidenceBuilder(of.store, budget)
            room.add(episode.score, of.store.quotes(episode.id))
            items += room.by_rank()
    return trace.evidence([*pack(items, budget - size(others)), *others])


def _others(of: Hierarchy, query: str, budget: int) -> list[Retrieved]:
    seqs = (turn.seq for turns in open_turns(of.view).values() for turn in turns)
    return beside(of.view, of.store, query, budget, seqs)


def _gated(found: _Found, shown: Admitted) -> Step:
    """The step of the gate: what is shown with its gain, and of all that were probed H and the gains."""
    rows = []
    for at, messages in shown.shown:
        parts = {"gain": shown.gains[at]} if at < len(shown.gains) else {}
        rows.append(Candidate(found.episodes[at].id, parts, via="messages" * messages))
    asked = (*([f"H0 {shown.before}"] if shown.before is not None else []), *map(str, shown.gains))
    return Step("gate", asked, tuple(rows), stop=shown.stop, failure=shown.failure)


# ── stage I ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Found:
    """Facts in the order in which they were taken, and the episodes that are probed, the likeliest first."""

    facts: Sequence[Candidate]
    episodes: Sequence[Candidate]

    def probed(self, of: Hierarchy) -> list[Episode]:
        """The episodes as a gate looks at them."""
        rows = ((of.store.records[one.id], of.store.text(one.id)) for one in self.episodes)
        return [Episode(one.id, one.summary, one.time, one.prose, text) for one, text in rows]


def _found(of: Hierarchy, query: str, own: XmemorySettings, trace: Trace) -> _Found:
    """Facts that represent what is near to the question (Eq. 4), and the episodes that they lead to."""
    nearest, near = (_by_cosine if own.rank == "cosine" else _by_words)(of, query)
    pool = nearest(FACT.folder, own.pool)
    themes = sorted({of.theme_of[name] for name, _ in pool if name in of.theme_of}, key=number_of)
    if own.represent:
        groups = _picked(of, themes, near(themes), own.themes, own)
        trace.add(Step("themes", found=tuple(groups)))
        taken = {one.id for one in groups}
        among = [one for one in pool if of.theme_of.get(one[0]) in taken or one[0] not in of.theme_of]
        facts = _picked(of, [name for name, _ in among], [score for _, score in among], own.facts, own)
    else:
        facts = [Candidate(name, {"near": score}) for name, score in pool[: own.facts]]
    trace.add(Step("facts", found=tuple(facts)))
    support: dict[str, float] = {}
    shares = min_max([fact.parts["near"] for fact in facts])
    for fact, share in zip(facts, shares, strict=True):
        for episode in of.store.graph.out(fact.id, SOURCE):
            support[episode] = max(share, support.get(episode, 0.0))
    names = list(dict.fromkeys([*support, *(name for name, _ in nearest(EPISODES.folder, own.episodes))]))
    scores = near(names)
    rows = (
        Candidate(name, {"near": score, "share": share, "support": SUPPORT * support.get(name, 0.0)})
        for name, score, share in zip(names, scores, min_max(scores), strict=True)
    )
    episodes = ranked(rows, lambda parts: parts["share"] + parts["support"], lambda one: number_of(one.id))
    trace.add(Step("episodes", found=tuple(episodes[: own.episodes])))
    return _Found(facts, episodes[: own.episodes])


def _picked(
    of: Hierarchy, names: Sequence[str], scores: Sequence[float], budget: int, own: XmemorySettings
) -> list[Candidate]:
    """The representatives among these records, in the order in which they are taken."""
    order = sorted(range(len(names)), key=lambda at: (-scores[at], number_of(names[at]), names[at]))
    place = {names[at]: rank for rank, at in enumerate(order)}
    near = [{rank: 1.0} for rank in range(len(order))]
    size = of.sizes[of.store.records[names[0]].folder] if names else 0
    for name, others in of.index.neighbours(names, min(own.neighbours, size // SHARE)).items():
        near[place[name]] |= {place[one]: cos for one, cos in others if one in place and cos > 0}
    relevance = [scores[at] for at in order]
    taken = pick(relevance, near, budget, own.alpha, kind=own.normaliser)
    return [Candidate(names[order[rank]], {"near": relevance[rank]}) for rank in taken]


_Nearest = Callable[[str, int], Scored]


def _by_cosine(of: Hierarchy, query: str) -> tuple[_Nearest, Near]:
    """As the paper: by vectors."""
    row = of.index.embed(query)
    return lambda folder, k: of.index.nearest(row, k, (folder,)), partial(of.index.cosines, row)


def _by_words(of: Hierarchy, query: str) -> tuple[_Nearest, Near]:
    """By the library's search; what it does not find is as near as nothing."""
    found = records_found(of.view, of.store, query)
    scores = {name: score for those in found.values() for name, score in those.items()}
    return lambda folder, k: [*found[folder].items()][:k], lambda names: [
        scores.get(name, 0.0) for name in names
    ]
