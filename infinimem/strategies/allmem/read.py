"""Reading: anchors on the surface, what their links lead to, and of that the nearest to the question.

Calls no language model. Source: All-Mem, section 3.4 and Appendix D.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from infinimem import tokens
from infinimem.model import Evidence, Retrieved
from infinimem.retrieval.origins import MOST, pack
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.allmem.evidence_builder import EvidenceBuilder
from infinimem.strategies.allmem.record_store import RecordStore
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.unit import KINDS, SEMANTIC, TEMPORAL, VERSION, number_of
from infinimem.strategies.allmem.vector_index import Row, VectorIndex
from infinimem.strategies.graph.walk import Reached, expand

Scored = list[tuple[str, float]]
"""Units with their cosines."""


def retrieve(
    view: View, bank: RecordStore, space: VectorIndex, query: str, budget: int, settings: AllmemSettings
) -> Evidence:
    """Turns by rank: by the best score of a unit that shows them, then by its rank (Eq. 37 to 40).

    What does not fit is passed over for what comes behind it. At most a quarter of the budget is kept for
    what no unit holds: turns that were just recorded, and people's notes.

    Args:
        view: the snapshot.
        bank: its units.
        space: where they lie.
        query: a question or keywords, any text.
        budget: tokens of all texts together.
        settings: how many units are looked at, and which links are followed.

    Returns:
        Evidence whose trace has a step for each stage, with its milliseconds.
    """
    steps = _Steps()
    ranked = _search(view, bank, space, query, settings, steps)
    beside = _beside(view, bank, query, budget)
    material = EvidenceBuilder(bank, budget - _size(beside))
    for name, score in ranked:
        for said in bank.quotes(name):
            material.add(score, (said,))
    found = [*material.by_rank(), *beside]
    steps.end("evidence", turns=len(found))
    return Evidence(tuple(found), tuple(steps.done))


def block(
    view: View, bank: RecordStore, space: VectorIndex, question: str, budget: int, settings: AllmemSettings
) -> Evidence:
    """The evidence of the best units as one block for an answer, in the order in which it was said.

    Units are taken by rank and whole, until one does not fit; one that is larger than the block is passed
    over. Arguments and what is kept for other evidence as in `retrieve`.

    Source: All-Mem, Appendix D.5 and F.2.
    """
    steps = _Steps()
    ranked = _search(view, bank, space, question, settings, steps)
    budget = min(budget, settings.block_tokens)
    beside = _beside(view, bank, question, budget)
    room = budget - _size(beside)
    material = EvidenceBuilder(bank, room)
    kept = []
    for name, score in ranked[: settings.final]:
        quotes = bank.quotes(name)
        if material.add(score, quotes):
            kept.append(name)
        elif EvidenceBuilder(bank, room).add(score, quotes):
            break
    found = [*material.by_time(kept), *beside]
    steps.end("evidence", units=kept, turns=len(found))
    return Evidence(tuple(found), tuple(steps.done))


# ── the three stages ────────────────────────────────────────────────────────────────────────────


@dataclass
class _Steps:
    """What happened, and how long each step took."""

    done: list[Mapping[str, Any]] = field(default_factory=list)
    _began: float = field(default_factory=perf_counter)

    def end(self, stage: str, **told: object) -> None:
        now = perf_counter()
        self.done.append({"stage": stage, **told, "ms": round((now - self._began) * 1000, 3)})
        self._began = now


def _search(
    view: View, bank: RecordStore, space: VectorIndex, query: str, settings: AllmemSettings, steps: _Steps
) -> Scored:
    """The units that a question leads to: nearest first, equal ones by id (Eq. 35 and 36), and unless that is
    switched off no archived unit before the one that stands for it (`_successors_first`)."""
    row = space.embed(query)
    steps.end("query")
    anchors = _anchors(view, bank, space, row, settings)
    steps.end("anchors", units=[{"unit": name, "score": score} for name, score in anchors])
    reached = _expanded(bank, [name for name, _ in anchors], settings)
    linked = [found for found in reached if found.hop]
    steps.end(
        "links",
        units=[{"unit": r.node, "hop": r.hop, "from": r.source, "kind": r.kind} for r in linked],
        archived=sum(found.node not in bank.visible for found in linked),
    )
    names = [found.node for found in reached]
    ranked = _sorted(zip(names, space.cosines(row, names), strict=True))
    if settings.visibility and settings.successors_first:
        ranked = _successors_first(bank, ranked)
    steps.end("ranking", units=[{"unit": name, "score": score} for name, score in ranked])
    return ranked


def _anchors(view: View, bank: RecordStore, space: VectorIndex, row: Row, settings: AllmemSettings) -> Scored:
    """Stage 1: the units of the surface nearest to the question; ties by creation (Eq. 30).

    Archived units that no unit stands for count as the surface: of a view of some sources, or of a folder
    that a person took files from, the unit that represents them may be missing.
    """
    found = space.nearest(row, settings.anchors, archived=not settings.visibility)
    if settings.visibility and row.any():
        stranded = view.derived(_stranded)
        found += zip(stranded, space.cosines(row, stranded), strict=True)
    return _sorted(found)[: settings.anchors]


def _stranded(view: View, *_: object) -> tuple[str, ...]:
    """Archived units to which no version link leads (`View.derived`)."""
    bank = view.derived(RecordStore.load)
    return tuple(name for name in bank.units.keys() - bank.visible if not bank.graph.into(name, VERSION))


def _expanded(bank: RecordStore, anchors: Sequence[str], settings: AllmemSettings) -> tuple[Reached, ...]:
    """Stage 2: the candidates, by way of outgoing links, older ones first (D.3)."""
    return expand(
        anchors,
        bank.graph.links,
        settings.hops if settings.expand else 0,
        settings.candidates,
        KINDS if settings.recovery_links else (TEMPORAL, SEMANTIC),
        lambda name: bank.units[name].age,
        priority=settings.type_priority,
    )


def _sorted(found: Iterable[tuple[str, float]]) -> Scored:
    return sorted(found, key=lambda item: (-item[1], number_of(item[0])))


def _successors_first(bank: RecordStore, ranked: Scored) -> Scored:
    """No archived unit before the best of those on the surface that stand for it: what is superseded is often
    as near to a question as what is in force."""
    own = dict(ranked)

    def bound(name: str) -> float:
        heirs = [own[heir] for heir in _heirs(bank, name) if heir in own]
        return max(heirs, default=own[name])

    scored = [(name, score if name in bank.visible else min(score, bound(name))) for name, score in ranked]
    return sorted(scored, key=lambda item: (-item[1], item[0] not in bank.visible))


def _heirs(bank: RecordStore, name: str) -> set[str]:
    """The units of the surface from which version links lead to an archived one."""
    seen, waiting = {name}, [name]
    while waiting:
        fresh = set(bank.graph.into(waiting.pop(), VERSION)) - seen
        seen |= fresh
        waiting += fresh - bank.visible
    return seen & bank.visible


# ── what no unit holds ──────────────────────────────────────────────────────────────────────────


def _beside(view: View, bank: RecordStore, query: str, budget: int) -> list[Retrieved]:
    """The best of what no unit holds, by words: turns that wait to become units, units' files that cannot be
    read, and people's notes."""
    waiting, notes = view.derived(_unheld)
    if not waiting and not notes:
        return []
    unread = {finding.where for finding in bank.findings}
    beside = (
        item
        for item in searcher(view).entries(query, MOST)
        if view.is_note(item.doc_id)
        or item.doc_id in unread
        or (item.doc_id.startswith(EVIDENCE) and waiting.issuperset(item.seqs))
    )
    return pack(beside, budget // 4)


def _unheld(view: View, *_: object) -> tuple[frozenset[int], bool]:
    """Seqs of the turns that no unit holds, and whether there are notes (`View.derived`)."""
    bank = view.derived(RecordStore.load)
    held = {ref.seq for unit in bank.units.values() for ref in unit.refs}
    waiting = (
        place.seq for place in view.entries("evidence") if place.seq not in held and not view.repeats(place)
    )
    return frozenset(waiting), any(map(view.is_note, view.ids()))


def _size(items: Sequence[Retrieved]) -> int:
    return sum(tokens.count(item.text) for item in items)
