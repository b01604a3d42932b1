"""Diagnosis: what each unit that waits might need, as the model sees it. It proposes and edits nothing.

Source: All-Mem, section 3.3 (parallel diagnosis), Eq. 5 and 6, Appendix C.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from infinimem import tokens
from infinimem.llm.base import LLM, Reply
from infinimem.llm.parallel import in_order
from infinimem.strategies.allmem import tasks
from infinimem.strategies.allmem.buffer import Buffered
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.records.prompt_views import shown_descriptor, shown_record
from infinimem.strategies.records.record import number_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.wording import Wording
from infinimem.strategies.vector_index import DIGITS, VectorIndex

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
