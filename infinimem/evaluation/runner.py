"""A run: every method takes in every case and is asked its questions; what is done is written down at once.

It stops where a model is gone or its cap is spent, and goes on from there when it is started again. A case
or a question that fails by itself is noted and passed over.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import Any

from infinimem.errors import ModelError, ModelUnavailable, UsageError
from infinimem.evaluation.book import Book, demand_same, held
from infinimem.evaluation.estimate import Estimate, Models
from infinimem.evaluation.judge import grades, judge
from infinimem.evaluation.methods.answering import Means
from infinimem.evaluation.methods.embedding import Embedders
from infinimem.evaluation.methods.library import Making
from infinimem.evaluation.methods.registry import method
from infinimem.evaluation.methods.spec import Spec, parse_all
from infinimem.evaluation.model import Benchmark, Case, Found, Method, Question, Result
from infinimem.evaluation.spending import Metered, Spending
from infinimem.llm.base import LLM
from infinimem.llm.connect import OFFLINE
from infinimem.llm.parallel import in_order
from infinimem.llm.replies import Cached

_PACKAGES = ("infinimem", "numpy", "rank-bm25", "tantivy")

KEPT = 50
"""Pieces of a ranking whose text is written down; what stands behind them is only scored."""

Step = Callable[[int, int], None]
"""Told how much is done, of how much."""


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Args:
        data: the official file.
        methods: names with their settings.
        out: folder of the run.
        keeper: the model that keeps memories.
        answerer: the model that reads them and answers.
        judge: the model that grades.
        embedder: name of the run's; None for what each method takes by itself.
        corrections: file of label corrections, which the benchmark has read.
        limit: questions of each category, at most.
        budget: tokens of evidence of an answer.
        retrieval_only: nothing is answered or judged.
        jobs: threads.
        max_tokens: what this start of the run may spend.
        keep: leave the libraries that were made.
        run: number of the run; another one asks the models anew.
    """

    data: Path
    methods: Sequence[str]
    out: Path
    keeper: LLM
    answerer: LLM
    judge: LLM
    embedder: str | None = None
    corrections: Path | None = None
    limit: int | None = None
    budget: int = 4096
    retrieval_only: bool = False
    jobs: int = 1
    max_tokens: int | None = None
    keep: bool = False
    run: int = 1


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

            working = _Work(request, self._benchmark, self._specs, means, book, advance)
            try:
                working.run()
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


@dataclass
class _Work:
    """A run under way; `advance` is told of each step that is done."""

    request: Request
    benchmark: Benchmark
    specs: Sequence[Spec]
    means: Means
    book: Book
    advance: Callable[[], None]
    failed: int = 0

    def __post_init__(self) -> None:
        self._making = Making(self.means)
        self._lock = Lock()

    def run(self) -> None:
        """Work through the cases, so many at a time as there are threads.

        Raises:
            ModelError: a model is gone, or the cap is spent.
        """
        left, jobs = self._left(), self.request.jobs
        while some := list(islice(left, jobs)):  # each holds libraries
            work = partial(self._work, max(1, jobs // len(some)))
            in_order(work, some, jobs, lambda: self.means.spending.stop("the run was interrupted"))

    def _left(self) -> Iterator[tuple[Case, Sequence[tuple[Spec, Sequence[Question]]]]]:
        """Cases with the methods that have questions left."""
        for case in self.benchmark.cases(self.request.data, self.request.limit):
            rows = []
            for spec in self.specs:
                left = [item for item in case.questions if not self.book.has(spec, case.name, item.id)]
                rows += [(spec, left)] if left else []
            if rows:
                yield case, rows

    def _work(self, workers: int, of: tuple[Case, Sequence[tuple[Spec, Sequence[Question]]]]) -> None:
        case, rows = of
        opened = in_order(partial(self._open, case), [spec for spec, _ in rows], workers)
        asked = [
            (spec, chosen, question)
            for (spec, left), chosen in zip(rows, opened, strict=True)
            for question in (left if chosen else ())
        ]
        done = in_order(lambda one: self._ask(case, *one), asked, workers)
        if all(opened) and all(done) and not self.request.keep:
            for spec in self.specs:
                if spec.way is not None:
                    self._making.remove(spec, case)

    def _open(self, case: Case, spec: Spec) -> Method | None:
        """The method with the case taken in; None where that failed."""
        try:
            chosen = method(spec, self.means, self._making)
            self.book.add(spec, chosen.ingest(case))
        except Exception as error:
            self._fail(spec, case, None, error)
            return None
        self.advance()
        return chosen

    def _ask(self, case: Case, spec: Spec, chosen: Method | None, question: Question) -> bool:
        """Ask a question, and write down what became of it; False where that failed."""
        assert chosen is not None
        try:
            with self.means.spending.question():
                self.book.add(spec, self._result(case, spec, chosen, question))
        except Exception as error:
            self._fail(spec, case, question, error)
            return False
        self.advance()
        return True

    def _fail(self, spec: Spec, case: Case, question: Question | None, error: Exception) -> None:
        """Note what failed by itself; a model that is gone fails everything, and is raised."""
        if isinstance(error, ModelError):
            raise error
        self.book.fail(spec, case.name, question.id if question else None, error)
        with self._lock:
            self.failed += 1

    def _result(self, case: Case, spec: Spec, chosen: Method, question: Question) -> Result:
        began = time.perf_counter()
        with self.means.spending.account() as usage:
            if self.request.retrieval_only:
                drawn = chosen.retrieve(question, None)
            else:
                drawn = chosen.answer(question, self.request.budget)
        seconds = time.perf_counter() - began  # scoring is no part of it
        result = Result(
            method=spec.text,
            case=case.name,
            question=question.id,
            category=question.category,
            counted=question.counted,
            found=_kept(drawn.found, self.request.retrieval_only),
            answer=drawn.answer,
            scores=dict(self.benchmark.retrieval(case, question, drawn.found)),
            usage=dict(usage),
            seconds=round(seconds, 4),
            steps=drawn.steps,
            failed=drawn.failed,
        )
        if drawn.answer is None:
            return result
        answered = self.benchmark.answered(question, drawn.answer)
        if drawn.failed:  # what stands in for an answer may be right by chance
            zeros = dict.fromkeys((*answered, *grades(question)), 0.0)
            return replace(result, scores={**result.scores, **zeros})
        verdicts, judged = judge(self.means.judge, question, drawn.answer)
        return replace(result, scores={**result.scores, **answered, **judged}, verdicts=verdicts)


def _kept(found: Sequence[Found], retrieval_only: bool) -> tuple[Found, ...]:
    """What is written down of what was found: of a ranking its head, of evidence every size."""
    rest = () if retrieval_only else (replace(item, text="") for item in found[KEPT:])
    return (*found[:KEPT], *rest)
