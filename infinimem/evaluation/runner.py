"""A run: every method takes in every case and is asked its questions; what is done is written down at once.

It stops where a model is gone or its cap is spent, and goes on from there when it is started again. A case
or a question that fails by itself is noted and passed over.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from infinimem.errors import ModelUnavailable, UsageError
from infinimem.evaluation.book import Book, demand_same, held
from infinimem.evaluation.estimate import Estimate, Models
from infinimem.evaluation.methods.answering import Means
from infinimem.evaluation.methods.embedding import Embedders
from infinimem.evaluation.methods.spec import parse_all
from infinimem.evaluation.model import Benchmark, Case
from infinimem.evaluation.request import Request
from infinimem.evaluation.spending import Metered, Spending
from infinimem.evaluation.workers import Workers
from infinimem.evaluation.working import Working
from infinimem.llm.base import LLM
from infinimem.llm.connect import OFFLINE
from infinimem.llm.replies import Cached

_PACKAGES = ("infinimem", "numpy", "rank-bm25", "tantivy")

Step = Callable[[int, int], None]
"""Told how much is done, of how much."""


@dataclass(frozen=True)
class Ended:
    """What became of a run.

    Args:
        done: questions answered, now and before, over all methods.
        failed: cases and questions that were passed over.
    """

    done: int
    failed: int


class Run:
    """A run that is ready to start, or to go on.

    Args:
        request: what is asked for.
        benchmark: the data set.

    Raises:
        UsageError: a method, an embedder or a number is wrong.
        ModelNotConfigured: an embedder's package or files are missing.
    """

    def __init__(self, request: Request, benchmark: Benchmark) -> None:
        if request.jobs < 1 or request.budget < 1:
            raise UsageError("--jobs and --budget count from 1")
        self._request = request
        self._benchmark = benchmark
        self._specs = parse_all(request.methods)
        self._spending = Spending(request.max_tokens)
        self._embedders = Embedders(request.embedder, self._spending)
        named = {spec.text: self._embedders.named(spec) for spec in self._specs}
        self._vectors = {text: name for text, name in named.items() if name is not None}

    def estimate(self) -> Estimate:
        """What is still to be done and what it will take; nothing is written.

        Raises:
            UsageError: the folder holds another run.
        """
        request = self._request
        demand_same(request.out, self.config())
        offline = (llm.name == OFFLINE for llm in (request.keeper, request.answerer, request.judge))
        models = Models(*(not each for each in offline))
        paid = frozenset(spec.text for spec in self._specs if self._embedders.is_paid(spec))
        found = Estimate(models, request.budget, request.retrieval_only, paid)
        book = Book(request.out, self._specs)
        for case in self._cases():
            rows = []
            for spec in self._specs:
                left = [item for item in case.questions if not book.has(spec, case.name, item.id)]
                if left:
                    rows.append((spec, left, not book.is_made(spec, case.name)))
            found.add(case, rows)
        return found

    def start(self, step: Step, total: int) -> Ended:
        """Do what is not done yet.

        Args:
            step: told how far it is.
            total: steps in all: questions and cases as `estimate` counts them.

        Raises:
            ModelUnavailable: a model is gone, or the cap is spent; what is done is kept.
            UsageError: the folder holds another run.
        """
        request, out, spending = self._request, self._request.out, self._spending
        with held(out, self.config()):
            book = Book(out, self._specs)
            book.open()
            models = (request.keeper, request.answerer, request.judge)
            keeper, answerer, judge = (self._client(llm, book.replies) for llm in models)
            means = Means(book.work, keeper, answerer, judge, self._embedders, spending)
            steps, turn = count(1), Lock()

            def advance() -> None:
                with turn:
                    step(next(steps), total)

            working = Working(request, self._benchmark, self._specs, means, book, advance)
            try:
                Workers(working.units(), request.jobs).run(lambda: spending.stop("the run was interrupted"))
            except ModelUnavailable as error:
                raise ModelUnavailable(
                    f"{str(error).rstrip('.')}; {book.done} questions are done and kept in {out}, the same "
                    "command goes on from there"
                ) from error
            if not request.keep and not working.failed:
                shutil.rmtree(book.work, ignore_errors=True)
            return Ended(book.done, working.failed)

    def config(self) -> dict[str, Any]:
        """What makes the run the run that it is."""
        request = self._request
        asks = not request.retrieval_only
        return {
            "benchmark": self._benchmark.name,
            "data": _file(request.data),
            "corrections": _file(request.corrections) if request.corrections else None,
            "methods": [spec.text for spec in self._specs],
            "limit": request.limit,
            "run": request.run if request.run > 1 else None,
            "retrieval_only": request.retrieval_only,
            "budget": request.budget if asks else None,
            "models": {
                "keeper": request.keeper.name,
                "answerer": request.answerer.name,
                "judge": request.judge.name if asks else None,
            },
            "embedders": self._vectors,
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in _PACKAGES},
            },
        }

    def _client(self, llm: LLM, replies: Path) -> LLM:
        """A client whose calls are booked, and whose replies are kept; the offline rules cost nothing."""
        is_free = llm.name == OFFLINE
        return Metered(llm if is_free else Cached(llm, replies, self._request.run), self._spending)

    def _cases(self) -> Iterator[Case]:
        return self._benchmark.cases(self._request.data, self._request.limit)


def _file(path: Path) -> dict[str, str]:
    """A file's name and digest; of a folder that of the files in it, by name."""
    if path.is_dir():
        files = sorted(found for found in path.rglob("*") if found.is_file())
        inside = [(str(found.relative_to(path)), _file(found)) for found in files]
        return {"file": path.name, "sha256": hashlib.sha256(repr(inside).encode()).hexdigest()}
    try:
        with path.open("rb") as file:
            return {"file": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; --data names the official file") from error
