"""All-Mem: a surface of units that is searched, an archive behind it that links lead to.

    observe   evidence -> describe -> units, linked and buffered
    tick      buffer -> diagnose -> route -> execute: split, merge, update

It proposes; the store disposes. Source: arXiv 2603.19595.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from infinimem import tokens
from infinimem.model import Finding, Located, Plan, Put
from infinimem.store.records import stem
from infinimem.store.view import Outcome, View
from infinimem.strategies.allmem.diagnose import OPS, contexts, diagnose, route
from infinimem.strategies.allmem.operators import Executor
from infinimem.strategies.allmem.read import UnitSearch
from infinimem.strategies.allmem.spec import SPEC, AllmemSettings
from infinimem.strategies.allmem.write import (
    BUFFER,
    RUN,
    Described,
    buffered,
    describe,
    faults,
    written,
)
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.records.asking import IN_VAIN
from infinimem.strategies.records.edits import settled
from infinimem.strategies.records.evidence import Records
from infinimem.strategies.records.record_store import RecordStore, puts
from infinimem.strategies.records.strategy import RecordStrategy, links
from infinimem.strategies.vector_index import VectorIndex

MOST = 500
"""Characters of what a note quotes of a model."""


class AllMem(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: AllmemSettings

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A unit for each turn, a plan for each run of turns of a session; consolidates where that is due."""
        most = self.own.buffer_max
        left, in_vain = deque(new), 0
        while left and in_vain < IN_VAIN:
            if self._full(view, stem(left[0].doc_id)):
                view = yield from self._consolidate(view)
            room = most - len(buffered(view)) if most else RUN
            run = [left.popleft()]
            while left and left[0].doc_id == run[0].doc_id and len(run) < min(RUN, room):
                run.append(left.popleft())
            described = describe(self.llm, view, run, self.own)
            found = yield from settled(view, partial(self._written, described))
            if found is None:
                return
            view, in_vain = found, in_vain + 1 if all(one.failure for one in described) else 0

    def _written(self, described: Sequence[Described], view: View) -> Plan | None:
        with self._writing.at(view) as (bank, space):
            return written(view, bank, space, described, self.own)

    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate because someone asked, or where the buffer is full; `observe` looks at sessions."""
        limit = self.own.buffer_max
        if event == "consolidate" or 0 < limit <= len(buffered(view)):
            yield from self._consolidate(view)

    def _consolidate(self, view: View) -> Generator[Plan, Outcome, View]:
        """One consolidation as one plan (Algorithm 1); where the model does not answer, the buffer stays."""
        with self._writing.at(view) as (bank, space):
            plan = self._consolidation(view, bank, space)
        if plan is None:
            return view
        outcome = yield plan  # refused, the buffer stays: the next run sees the library as it is then
        return outcome.view

    def _consolidation(self, view: View, bank: RecordStore, space: VectorIndex) -> Plan | None:
        waiting = buffered(view)
        if not waiting:
            return None
        looked_at = contexts(bank, space, waiting, self.own)
        diagnosed = diagnose(bank, looked_at, self.llm, self.own)
        proposals = [proposal for one in diagnosed if not isinstance(one, str) for proposal in one]
        routed, dropped = route(bank, space, proposals, self.own)
        executor = Executor(bank, space, self.own, self.llm)
        done = executor.run(routed)
        codes = Counter(one for one in diagnosed if isinstance(one, str))
        codes.update(one.sub if one.code == "NORM_FILTER" else one.code for one in dropped)
        codes.update(one.code or "declined" for one in done if not one.applied)
        proposed = Counter(proposal.op for proposal in proposals)
        applied = Counter(one.proposal.op for one in done if one.applied)
        counts = ", ".join(f"{op} {applied[op]} of {proposed[op]}" for op in OPS)
        left = ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
        summary = f"diagnosed {len(diagnosed)}; applied {counts}" + (f"; not applied: {left}" if left else "")
        notes = [summary]
        for one in (one for one in done if one.code):
            ids = ", ".join(one.proposal.ids)[:MOST]  # those that are none may be many and long
            why = " ".join(filter(None, (one.code, one.sub)))[:MOST]
            notes.append(f"{one.proposal.op} of {ids} was not applied: {why}")
        return Plan(
            op="consolidate", records=(*puts(bank, executor.bank), Put(BUFFER, None)), notes=tuple(notes)
        )

    def _full(self, view: View, session: str) -> bool:
        """Whether the buffer is to be consolidated before a turn of this session is written."""
        bank, waiting = view.derived(RecordStore.load), buffered(view)
        if 0 < self.own.buffer_max <= len(waiting):
            return True
        sessions = {bank.records[one.unit].session for one in waiting}
        begins = not bank.of_session(session)  # one of several that go on side by side does not begin anew
        return begins and 0 < self.own.every_sessions <= len(sessions)

    def estimate(self, view: View) -> int:
        """What a diagnosis of each unit that waits is shown: its evidence and its neighbours' descriptors."""
        with self._writing.at(view) as (bank, space):
            looked_at = contexts(bank, space, buffered(view), self.own)
            shown = [bank.text(one.target) for one in looked_at]
            shown += [bank.records[name].text for one in looked_at for name in (one.target, *one.anchors)]
            return sum(map(tokens.count, shown))

    def search(self, view: View, held: Records, query: str, budget: int) -> UnitSearch:
        """Turns by rank, or a block of units' evidence. Calls no model."""
        return UnitSearch(view, held, query, budget, self.own)

    def status(self, view: View) -> Mapping[str, Any]:
        """How large surface, archive and buffer are."""
        bank = view.derived(RecordStore.load)
        waiting = buffered(view)
        return {
            "units": len(bank),
            "visible": len(bank.visible),
            "archived": len(bank) - len(bank.visible),
            "visible_ratio": round(len(bank.visible) / len(bank), 4) if len(bank) else 1.0,
            "links": links(bank),
            "buffer": {
                "units": len(waiting),
                "sessions": len({bank.records[one.unit].session for one in waiting}),
                "threshold": self.own.every_sessions,
            },
        }

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """What does not hold (write.py)."""
        return faults(store, only, settings=self.own)
