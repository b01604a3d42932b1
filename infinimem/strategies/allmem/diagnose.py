"""Diagnosis and routing: what each unit that waits might need, and which of these proposals may be executed.

Nothing is edited here. A proposal that goes no further has one code:
    LOW_CONF      confidence below the threshold
    NORM_FILTER   OFF, MISSING_ID, VISIBILITY_FAIL, ARITY_FAIL, ORDER_FAIL (an update by what is older), or
                  DUPLICATE, OVERLAP (another proposal stands for it)
    COH_FAIL      a merge of units that are not near enough to each other

Source: All-Mem, section 3.3, Eq. 5, 6, 28 and 29, Appendix C.1 and C.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import log
from typing import Any, Literal

from infinimem import tokens
from infinimem.llm.base import LLM, Reply
from infinimem.llm.parallel import in_order
from infinimem.strategies.allmem import tasks
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.write import Buffered
from infinimem.strategies.records.record import number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.telling import shown_descriptor, shown_record
from infinimem.strategies.vector_index import DIGITS, VectorIndex
from infinimem.terms import query_terms

Op = Literal["split", "merge", "update"]
OPS: tuple[Op, ...] = ("split", "merge", "update")
"""The operators in the order in which they are executed."""
TARGET = "TARGET"
"""What the unit under diagnosis is called, for models mistype ids."""
LONG = 256
"""Tokens of a text that may be cut, though nothing is like it."""
MOST = 20
"""Tasks of a kind that one reply may propose; a unit has half as many neighbours."""


@dataclass(frozen=True)
class Context:
    """A unit under diagnosis, and the neighbours that the model is shown."""

    target: str
    anchors: tuple[str, ...]

    @property
    def shown(self) -> frozenset[str]:
        """All ids that a proposal may name: others were made up."""
        return frozenset((self.target, *self.anchors))


@dataclass(frozen=True)
class Proposal:
    """An edit that a model proposes; ids as it gave them, but for the word TARGET. An update's are first the
    current, then the superseded one."""

    op: Op
    ids: tuple[str, ...]
    confidence: float
    reason: str
    context: Context


@dataclass(frozen=True)
class Diagnosis:
    """A reply about one unit, or why it could not be read."""

    context: Context
    reply: Mapping[str, Any] | None
    code: str = ""

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """In the order of the operators, then of the reply."""
        data = self.reply or {}
        named: list[tuple[Op, tuple[str, ...], Mapping[str, Any]]] = [
            *(("split", (row["node_id"],), row) for row in data.get("split_tasks", ())),
            *(("merge", tuple(row["node_ids"]), row) for row in data.get("merge_tasks", ())),
            *(
                ("update", (row["current_id"], row["superseded_id"]), row)
                for row in data.get("update_tasks", ())
            ),
        ]
        return tuple(
            Proposal(op, tuple(map(self._resolved, ids)), row["confidence"], row["reason"], self.context)
            for op, ids, row in named
        )

    def _resolved(self, name: str) -> str:
        return self.context.target if name.strip() == TARGET else name.strip()


class Wording:
    """Compares some texts.

    Args:
        texts: by the names of their records.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._terms = {name: frozenset(query_terms(text)) for name, text in texts.items()}
        held = Counter(term for terms in self._terms.values() for term in terms)
        self._weights = {term: log(len(texts) / count) for term, count in held.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._terms

    def shared(self, one: str, other: str) -> float:
        """The share that they have in common of what the one that says less says; 0 to 1."""
        least = min(self._weight(self._terms[one]), self._weight(self._terms[other]))
        return self._weight(self._terms[one] & self._terms[other]) / least if least else 0.0

    def _weight(self, terms: Set[str]) -> float:
        return sum(self._weights[term] for term in sorted(terms))


def contexts(
    bank: RecordStore, space: VectorIndex, waiting: Sequence[Buffered], settings: AllmemSettings
) -> list[Context]:
    """The units that wait and are worth a look, with their surroundings, of what is still there.

    Of all units that wait or that one of them was near to, a unit's anchors are the older ones most like it,
    by the words and vectors of their descriptors together. Where none is, nothing can be merged or outdated,
    and only a long text is looked at. With `likeness` 0 all are looked at, beside what they were near to when
    they came, as in the paper.
    """
    most = settings.online_anchors
    near = {one.unit: [name for name in one.near if name in bank and name != one.unit] for one in waiting}
    if not settings.likeness:
        return [Context(name, tuple(anchors[:most])) for name, anchors in near.items()]
    told = {name for unit, anchors in near.items() for name in (unit, *anchors)}
    names = sorted((name for name in told & bank.visible if bank.records[name].group), key=number_of)
    names.sort(key=lambda name: bank.records[name].age)
    wording = Wording({name: bank.records[name].text for name in names})
    found = []
    for at, unit in enumerate(names):
        if unit not in near:
            continue
        cosines = zip(names[:at], space.cosines(space.row(unit), names[:at]), strict=True)
        alike = {name: round((cosine + wording.shared(unit, name)) / 2, DIGITS) for name, cosine in cosines}
        best = sorted(alike, key=lambda name: (-alike[name], number_of(name)))[:most]
        anchors = tuple(name for name in best if alike[name] >= settings.likeness)
        if anchors or tokens.exceeds(bank.text(unit), LONG):
            found.append(Context(unit, anchors))
    return found


def diagnose(
    bank: RecordStore, looked_at: Sequence[Context], llm: LLM, settings: AllmemSettings
) -> list[Diagnosis]:
    """Ask about each context; results stand in the order of the contexts.

    Raises:
        ModelUnavailable: the model does not answer.
    """

    def ask(context: Context) -> Diagnosis:
        told = {
            "target": shown_record(bank, context.target, TARGET),
            "anchors": [shown_descriptor(bank, name) for name in context.anchors],
            "confidence": str(settings.confidence),
        }
        return read(context, llm.complete(tasks.DIAGNOSE, told))

    return in_order(ask, looked_at, settings.workers)


def read(context: Context, reply: Reply) -> Diagnosis:
    """A reply, or the code of its failure; one that goes on and on is none."""
    if reply.data is None:
        return Diagnosis(context, None, unreadable(reply)[0])
    if any(len(reply.data[f"{op}_tasks"]) > MOST for op in OPS):
        return Diagnosis(context, None, "SCHEMA_FAIL")
    return Diagnosis(context, reply.data)


def unreadable(reply: Reply) -> tuple[str, str]:
    """Reason code and detail of a reply without data; one that is empty or cut off holds no JSON."""
    code = "SCHEMA_FAIL" if reply.failure == "SCHEMA_FAIL" else "JSON_PARSE_FAIL"
    return code, f"{reply.failure}: {reply.detail}"


# ── routing ──────────────────────────────────────────────────────────────────────────────────────


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
