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
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Proposal:
    """An edit that a model proposes, of units among those that it was `shown`.

    Ids are as it gave them, but for the word TARGET; once it is routed they are known, each once,
    ascending but for an update's: first the current, then the superseded one.
    """

    op: Op
    ids: tuple[str, ...]
    confidence: float
    reason: str
    shown: frozenset[str]

    @property
    def order(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(number_of, self.ids))


@dataclass(frozen=True)
class Done:
    """What became of a proposal: applied, dropped (`code`), or declined by the model."""

    proposal: Proposal
    code: str = ""
    sub: str = ""
    applied: bool = False


class Wording:
    """Compares some texts, each word by how few of them hold it: a name that most hold tells nothing."""

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
    """Return the units that wait and are worth a look, with their surroundings, of what is still there.

    Of all units that wait or that one of them was near to, a unit's anchors are the older ones most like
    it, by words and vectors. Where none is, only a long text is looked at. With `likeness` 0 all are
    looked at, beside what they were near to when they came, as in the paper.
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
) -> list[list[Proposal] | str]:
    """Ask about each context: its proposals, or the code of what cannot be read or goes on and on."""

    def ask(context: Context) -> list[Proposal] | str:
        told = {
            "target": shown_record(bank, context.target, TARGET),
            "anchors": [shown_descriptor(bank, name) for name in context.anchors],
            "confidence": str(settings.confidence),
        }
        reply = llm.complete(tasks.DIAGNOSE, told)
        if reply.data is None:
            return unreadable(reply)[0]
        if any(len(reply.data[f"{op}_tasks"]) > MOST for op in OPS):
            return "SCHEMA_FAIL"
        return list(_proposals(context, reply.data))

    return in_order(ask, looked_at, settings.workers)


def _proposals(context: Context, data: Mapping[str, Any]) -> Iterator[Proposal]:
    """In the order of the operators, then of the reply."""
    shown = frozenset((context.target, *context.anchors))
    named: list[tuple[Op, Sequence[str], Mapping[str, Any]]] = [
        *(("split", (row["node_id"],), row) for row in data["split_tasks"]),
        *(("merge", row["node_ids"], row) for row in data["merge_tasks"]),
        *(("update", (row["current_id"], row["superseded_id"]), row) for row in data["update_tasks"]),
    ]
    for op, ids, row in named:
        names = (name.strip() for name in ids)
        resolved = tuple(context.target if name == TARGET else name for name in names)
        yield Proposal(op, resolved, row["confidence"], row["reason"], shown)


def unreadable(reply: Reply) -> tuple[str, str]:
    """Return reason code and detail of a reply without data; one that is empty or cut off holds no JSON."""
    code = "SCHEMA_FAIL" if reply.failure == "SCHEMA_FAIL" else "JSON_PARSE_FAIL"
    return code, f"{reply.failure}: {reply.detail}"


# ── routing ──────────────────────────────────────────────────────────────────────────────────────


def route(
    bank: RecordStore, space: VectorIndex, proposals: Iterable[Proposal], settings: AllmemSettings
) -> tuple[list[Proposal], list[Done]]:
    """Gate, normalise and order proposals, given in the order of their records; and those that are dropped.

    Of proposals with the same target the surest stays, or the first of these; of merges with a unit in common
    the one of the larger set, then the surer, then the first by ids.
    """
    dropped: list[Done] = []
    best: dict[tuple[Op, tuple[str, ...]], Proposal] = {}
    for proposal in proposals:
        done = _gated(bank, space, proposal, settings)
        one = done.proposal
        first = best.setdefault((one.op, one.ids), one) if not done.code else one
        if done.code:
            dropped.append(done)
        elif one.confidence > first.confidence:
            best[one.op, one.ids] = one
            dropped.append(Done(first, "NORM_FILTER", "DUPLICATE"))
        elif one is not first:
            dropped.append(Done(one, "NORM_FILTER", "DUPLICATE"))
    kept: list[Proposal] = []
    taken: set[str] = set()
    for one in sorted(best.values(), key=lambda one: (-len(one.ids), -one.confidence, one.order)):
        if one.op == "merge" and not taken.isdisjoint(one.ids):
            dropped.append(Done(one, "NORM_FILTER", "OVERLAP"))
            continue
        kept.append(one)
        taken.update(one.ids if one.op == "merge" else ())
    return sorted(kept, key=lambda one: (OPS.index(one.op), one.order)), dropped


def _gated(bank: RecordStore, space: VectorIndex, proposal: Proposal, settings: AllmemSettings) -> Done:
    """The proposal in normal form, or why it is dropped."""
    op = proposal.op
    if not {"split": settings.split, "merge": settings.merge, "update": settings.update}[op]:
        return Done(proposal, "NORM_FILTER", "OFF")
    if not settings.confidence <= proposal.confidence <= 1:  # nor what is no number
        return Done(proposal, "LOW_CONF")
    known = [name for name in proposal.ids if name in bank and name in proposal.shown]
    ids = tuple(known) if op == "update" else tuple(sorted(set(known), key=number_of))
    missing = len(known) < len(proposal.ids)
    one = replace(proposal, ids=ids)
    if not ids or (missing and op == "update"):
        return Done(proposal, "NORM_FILTER", "MISSING_ID" if missing else "ARITY_FAIL")
    if not visible(bank, one):
        return Done(proposal, "NORM_FILTER", "VISIBILITY_FAIL")
    least, most = {"split": (1, 1), "merge": (2, settings.merge_max), "update": (2, 2)}[op]
    if not least <= len(set(ids)) <= most:
        return Done(proposal, "NORM_FILTER", "MISSING_ID" if missing else "ARITY_FAIL")
    if op == "update":  # the recency rule: later time, then higher number; of one turn's pieces the later
        new, old = (bank.records[name] for name in ids)
        if (new.age, new.order) <= (old.age, old.order):
            return Done(proposal, "NORM_FILTER", "ORDER_FAIL")
    if not coherent(space, one, settings):
        return Done(proposal, "COH_FAIL", f"{space.coherence(ids):.6f}")
    return Done(one)


def visible(bank: RecordStore, proposal: Proposal) -> bool:
    """Whether the units are on the surface that must be: all, or the current one of an update."""
    names = proposal.ids[:1] if proposal.op == "update" else proposal.ids
    return all(name in bank.visible for name in names)


def coherent(space: VectorIndex, proposal: Proposal, settings: AllmemSettings) -> bool:
    """Whether the members of a merge are near to each other, pair by pair (Eq. 29)."""
    return proposal.op != "merge" or space.coherence(proposal.ids) >= settings.coherence
