"""What a run will take, roughly, before it takes it; and what its model calls take, held below a ceiling.

Threads share clients, so that a client's own count tells nothing of one question; here each thread keeps
the account of what it works on, and threads that it starts for it (llm/base.py) book there too.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeVar

from infinimem import tokens
from infinimem.embedders.base import Kind
from infinimem.errors import SpendingCapReached
from infinimem.estimate import answering, making, reading
from infinimem.evaluation.model import Case, Question, Spec
from infinimem.index.vectors import Matrix
from infinimem.llm import tasks
from infinimem.llm.base import LLM, OFFLINE, Reply, Task, Wrapper
from infinimem.model import Usage
from infinimem.spec import PROMPT, REPLY

EMBEDDING = "embedding"
K = TypeVar("K")


class Spending:
    """The purse of a run: once `ceiling` tokens are spent, in and out, nothing is begun."""

    def __init__(self, ceiling: int | None = None) -> None:
        self.total = Usage()
        self._ceiling = inf if ceiling is None else ceiling
        self._stopped = ""
        self._lock = threading.Lock()
        loose: dict[str, Usage] = {}
        self._account = ContextVar("account", default=loose)
        self._is_question = ContextVar("is_question", default=False)

    @contextmanager
    def question(self) -> Iterator[None]:
        """One question; it is not begun above the ceiling, but ended: half would be paid again."""
        self.demand()
        mark = self._is_question.set(True)
        try:
            yield
        finally:
            self._is_question.reset(mark)

    @contextmanager
    def account(self) -> Iterator[dict[str, Usage]]:
        """What this thread's calls take in the block, by task; an inner account adds to the outer one."""
        outer = self._account.get()
        inner: dict[str, Usage] = {}
        mark = self._account.set(inner)
        try:
            yield inner
        finally:
            self._account.reset(mark)
            with self._lock:
                for phase, usage in inner.items():
                    _book(outer, phase, usage)

    def stop(self, why: str) -> None:
        self._stopped = why

    def demand(self) -> None:
        """Raise SpendingCapReached where no further call may be made."""
        if self._stopped:
            raise SpendingCapReached(self._stopped)
        if self.total.tokens >= self._ceiling and not self._is_question.get():
            raise SpendingCapReached(f"the cap of {self._ceiling} tokens is spent")

    def add(self, phase: str, usage: Usage, paid: bool = True) -> None:
        """Book a call; one that is not paid takes nothing of the ceiling."""
        with self._lock:
            _book(self._account.get(), phase, usage)
            self.total += usage if paid else Usage()


def _book(account: dict[K, Usage], phase: K, usage: Usage) -> None:
    account[phase] = account.get(phase, Usage()) + usage


class Metered(Wrapper):
    """A client whose calls are booked, the offline rules' as a model's; these, and kept replies, are free."""

    def __init__(self, llm: LLM, spending: Spending) -> None:
        super().__init__(llm)
        self._spending = spending

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; SpendingCapReached if nothing was sent."""
        self._spending.demand()
        reply = self._llm.complete(task, variables)
        if self._llm.name != OFFLINE:
            self._spending.add(task.name, reply.usage, paid=not reply.kept)
            return reply
        prompt = tasks.render(task, variables)  # what a model would have been sent
        told = json.dumps(reply.data, ensure_ascii=False)
        used = Usage(1, tokens.count(prompt.system) + tokens.count(prompt.user), tokens.count(told))
        self._spending.add(task.name, used, paid=False)
        return replace(reply, usage=used)


class Booked:
    """An embedder whose calls are booked; it is asked by one thread at a time, so that each knows its own."""

    def __init__(self, embedder: Any, spending: Spending) -> None:
        self.name, self.semantic = embedder.name, embedder.semantic
        self._embedder, self._spending = embedder, spending
        self._lock, self._booked = threading.Lock(), Usage()

    @property
    def size(self) -> int:
        return int(self._embedder.size)  # a call for it is booked with the next texts

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Matrix:
        """See `Embedder.embed`; SpendingCapReached if nothing was sent."""
        self._spending.demand()
        with self._lock:
            try:
                vectors: Matrix = self._embedder.embed(texts, kind)
            finally:
                before, self._booked = self._booked, sum(self._embedder.usage.values(), Usage())
                self._spending.add(EMBEDDING, self._booked - before)
        return vectors


# ── before it is spent ──────────────────────────────────────────────────────────────────────────


@dataclass
class Estimate:
    """Sums up cases as they come, by method and phase: making, reading, answering, judging; no embedding.

    Args:
        paid: which of "keeper", "answerer" and "judge" take tokens.
        budget: tokens of evidence of an answer.
        questions: still to be asked, and `cases` still to be taken in, over all methods.
    """

    paid: Collection[str]
    budget: int
    retrieval_only: bool
    questions: int = 0
    cases: int = 0
    usage: dict[tuple[str, str], Usage] = field(default_factory=dict)

    def add(
        self,
        case: Case,
        left: Iterable[tuple[Spec, Sequence[Question]]],
        taken_in: Collection[tuple[str, str]],
    ) -> None:
        """Count the questions `left` of a case by method; those `taken_in` have their libraries."""
        size = sum(tokens.estimate(f"{turn.speaker or ''}: {turn.text}") for turn in case.turns)
        turns, made = len(case.turns), set[str]()
        for spec, questions in left:
            way = spec.way
            self.cases += 1
            self.questions += len(questions)
            is_new = (spec.text, case.name) not in taken_in
            if way and spec.draws and "keeper" in self.paid and is_new and spec.library not in made:
                made.add(spec.library)  # methods that are made alike share a library
                _book(self.usage, (spec.text, "making"), making(size, turns, spec.parsed, way.strategy))
            shown = {"full": size, "none": 0}.get(spec.name, min(size, self.budget))
            for question in questions:
                length = tokens.estimate(question.text)
                if way and "answerer" in self.paid:
                    _book(self.usage, (spec.text, "reading"), reading(size, way.answered_by, spec.parsed))
                if "answerer" in self.paid and not self.retrieval_only:
                    _book(self.usage, (spec.text, "answering"), answering(shown, length))
                if "judge" in self.paid and not self.retrieval_only and question.kind:
                    _book(self.usage, (spec.text, "judging"), _judging(question, length))

    @property
    def total(self) -> Usage:
        return sum(self.usage.values(), Usage())

    def __str__(self) -> str:
        total = self.total
        if not total.calls:
            return "no tokens: no model is asked"
        phases: Counter[str] = Counter()
        for (_, phase), usage in self.usage.items():
            phases[phase] += usage.tokens
        parts = ", ".join(f"{phase} {count:,}" for phase, count in phases.items())
        size = f"{total.tokens_in:,} tokens in and {total.tokens_out:,} out"
        return f"about {total.calls:,} calls, {size} ({parts})"


def _judging(question: Question, length: int) -> Usage:
    """Two rules are asked, or once for all items of a rubric, each of which has a verdict of its own."""
    if not question.rubric:
        return Usage(2, 2 * (PROMPT + length + 2 * REPLY), 2 * REPLY)
    items = sum(map(tokens.estimate, question.rubric))
    return Usage(1, PROMPT + length + items + REPLY, len(question.rubric) * REPLY)
