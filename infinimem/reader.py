"""Questions to a library.

In: a question and a token budget. Out: evidence, or an answer with citations. Promise: nothing is
written, and all evidence comes from one snapshot, of now or of an earlier moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from time import perf_counter
from typing import TYPE_CHECKING

from infinimem.errors import UsageError
from infinimem.llm.base import AGENT
from infinimem.llm.replies import Cached
from infinimem.model import Answer, Evidence
from infinimem.store.library import Clock
from infinimem.store.view import View, only, only_project
from infinimem.tools import Toolbox

if TYPE_CHECKING:
    from infinimem.strategies.base import Strategy


@dataclass(frozen=True)
class Compared:
    """What one strategy makes of a question: the answer, all evidence shown for it, and milliseconds."""

    strategy: str
    reader: str
    answer: Answer
    evidence: Evidence
    ms: float


class Reader:
    """Questions to a library as it is at each call, or as it stood at one moment (`Memory.at`)."""

    def __init__(
        self,
        source: Callable[[], View],
        llm: Cached,
        make: Callable[[], Strategy],
        clock: Clock,
        spend: Callable[[int | None], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.llm = llm
        self.tools = Toolbox(lambda: source().for_models)
        self._source, self._make, self._clock, self._spend = source, make, clock, spend

    def _spending(self, max_tokens: int | None = None) -> AbstractContextManager[None]:
        return (self._spend or self.llm.cap)(max_tokens)

    @cached_property
    def strategy(self) -> Strategy:
        """The system that keeps the library; made when first asked for, since searching needs none."""
        return self._make()

    @property
    def view(self) -> View:
        """The library, read-only, with what awaits approval."""
        return self._source()

    @property
    def by_agent(self) -> bool:
        """Whether whoever works with the library is its model, and answers tasks."""
        return self.llm.name == AGENT

    def retrieve(
        self,
        query: str,
        budget: int | None = None,
        sources: Collection[str] | None = None,
        arc: bool = False,
    ) -> Evidence:
        """Return ranked evidence for a question or keywords, of `sources` ("user", "AI", "tool", "human", or
        names of speakers) alone if given; no model is called. With `arc` it is a course: what was said about
        it in all sessions, in order of time. The budget is tokens; None takes `[reader] retrieve_budget`, of
        a course `evidence_budget`."""
        own = self.view.settings.reader
        if arc:
            from infinimem.strategies.readers import pipeline

            return pipeline.arc(self._seen(sources), query, own.evidence_budget if budget is None else budget)
        limit = own.retrieve_budget if budget is None else budget
        return self.strategy.retrieve(self._seen(sources), query, limit)

    def read(
        self,
        question: str,
        reader: str | None = None,
        budget: int | None = None,
        sources: Collection[str] | None = None,
    ) -> Evidence:
        """Return evidence for an answer, as `ask` begins with it; may call the model, no agent. With the
        agentic reader the model that answers may search for more, unless `[reader] agent` is "paper". The
        budget is tokens; None takes `[reader] evidence_budget`; all else as `ask`."""
        return self._begin(self._seen(sources), question, reader, budget)

    def ask(
        self,
        question: str,
        reader: str | None = None,
        sources: Collection[str] | None = None,
        max_tokens: int | None = None,
        now: str | None = None,
    ) -> Answer:
        """Collect evidence, of `sources` alone if given, and answer from it, with citations. With the model
        "agent" the answer is the evidence itself, for the agent answers.

        `reader` is one of the strategy's, None that of `[reader] name`; `now` the day of the question, ISO
        8601, None that of the clock. Once `max_tokens` are spent no further call is made. UsageError for an
        empty question, or no such reader; ModelUnavailable.
        """
        with self._spending(max_tokens):
            return self._ask(question, reader, sources, now)[0]

    def _ask(
        self, question: str, reader: str | None, sources: Collection[str] | None, now: str | None
    ) -> tuple[Answer, Evidence]:
        """Return an answer, and all the evidence that was shown for it. Called where spending is logged: no
        reply is kept that a `forget` meanwhile concerns."""
        from infinimem.answer import answer, shown
        from infinimem.strategies.readers.pipeline import search

        before, day = self.llm.spent, now or self._clock().date().isoformat()
        view = self._seen(sources)
        evidence, budget = self._begin(view, question, reader), view.settings.reader.evidence_budget
        if self.by_agent:
            made = shown(question, evidence, budget)
        else:
            more = search(view, question, self.chosen(reader))
            made = answer(self.llm, question, evidence, day, budget, more)
        return Answer(made.text, made.citations, made.evidence.trace, self.llm.spent - before), made.evidence

    def _compared(self, question: str, now: str | None = None) -> Compared:
        """Ask by the reader of `[reader] name` if the strategy has it, else by its own."""
        chosen = self.chosen()
        reader = chosen if chosen in self.strategy.readers else self.strategy.readers[0]
        self.retrieve(question)  # what the first question loads and indexes is no part of its time
        began = perf_counter()
        answer, evidence = self._ask(question, reader, None, now)
        ms = round(1000 * (perf_counter() - began), 1)
        return Compared(self.view.spec.name, reader, answer, evidence, ms)

    def chosen(self, name: str | None = None) -> str:
        """Return the reader that a name means; None for that of `[reader] name`."""
        chosen = name or self.view.settings.reader.name
        return self.strategy.readers[0] if chosen == "auto" else chosen

    def within(self, project: str) -> Reader:
        """Return the same with nothing in it but what was said in a project: the path of a folder, or its
        name; what was said below it counts too."""
        narrowed = lru_cache(maxsize=1)(lambda view: only_project(view, project))
        return self._over(lambda: narrowed(self._source()))

    def _over(self, source: Callable[[], View]) -> Reader:
        return Reader(source, self.llm, lambda: self.strategy, self._clock, self._spending)

    def _begin(self, view: View, question: str, reader: str | None, budget: int | None = None) -> Evidence:
        if not question.strip():
            raise UsageError("the question is empty; ask something")
        limit = view.settings.reader.evidence_budget if budget is None else budget
        if self.by_agent:
            return self.strategy.retrieve(view, question, limit)
        return self.strategy.read(view, question, self.chosen(reader), limit)

    def _seen(self, sources: Collection[str] | None) -> View:
        view = self.view.for_models
        return view if sources is None else only(view, sources)
