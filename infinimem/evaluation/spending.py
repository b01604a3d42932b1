"""What a run's model calls take: counted for whoever asks, and held below a ceiling.

Threads share clients, so that a client's own count tells nothing of one question; here each thread keeps
the account of what it works on, and threads that it starts for it (llm/parallel.py) book there too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from infinimem import tokens
from infinimem.errors import SpendingCapReached
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply, Task, Wrapper
from infinimem.llm.connect import OFFLINE
from infinimem.model import Usage

if TYPE_CHECKING:
    from infinimem.embedders.base import Embedder, Matrix

EMBEDDING = "embedding"
"""The phase under which an embedder's calls are booked."""


class Spending:
    """The purse of a run.

    Args:
        ceiling: tokens, in and out; once they are spent, nothing is begun. None for no ceiling.
    """

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
        """One question, which is not begun above the ceiling, but ended above it: half of it would be lost,
        and paid once more."""
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
        """Refuse every further call."""
        self._stopped = why

    def demand(self) -> None:
        """Raise where no further call may be made.

        Raises:
            SpendingCapReached: someone called `stop`, or the ceiling is reached.
        """
        if self._stopped:
            raise SpendingCapReached(self._stopped)
        spent = self.total.tokens_in + self.total.tokens_out
        if spent >= self._ceiling and not self._is_question.get():
            raise SpendingCapReached(f"the cap of {self._ceiling} tokens is spent")

    def add(self, phase: str, usage: Usage, paid: bool = True) -> None:
        """Book a call; one that is not paid takes nothing of the ceiling."""
        with self._lock:
            _book(self._account.get(), phase, usage)
            self.total += usage if paid else Usage()


def _book(account: dict[str, Usage], phase: str, usage: Usage) -> None:
    account[phase] = account.get(phase, Usage()) + usage


class Metered(Wrapper):
    """A client whose calls are booked; any number of threads may share it.

    Args:
        llm: answers. What it had kept takes nothing of the ceiling, nor do the offline rules, of which the
            prompt that a model would have been sent is booked, and their reply.
        spending: of the run.
    """

    def __init__(self, llm: LLM, spending: Spending) -> None:
        super().__init__(llm)
        self._spending = spending

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`.

        Raises:
            SpendingCapReached: nothing was sent.
        """
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
    """An embedder whose calls are booked; it is asked by one thread at a time, so that each knows its own.

    Args:
        embedder: makes the vectors, and counts in `usage` what they take.
        spending: of the run.
    """

    def __init__(self, embedder: Embedder, spending: Spending) -> None:
        self.name, self.semantic = embedder.name, embedder.semantic
        self._embedder: Any = embedder
        self._spending = spending
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        with self._booking():
            size: int = self._embedder.size
        return size

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`.

        Raises:
            SpendingCapReached: nothing was sent.
        """
        self._spending.demand()
        with self._booking():
            vectors: Matrix = self._embedder.embed(texts)
        return vectors

    @contextmanager
    def _booking(self) -> Iterator[None]:
        with self._lock:
            before = sum(self._embedder.usage.values(), Usage())
            try:
                yield
            finally:
                if (spent := sum(self._embedder.usage.values(), Usage()) - before).calls:
                    self._spending.add(EMBEDDING, spent)
