"""Routing: which proposals may be executed. Gate, normal form, coherence, queues; every drop has one code.

    LOW_CONF      confidence below the threshold
    NORM_FILTER   OFF, MISSING_ID, VISIBILITY_FAIL, ARITY_FAIL, ORDER_FAIL (an update by what is older), or
                  DUPLICATE, OVERLAP (another proposal stands for it)
    COH_FAIL      a merge of units that are not near enough to each other

Source: All-Mem, Appendix C.2, Eq. 28 and 29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infinimem.strategies.allmem.diagnose import OPS, Op, Proposal
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.records.record import number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex

Order = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Item:
    """A proposal in normal form: known ids, each once, ascending but for an update's pair."""

    proposal: Proposal
    ids: tuple[str, ...]

    @property
    def op(self) -> Op:
        return self.proposal.op

    @property
    def order(self) -> Order:
        return tuple(map(number_of, self.ids))


@dataclass(frozen=True)
class Dropped:
    """A proposal that goes no further, and why."""

    proposal: Proposal
    code: str
    sub: str = ""


@dataclass(frozen=True)
class Routed:
    """What is executed, by operator and then by ids; and what is not."""

    queues: Mapping[Op, tuple[Item, ...]]
    dropped: tuple[Dropped, ...]


def route(
    bank: RecordStore, space: VectorIndex, proposals: Iterable[Proposal], settings: AllmemSettings
) -> Routed:
    """Gate, normalise and queue proposals, given in the order of their records."""
    kept: dict[Op, list[Item]] = {op: [] for op in OPS}
    dropped: list[Dropped] = []
    for proposal in proposals:
        found = _accepted(bank, space, proposal, settings)
        if isinstance(found, Item):
            kept[found.op].append(found)
        else:
            dropped.append(found)
    queues = {}
    for op in OPS:
        queue, twice = _once(kept[op])
        if op == "merge":
            queue, overlapping = _apart(queue)
            twice += overlapping
        dropped += twice
        queues[op] = tuple(sorted(queue, key=lambda item: item.order))
    return Routed(queues, tuple(dropped))


def _accepted(
    bank: RecordStore, space: VectorIndex, proposal: Proposal, settings: AllmemSettings
) -> Item | Dropped:
    if not {"split": settings.split, "merge": settings.merge, "update": settings.update}[proposal.op]:
        return Dropped(proposal, "NORM_FILTER", "OFF")
    if not settings.confidence <= proposal.confidence <= 1:  # nor what is no number
        return Dropped(proposal, "LOW_CONF")
    known = [name for name in proposal.ids if name in bank and name in proposal.context.shown]
    ids = tuple(known) if proposal.op == "update" else tuple(sorted(set(known), key=number_of))
    item = Item(proposal, ids)
    missing = len(known) < len(proposal.ids)
    if not ids or (missing and proposal.op == "update"):
        return Dropped(proposal, "NORM_FILTER", "MISSING_ID" if missing else "ARITY_FAIL")
    if not visible(bank, item):
        return Dropped(proposal, "NORM_FILTER", "VISIBILITY_FAIL")
    if not _fits(item, settings.merge_max):
        return Dropped(proposal, "NORM_FILTER", "MISSING_ID" if missing else "ARITY_FAIL")
    if item.op == "update" and not _newer(bank, *ids):
        return Dropped(proposal, "NORM_FILTER", "ORDER_FAIL")
    if not coherent(space, item, settings):
        return Dropped(proposal, "COH_FAIL", f"{space.coherence(ids):.6f}")
    return item


def visible(bank: RecordStore, item: Item) -> bool:
    """Whether the units are on the surface that must be: all, or the current one of an update."""
    return all(name in bank.visible for name in (item.ids[:1] if item.op == "update" else item.ids))


def coherent(space: VectorIndex, item: Item, settings: AllmemSettings) -> bool:
    """Whether the members of a merge are near to each other, pair by pair (Eq. 29)."""
    return item.op != "merge" or space.coherence(item.ids) >= settings.coherence


def _fits(item: Item, merge_max: int) -> bool:
    if item.op == "merge":
        return 2 <= len(item.ids) <= merge_max
    return len(item.ids) == 1 if item.op == "split" else len(set(item.ids)) == 2


def _newer(bank: RecordStore, current: str, superseded: str) -> bool:
    """The recency rule: later time, then higher number; of one turn's pieces the later."""
    new, old = bank.records[current], bank.records[superseded]
    return (new.age, new.order) > (old.age, old.order)


def _once(items: Sequence[Item]) -> tuple[list[Item], list[Dropped]]:
    """Of items with the same target the one of highest confidence, or the first of these."""
    best: dict[tuple[str, ...], Item] = {}
    for item in items:
        first = best.get(item.ids)
        if first is None or item.proposal.confidence > first.proposal.confidence:
            best[item.ids] = item
    twice = [item for item in items if item is not best[item.ids]]
    return list(best.values()), [Dropped(item.proposal, "NORM_FILTER", "DUPLICATE") for item in twice]


def _apart(items: Sequence[Item]) -> tuple[list[Item], list[Dropped]]:
    """Merges without a unit in common: the larger set, then the surer, then the first by ids."""
    kept: list[Item] = []
    taken: set[str] = set()
    dropped = []
    for item in sorted(items, key=lambda item: (-len(item.ids), -item.proposal.confidence, item.order)):
        if taken.isdisjoint(item.ids):
            kept.append(item)
            taken.update(item.ids)
        else:
            dropped.append(Dropped(item.proposal, "NORM_FILTER", "OVERLAP"))
    return kept, dropped
