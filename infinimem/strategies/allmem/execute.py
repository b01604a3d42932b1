"""Execution: accepted proposals one by one, splits, then merges, then updates; each whole or not at all.

    APPLICABLE_FAIL       MISSING_ID, TOUCHED_CONFLICT, VISIBILITY, COHERENCE: overtaken within this run
    JSON_PARSE_FAIL, SCHEMA_FAIL    the plan could not be read; it is not asked for again
    PLAN_VALIDATION_FAIL  what plans.py says, HEADER_FULL, or INVARIANT where an edit would break one

Source: All-Mem, Algorithm 1, Appendix C.2.1 (applicability) and C.3 (one plan, no retry).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from infinimem.llm.base import LLM, Reply
from infinimem.strategies.allmem import tasks
from infinimem.strategies.allmem.diagnose import OPS, unreadable
from infinimem.strategies.allmem.invariants import faults
from infinimem.strategies.allmem.operators import Editor, Edits
from infinimem.strategies.allmem.plans import Declined, Invalid, Part, merge_plan, split_plan, update_plan
from infinimem.strategies.allmem.route import Item, Routed, coherent, visible
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.records.codec import fits
from infinimem.strategies.records.descriptor import Descriptor
from infinimem.strategies.records.prompt_views import shown_descriptor, shown_record
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.rules import new_faults
from infinimem.strategies.vector_index import VectorIndex

Compiled = tuple[Part, ...] | Descriptor
"""What an operator is told to make."""


@dataclass(frozen=True)
class Done:
    """What became of an accepted proposal: applied, dropped (`code`), or declined by the model."""

    item: Item
    code: str = ""
    sub: str = ""
    applied: bool = False


class Executor:
    """Executes the queues of one run.

    Args:
        bank: where it begins.
        space: follows what is applied.
        settings: thresholds and caps.
        llm: plans.
    """

    def __init__(self, bank: RecordStore, space: VectorIndex, settings: AllmemSettings, llm: LLM) -> None:
        self.bank = bank.copy()
        """As it is after what was applied so far."""
        self._space = space
        self._settings = settings
        self._llm = llm
        self._touched: set[str] = set()

    def run(self, routed: Routed) -> list[Done]:
        """Execute all, in order.

        Raises:
            ModelUnavailable: the model does not answer; the bank that was given is as it was.
        """
        return [self._execute(item) for op in OPS for item in routed.queues[op]]

    def _execute(self, item: Item) -> Done:
        if sub := self._stale(item):
            return Done(item, "APPLICABLE_FAIL", sub)
        reply = self._ask(item)
        if reply.data is None:
            return Done(item, *unreadable(reply))
        plan = self._compiled(item, reply.data)
        if isinstance(plan, Declined):
            return Done(item)
        if isinstance(plan, Invalid):
            return Done(item, "PLAN_VALIDATION_FAIL", plan.sub)
        trial = self.bank.copy()
        edits = self._edit(trial, item, plan)
        changed = edits.redirected.union(edits.created, item.ids)
        if sub := _refused(self.bank, trial, changed, self._settings):
            self._space.sync(self.bank, changed)
            return Done(item, "PLAN_VALIDATION_FAIL", sub)
        self.bank = trial
        self._touched.update(item.ids, edits.created)
        return Done(item, applied=True)

    def _stale(self, item: Item) -> str:
        """Why a proposal does not apply any more; "" where it does."""
        if any(name not in self.bank for name in item.ids):
            return "MISSING_ID"
        if not self._touched.isdisjoint(item.ids):
            return "TOUCHED_CONFLICT"
        if not visible(self.bank, item):
            return "VISIBILITY"
        return "" if coherent(self._space, item, self._settings) else "COHERENCE"

    def _ask(self, item: Item) -> Reply:
        """One plan, asked for once (Appendix C.3)."""
        bank = self.bank
        if item.op == "split":
            unit = shown_record(bank, item.ids[0], whole=True)
            return self._llm.complete(tasks.SPLIT_UNIT, {"unit": unit, "reason": item.proposal.reason})
        if item.op == "merge":
            names = sorted(item.ids, key=lambda name: (bank.records[name].age, bank.records[name].order))
            return self._llm.complete(
                tasks.MERGE_UNITS, {"units": [shown_record(bank, name) for name in names]}
            )
        current, superseded = item.ids
        near = item.proposal.context.shown - set(item.ids)
        anchors = [shown_descriptor(bank, name) for name in sorted(near) if name in bank.visible]
        told = {
            "current": shown_record(bank, current),
            "superseded": shown_record(bank, superseded),
            "anchors": anchors,
        }
        return self._llm.complete(tasks.UPDATE_UNIT, told)

    def _compiled(self, item: Item, data: Mapping[str, Any]) -> Compiled | Declined | Invalid:
        if item.op == "split":
            return split_plan(self.bank, item.ids[0], data, self._settings.coverage)
        return merge_plan(data) if item.op == "merge" else update_plan(data)

    def _edit(self, bank: RecordStore, item: Item, plan: Compiled) -> Edits:
        editor, ids = Editor(bank, self._space, self._settings), item.ids
        if not isinstance(plan, Descriptor):
            return editor.split(ids[0], plan)
        return editor.merge(ids, plan) if item.op == "merge" else editor.update(ids[0], ids[1], plan)


def _refused(
    before: RecordStore, after: RecordStore, changed: frozenset[str], settings: AllmemSettings
) -> str:
    """Why an edit may not stand; "" where it may."""
    here = [name for name in changed if name in after]
    if not all(fits(after.records[name], after.links(name)) for name in here):
        return "HEADER_FULL"
    check = partial(faults, settings=settings)
    return "INVARIANT" if new_faults(before, after, check, changed) else ""
