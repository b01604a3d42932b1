"""Diagnosis: what each unit that waits might need, as the model sees it. It proposes and edits nothing.

Source: All-Mem, section 3.3 (parallel diagnosis), Eq. 5 and 6, Appendix C.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from infinimem.llm.base import LLM, Reply
from infinimem.llm.parallel import in_order
from infinimem.strategies.allmem import tasks
from infinimem.strategies.allmem.buffer import Buffered
from infinimem.strategies.records.prompt_views import shown_descriptor, shown_record
from infinimem.strategies.records.record_store import RecordStore

Op = Literal["split", "merge", "update"]
OPS: tuple[Op, ...] = ("split", "merge", "update")
"""The operators in the order in which they are executed."""
TARGET = "TARGET"
"""What the unit under diagnosis is called, for models mistype ids."""
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
    detail: str = ""

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


def contexts(bank: RecordStore, waiting: Sequence[Buffered], anchors: int) -> list[Context]:
    """The surroundings of each unit that waits, of what is still there.

    Args:
        anchors: neighbours that a model is shown at most.
    """
    return [
        Context(one.unit, tuple(name for name in one.near if name in bank and name != one.unit)[:anchors])
        for one in waiting
    ]


def diagnose(bank: RecordStore, looked_at: Sequence[Context], llm: LLM, workers: int) -> list[Diagnosis]:
    """Ask about each context; results stand in the order of the contexts.

    Raises:
        ModelUnavailable: the model does not answer.
    """

    def ask(context: Context) -> Diagnosis:
        target = shown_record(bank, context.target, TARGET)
        near = [shown_descriptor(bank.records[name]) for name in context.anchors]
        return read(context, llm.complete(tasks.DIAGNOSE, {"target": target, "anchors": near}))

    return in_order(ask, looked_at, workers)


def read(context: Context, reply: Reply) -> Diagnosis:
    """A reply, or the code of its failure; one that goes on and on is none."""
    if reply.data is None:
        return Diagnosis(context, None, *unreadable(reply))
    if any(len(reply.data[f"{op}_tasks"]) > MOST for op in OPS):
        return Diagnosis(context, None, "SCHEMA_FAIL", f"more than {MOST} tasks of a kind")
    return Diagnosis(context, reply.data)


def unreadable(reply: Reply) -> tuple[str, str]:
    """Reason code and detail of a reply without data; one that is empty or cut off holds no JSON."""
    code = "SCHEMA_FAIL" if reply.failure == "SCHEMA_FAIL" else "JSON_PARSE_FAIL"
    return code, f"{reply.failure}: {reply.detail}"
