"""Reading: anchors on the surface, what their links lead to, and of that the nearest to the question.

Calls no language model. Source: All-Mem, section 3.4 and Appendix D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from infinimem.index.vectors import DIGITS
from infinimem.model import Candidate, Evidence, Stage
from infinimem.store.view import View
from infinimem.strategies.allmem.consolidate import SEMANTIC, SURFACE, TEMPORAL, VERSION
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.links import Reached, expand, replacements
from infinimem.strategies.readers.pipeline import ranked
from infinimem.strategies.records.evidence import EvidenceBuilder, Records, RecordSearch
from infinimem.strategies.records.record import number_of, record_id
from infinimem.strategies.records.record_store import RecordStore


class UnitSearch(RecordSearch[AllmemSettings]):
    """What is found for one question; beside units the turns that wait, and people's notes.

    The parts of a unit are its cosine and, unless `words` is 0, what search makes of its turns.
    """

    def __init__(self, view: View, records: Records, query: str, budget: int, own: AllmemSettings) -> None:
        super().__init__(view, records, query, budget, own, None)
        self._said = self._shares() if own.words else {}

    def by_rank(self) -> Evidence:
        """Turns by rank: by the best score of a unit that shows them, then by its rank (Eq. 37 to 40)."""
        material = EvidenceBuilder(self.store, self.budget)
        for unit in self._units():
            for said in self.store.quotes(unit.id):
                material.add(unit.score, (said,), self.store.records[unit.id].when)
        return self.evidence(material.by_rank())

    def for_answer(self) -> Evidence:
        """The evidence of the best units as one block, best first (Appendix D.5 and F.2: in the order of
        time).

        Units are taken by rank and whole, until one does not fit; one that is larger than the block is
        passed over. Where there is room, the best bring what was said just before and after: the question,
        or what "it" is.
        """
        store, own = self.store, self.own
        material = EvidenceBuilder(store, self.budget)
        kept = []
        units = self._units()
        least = own.floor * units[0].score if units else 0.0
        for unit in [one for one in units if one.score >= least and store.records[one.id].group][: own.final]:
            quotes, when = store.quotes(unit.id), store.records[unit.id].when
            if own.successors_first and unit.id not in store.visible and material.shows(quotes):
                continue  # its parts, or what stands for it, came before
            if material.add(unit.score, quotes, when):
                kept.append(unit)
            elif EvidenceBuilder(store, self.budget).add(unit.score, quotes):
                break
        for unit in kept[: own.beside]:
            for name in (*store.out(unit.id, TEMPORAL), *sorted(store.into(unit.id, TEMPORAL))):
                if store.records[name].group:
                    material.add(0.0, store.quotes(name), store.records[name].when)
        self.trace.add(Stage("units", found=tuple(kept), tokens=material.tokens))
        return self.evidence(material.by_time() if own.by_time else material.by_rank())

    # ── the three stages ────────────────────────────────────────────────────────────────────────

    def _units(self) -> list[Candidate]:
        """The units that a question leads to: nearest first, equal ones by id (Eq. 35 and 36)."""
        own, records = self.own, self.store.records
        anchors = self._anchors()
        self.trace.add(Stage("anchors", found=tuple(anchors)))
        reached = expand(  # stage 2: by way of outgoing links, older ones first (D.3)
            [anchor.id for anchor in anchors],
            self.store.links,
            own.hops if own.expand else 0,
            own.candidates,
            self.store.spec.links if own.recovery_links else (TEMPORAL, SEMANTIC),
            lambda name: records[name].age,
            priority=own.type_priority,
        )
        links = (Candidate(r.node, {"hop": r.hop}, via=f"{r.kind} {r.source}") for r in reached if r.hop)
        self.trace.add(Stage("links", found=tuple(links)))
        units = self._placed(reached, own.visibility and own.successors_first)
        self.trace.add(Stage("ranking", found=tuple(units)))
        return units

    def _anchors(self) -> list[Candidate]:
        """Stage 1: the units of the surface that have most to do with the question; ties by creation (Eq.
        30).

        Archived units that no unit stands for count as the surface: of a view of some sources, or of a
        folder that a person took files from, the unit that represents them may be missing.
        """
        own, records = self.own, self.store.records
        folders = SURFACE if own.visibility else self.view.spec.record_folders
        names = [name for name, _ in self.index.nearest(self.row, own.anchors, folders)]
        names += [name for name in self._said if records[name].group in folders]
        if own.visibility and self.row.any():
            names += self.view.derived(_stranded)
        near = self._parts(list(dict.fromkeys(names)))
        best = ranked(near, self._score, lambda unit: number_of(unit.id))[: own.anchors]
        return [unit for unit in best if unit.score >= own.floor * best[0].score]

    def _placed(self, reached: Sequence[Reached], successors: bool) -> list[Candidate]:
        """Stage 3: the candidates by score; with `successors` no archived one before what stands for it."""
        store = self.store
        near = {unit.id: unit.parts for unit in self._parts([one.node for one in reached])}

        def parts(one: Reached) -> dict[str, float]:
            own = {**near[one.node], "hop": one.hop}
            if not successors or one.node in store.visible:
                return own
            by = replacements(store, one.node, VERSION, store.visible)
            best = [self._score(near[other]) for other in by if other in near]
            return {**own, "successor": max(best)} if best else own

        def ties(unit: Candidate) -> tuple[object, ...]:
            return successors and unit.id not in store.visible, -unit.parts["cosine"], number_of(unit.id)

        return ranked((Candidate(one.node, parts(one)) for one in reached), self._score, ties)

    # ── how near a unit is ──────────────────────────────────────────────────────────────────────

    def _parts(self, names: Sequence[str]) -> Iterator[Candidate]:
        for name, cosine in zip(names, self.index.cosines(self.row, names), strict=True):
            words = {"words": self._said[name]} if name in self._said else {}
            yield Candidate(name, {"cosine": cosine} | words)

    def _score(self, parts: Mapping[str, float]) -> float:
        """The cosine and so much of what search says; at most what a `successor` has, if one is in force."""
        own = round(parts["cosine"] + self.own.words * parts.get("words", 0.0), DIGITS)
        return min(own, parts.get("successor", own))

    def _shares(self) -> dict[str, float]:
        """Units by what search makes of their turns, as a share of the best; the best first.

        A turn whose unit was archived speaks for those that stand for it.
        """
        store, scores = self.store, self.turn_scores
        best = next(iter(scores.values()), 0.0)
        shares: dict[str, float] = {}
        for seq, score in scores.items() if best > 0 else ():
            name = record_id(store.spec.kinds[0].prefix, seq)
            if name in store:
                for other in {name, *replacements(store, name, VERSION, store.visible)}:
                    shares.setdefault(other, round(score / best, DIGITS))
        return shares


def _stranded(view: View, *_: object) -> tuple[str, ...]:
    """Archived units to which no version link leads (`View.derived`)."""
    bank = view.derived(RecordStore.load)
    return tuple(name for name in bank.records.keys() - bank.visible if not bank.into(name, VERSION))
