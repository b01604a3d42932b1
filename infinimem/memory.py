"""The facade: what applications, the command line and servers call.

    observe   what was said -> evidence -> strategy -> CURRENT -> due? -> topics
    ask       question -> strategy's reader -> evidence -> answer
    retrieve  question -> ranked evidence, no model called

It drives strategies (generators of plans) and holds no logic of its own beyond that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem import tokens
from infinimem.answer import answer
from infinimem.errors import LibraryError, ModelUnavailable, UsageError
from infinimem.llm.base import LLM, total
from infinimem.llm.capped import Capped
from infinimem.llm.connect import connect
from infinimem.model import CURRENT, Answer, Evidence, Finding, Located, Plan, Receipt, Turn, Usage
from infinimem.store.create import init
from infinimem.store.health.doctor import examine
from infinimem.store.health.repair import repair
from infinimem.store.library import Clock, Library, system_clock
from infinimem.store.outcome import Applied, Outcome, Rejected
from infinimem.store.view import View
from infinimem.strategies.base import Plans, Strategy
from infinimem.strategies.infini import Infini
from infinimem.tools import Toolbox

log = logging.getLogger("infinimem")

Progress = Callable[[int, int], None]
"""Called with the turns done and the turns to do."""


def open_memory(
    path: str | Path,
    *,
    model: str | LLM | None = None,
    strategy: str = "infini",
    create: bool = False,
    clock: Clock = system_clock,
) -> Memory:
    """Open a memory folder, or any folder of notes.

    Args:
        path: the folder.
        model: a model's name, "offline", or a client; None takes infinimem.toml or the environment, and
            "offline" where they name none.
        strategy: which system keeps the topics; "infini".
        create: make the folder a library if it is not one.
        clock: gives the time; injected by tests and reproducible runs.

    Raises:
        LibraryError: no such folder (and `create` is false).
        UsageError: no such strategy, or a setting is wrong.
    """
    if strategy != "infini":
        raise UsageError(f"no strategy is called {strategy!r}; there is: infini")
    library = init(Path(path)) if create else Library(Path(path))
    library.clock = clock
    llm = connect(model, library.settings.llm) if model is None or isinstance(model, str) else model
    return Memory(library, llm)


class Memory:
    """A library with the strategy that keeps it and the model that helps. Made by `open_memory`."""

    def __init__(self, library: Library, llm: LLM) -> None:
        self.library = library
        self.llm = Capped(llm)
        self.strategy: Strategy = Infini(self.llm, library.settings)
        self.tools = Toolbox(library.view)

    @property
    def view(self) -> View:
        """The library as it is now, read-only."""
        return self.library.view()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, turns: Iterable[Turn], progress: Progress | None = None) -> tuple[Located, ...]:
        """Record turns and draw entries from them, and from turns that are still pending.

        Args:
            turns: what was said, in order.
            progress: told how far it is.

        Returns:
            The new entries, where they stand in CURRENT (or already in a topic).

        Raises:
            UsageError: a turn is empty or its time is no time; nothing is recorded.
            NotALibrary: the folder was not made a library.
            ModelUnavailable: the turns are recorded, and drawn from at the next call.
        """
        self.library.record(tuple(turns))
        return self._extract(progress)

    def _extract(self, progress: Progress | None = None) -> tuple[Located, ...]:
        view = self.view
        pending = view.uncited()
        if not pending:
            return ()
        entries: list[Located] = []
        done: set[int] = set()

        def note(plan: Plan, outcome: Outcome) -> Outcome:
            nonlocal view
            view = outcome.view
            if isinstance(outcome, Applied):
                entries.extend(outcome.added)
                done.update(plan.empty, *(add.origin for add in plan.adds))
                if self._drive(self.strategy.tick(view, "due"), view):
                    self.library.stamp()
                    view = self.view
                outcome = replace(outcome, view=view)
            if progress:
                progress(len(done), len(pending))
            return outcome

        try:
            if self._drive(self.strategy.tick(view, "append"), view):
                view = self.view
            self._drive(self.strategy.observe(view, pending), view, note)
        except ModelUnavailable as error:
            raise ModelUnavailable(
                f"{error}; what was said is recorded and drawn from at the next call"
            ) from error
        return tuple(view.entry(place.entry.seq) or place for place in entries)

    def consolidate(self, max_tokens: int | None = None) -> Receipt | None:
        """Sort the buffer into topics now, due or not.

        Args:
            max_tokens: make no further call once so many tokens are spent; what was applied stays.

        Returns:
            The receipt of the consolidation (of the split or merge that followed, if only those happened);
            None where there was nothing to do.

        Raises:
            NotALibrary: the folder was not made a library.
            ModelUnavailable: the buffer, or what is left of it, stays as it is.
        """
        self.library.demand_initialised()
        with self.llm.cap(max_tokens):
            self._extract()
            self.library.stamp()
            view = self.view
            receipts = self._drive(self.strategy.tick(view, "consolidate"), view)
        return receipts[0] if receipts else None

    def preview(self) -> Mapping[str, tuple[bytes, bytes]]:
        """What `consolidate` would write first: bytes before and after, by document. Nothing is written."""
        plans = self.strategy.tick(self.view, "consolidate")
        try:
            plan = next(plans)
        except StopIteration:
            return {}
        finally:
            plans.close()
        return self.library.preview(plan, self.strategy.roots)

    def estimate(self) -> int:
        """Tokens that consolidating the buffer would send to a model, roughly: each line is read three
        times (grouped, routed, laid out) beside the summaries of the documents on offer and their bodies."""
        size = tokens.count(self.view.buffer.body)
        if not size:
            return 0
        rows = [row for row in self.view.catalog() if row.id.startswith(self.strategy.roots)]
        offered = rows[: self.library.settings.infini.planner_docs]
        return (
            3 * size + sum(tokens.count(row.summary) for row in offered) + sum(row.tokens for row in offered)
        )

    def _drive(
        self, plans: Plans, view: View, note: Callable[[Plan, Outcome], Outcome] | None = None
    ) -> list[Receipt]:
        """Carry out a strategy's plans one by one, telling it what became of each.

        Args:
            plans: of the strategy.
            view: what the first of them is made from.
            note: told of each outcome; gives it to the strategy, with a newer view if there is one.
        """
        receipts: list[Receipt] = []
        spent, began = total(self.llm.usage), self.library.clock()
        try:
            plan = next(plans)
            while True:
                outcome = self._apply(plan, view, total(self.llm.usage) - spent, began)
                spent, began = total(self.llm.usage), self.library.clock()
                if isinstance(outcome, Applied) and outcome.receipt:
                    receipts.append(outcome.receipt)
                else:  # no receipt holds them
                    reasons = outcome.reasons if isinstance(outcome, Rejected) else ()
                    for remark in (*plan.notes, *map(str, reasons)):
                        log.info("%s: %s", plan.op, remark)
                outcome = note(plan, outcome) if note else outcome
                view = outcome.view
                plan = plans.send(outcome)
        except StopIteration:
            return receipts

    def _apply(self, plan: Plan, base: View, usage: Usage, began: datetime) -> Outcome:
        return self.library.apply(
            plan,
            base=base,
            roots=self.strategy.roots,
            strategy=self.strategy.name,
            model=self.llm.name,
            usage=usage,
            began=began,
        )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def retrieve(
        self, query: str, budget: int | None = None, sources: Collection[str] | None = None
    ) -> Evidence:
        """Ranked evidence, no model called.

        Args:
            query: a question or keywords.
            budget: tokens of evidence; None takes `[reader] retrieve_budget`.
            sources: only entries of these sources ("user", "AI", "tool", "human").
        """
        limit = self.library.settings.reader.retrieve_budget if budget is None else budget
        return self.strategy.retrieve(self._seen(sources), query, limit)

    def ask(self, question: str, reader: str | None = None, sources: Collection[str] | None = None) -> Answer:
        """Collect evidence and answer from it, with citations.

        Args:
            question: in plain words.
            reader: "agent", "hybrid", "bm25" or "summary"; None takes `[reader] name`.
            sources: only evidence of these sources.

        Raises:
            UsageError: an empty question, or no such reader.
            ModelUnavailable: the model does not answer.
        """
        if not question.strip():
            raise UsageError("the question is empty; ask something")
        settings = self.library.settings.reader
        before = total(self.llm.usage)
        evidence = self.strategy.read(
            self._seen(sources), question, reader or settings.name, settings.evidence_budget
        )
        now = self.library.clock().date().isoformat()
        text, citations = answer(self.llm, question, evidence.items, now, settings.evidence_budget)
        return Answer(text, citations, evidence.trace, total(self.llm.usage) - before)

    def _seen(self, sources: Collection[str] | None) -> View:
        return self.view if sources is None else self.view.only(sources)

    # ── looking after ───────────────────────────────────────────────────────────────────────────

    def receipts(self) -> tuple[Receipt, ...]:
        """All receipts, oldest first."""
        return self.library.receipts()

    def status(self) -> dict[str, Any]:
        """Counts for people and scripts."""
        view = self.view
        infini = self.library.settings.infini
        receipts = self.receipts()
        last = receipts[-1] if receipts else None
        return {
            "library": str(self.library.root),
            "initialised": view.initialised,
            "documents": sum(doc_id != CURRENT for doc_id in view.ids()),
            "entries": sum(1 for _ in view.entries()),
            "archived": sum(1 for _ in view.entries("archive")),
            "evidence": sum(1 for _ in view.entries("evidence")),
            "pending": len(view.uncited()),
            "buffer": {
                "entries": len(view.buffer.entries),
                "tokens": tokens.count(view.buffer.body),
                "threshold": infini.current_threshold,
            },
            "last_receipt": {"id": last.id, "time": last.time, "op": last.op} if last else None,
            "receipts": len(receipts),
            "withheld": len(self.library.proposals()),
            "index": "in memory",
            "strategy": self.strategy.name,
            "model": self.llm.name,
        }

    def doctor(self) -> list[Finding]:
        """Check the folder and the strategy's own invariants; nothing is written."""
        found = examine(self.library)
        with suppress(LibraryError):  # a file that cannot be read is among the findings
            found += self.strategy.check(self.view)
        return found

    def repair(self) -> list[Finding]:
        """Do what the `fix` of findings says, and nothing that could lose a word.

        Returns:
            The findings that this settled.

        Raises:
            LibraryError: the disk refused, or the library is busy.
        """
        return repair(self.library)
