"""Reading: anchors on the surface, what their links lead to, and of that the nearest to the question.

Calls no language model. Source: All-Mem, section 3.4 and Appendix D.
"""

from __future__ import annotations

from collections.abc import Sequence

from infinimem.model import Candidate, Evidence, Stage
from infinimem.store.view import View
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.unit import KINDS, SEMANTIC, SURFACE, TEMPORAL, VERSION
from infinimem.strategies.graph.walk import Reached, expand, heirs
from infinimem.strategies.readers.pipeline import Trace, ranked, size
from infinimem.strategies.records.beside import beside
from infinimem.strategies.records.evidence_builder import EvidenceBuilder
from infinimem.strategies.records.record import number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.relevance import Relevance
from infinimem.strategies.vector_index import VectorIndex


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
    """
    trace = Trace()
    found = _search(view, bank, space, query, settings, trace)
    others = beside(view, bank, query, budget)
    material = EvidenceBuilder(bank, budget - size(others))
    for unit in found:
        for said in bank.quotes(unit.id):
            material.add(unit.score, (said,), bank.records[unit.id].when)
    return trace.evidence([*material.by_rank(), *others])


def block(
    view: View, bank: RecordStore, space: VectorIndex, question: str, budget: int, settings: AllmemSettings
) -> Evidence:
    """The evidence of the best units as one block for an answer, best first.

    Units are taken by rank and whole, until one does not fit; one that is larger than the block is passed
    over. Where there is room, the best bring what was said just before and after them: the question, or what
    "it" is. Arguments and what is kept for other evidence as in `retrieve`.

    Source: All-Mem, Appendix D.5 and F.2, where the block is in the order in which it was said.
    """
    trace = Trace()
    found = _search(view, bank, space, question, settings, trace)
    budget = min(budget, settings.block_tokens)
    others = beside(view, bank, question, budget)
    room = budget - size(others)
    material = EvidenceBuilder(bank, room)
    kept = []
    least = settings.floor * found[0].score if found else 0.0
    told = [unit for unit in found if unit.score >= least and bank.records[unit.id].group]
    for unit in told[: settings.final]:
        quotes, when = bank.quotes(unit.id), bank.records[unit.id].when
        if settings.successors_first and unit.id not in bank.visible and material.shows(quotes):
            continue  # its parts, or what stands for it, came before
        if material.add(unit.score, quotes, when):
            kept.append(unit)
        elif EvidenceBuilder(bank, room).add(unit.score, quotes):
            break
    for unit in kept[: settings.beside]:
        for name in (*bank.graph.out(unit.id, TEMPORAL), *sorted(bank.graph.into(unit.id, TEMPORAL))):
            if bank.records[name].group:
                material.add(0.0, bank.quotes(name), bank.records[name].when)
    trace.add(Stage("units", found=tuple(kept), tokens=material.tokens))
    shown = material.by_time() if settings.by_time else material.by_rank()
    return trace.evidence([*shown, *others])


# ── the three stages ────────────────────────────────────────────────────────────────────────────


def _search(
    view: View, bank: RecordStore, space: VectorIndex, query: str, settings: AllmemSettings, trace: Trace
) -> list[Candidate]:
    """The units that a question leads to: nearest first, equal ones by id (Eq. 35 and 36), and unless that is
    switched off no archived unit before the one that stands for it (`_placed`)."""
    asked = Relevance(view, bank, space, query, settings.words, VERSION)
    trace.add(Stage("query", (query,)))
    anchors = _anchors(view, bank, space, asked, settings)
    trace.add(Stage("anchors", found=tuple(anchors)))
    reached = expand(  # stage 2: by way of outgoing links, older ones first (D.3)
        [anchor.id for anchor in anchors],
        bank.graph.links,
        settings.hops if settings.expand else 0,
        settings.candidates,
        KINDS if settings.recovery_links else (TEMPORAL, SEMANTIC),
        lambda name: bank.records[name].age,
        priority=settings.type_priority,
    )
    links = (Candidate(r.node, {"hop": r.hop}, via=f"{r.kind} {r.source}") for r in reached if r.hop)
    trace.add(Stage("links", found=tuple(links)))
    found = _placed(bank, asked, reached, settings.visibility and settings.successors_first)
    trace.add(Stage("ranking", found=tuple(found)))
    return found


def _anchors(
    view: View, bank: RecordStore, space: VectorIndex, asked: Relevance, settings: AllmemSettings
) -> list[Candidate]:
    """Stage 1: the units of the surface that have most to do with the question; ties by creation (Eq. 30, by
    cosines alone). What tells of nothing is none.

    Archived units that no unit stands for count as the surface: of a view of some sources, or of a folder
    that a person took files from, the unit that represents them may be missing.
    """
    folders = SURFACE if settings.visibility else view.spec.record_folders
    names = [name for name, _ in space.nearest(asked.row, settings.anchors, folders)]
    names += [name for name in asked.found if bank.records[name].group in folders]
    if settings.visibility and asked.row.any():
        names += view.derived(_stranded)
    near = asked.parts(list(dict.fromkeys(names)))
    best = ranked(near, asked.score, lambda unit: number_of(unit.id))[: settings.anchors]
    return [unit for unit in best if unit.score >= settings.floor * best[0].score]


def _stranded(view: View, *_: object) -> tuple[str, ...]:
    """Archived units to which no version link leads (`View.derived`)."""
    bank = view.derived(RecordStore.load)
    return tuple(name for name in bank.records.keys() - bank.visible if not bank.graph.into(name, VERSION))


def _placed(
    bank: RecordStore, asked: Relevance, reached: Sequence[Reached], successors: bool
) -> list[Candidate]:
    """Stage 3: the candidates by score; with `successors` no archived one before what stands for it."""
    found = {unit.id: unit.parts for unit in asked.parts([one.node for one in reached])}

    def parts(one: Reached) -> dict[str, float]:
        own = {**found[one.node], "hop": one.hop}
        if not successors or one.node in bank.visible:
            return own
        by = heirs(bank.graph, one.node, VERSION, bank.visible)
        best = [asked.score(found[heir]) for heir in by if heir in found]
        return {**own, "successor": max(best)} if best else own

    def ties(unit: Candidate) -> tuple[object, ...]:
        return successors and unit.id not in bank.visible, -unit.parts["cosine"], number_of(unit.id)

    return ranked((Candidate(one.node, parts(one)) for one in reached), asked.score, ties)
