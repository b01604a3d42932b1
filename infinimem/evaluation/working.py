"""The work of a run: units of one method and one case, and what is kept of each question."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from infinimem.errors import ModelError
from infinimem.evaluation.book import Book
from infinimem.evaluation.judge import grades, judge
from infinimem.evaluation.methods.answering import Means
from infinimem.evaluation.methods.library import Making
from infinimem.evaluation.methods.registry import method
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Benchmark, Case, Found, Method, Question, Result
from infinimem.evaluation.request import Request

KEPT = 50
"""Pieces of a ranking whose text is written down; what stands behind them is only scored."""


class Working:
    """A run under way.

    Args:
        request: what is asked for.
        benchmark: the data set.
        specs: the methods.
        means: what they work with.
        book: what is done so far.
        advance: told of each step that is done.
    """

    def __init__(
        self,
        request: Request,
        benchmark: Benchmark,
        specs: Sequence[Spec],
        means: Means,
        book: Book,
        advance: Callable[[], None],
    ) -> None:
        self.request = request
        self.benchmark = benchmark
        self.means = means
        self.book = book
        self.advance = advance
        self.failed = 0
        self.making = Making(means)
        self._specs = specs
        self._lock = threading.Lock()

    def units(self) -> Iterator[_Unit]:
        """The methods of each case in turn, those of them that have questions left."""
        for case in self.benchmark.cases(self.request.data, self.request.limit):
            units = []
            for spec in self._specs:
                left = tuple(item for item in case.questions if not self.book.has(spec, case.name, item.id))
                if left:
                    units.append(_Unit(self, spec, case, left))
            shared = _Shared(self, case, len(units))
            for unit in units:
                unit.shared = shared
            yield from units

    def fail(self, spec: Spec, case: Case, question: Question | None, error: Exception) -> None:
        """Note what failed by itself; a model that is gone fails everything, and is raised."""
        if isinstance(error, ModelError):
            raise error
        self.book.fail(spec, case.name, question.id if question else None, error)
        with self._lock:
            self.failed += 1

    def remove(self, case: Case) -> None:
        """Delete the libraries of a case."""
        if not self.request.keep:
            for spec in self._specs:
                if spec.way is not None:
                    self.making.remove(spec, case)


class _Shared:
    """A case whose methods are at work: when the last is done, its libraries can go."""

    def __init__(self, working: Working, case: Case, left: int) -> None:
        self._working = working
        self._case = case
        self._left = left
        self._lock = threading.Lock()
        self.failed = False

    def close(self) -> None:
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last and not self.failed:
            self._working.remove(self._case)


class _Unit:
    """A method and a case (workers.py: Unit)."""

    shared: _Shared

    def __init__(self, working: Working, spec: Spec, case: Case, left: Sequence[Question]) -> None:
        self._working = working
        self._spec = spec
        self._case = case
        self._left = left

    def open(self) -> Sequence[Callable[[], None]]:
        working = self._working
        chosen = method(self._spec, working.means, working.making)
        try:
            ingested = chosen.ingest(self._case)
        except Exception as error:
            self.shared.failed = True
            working.fail(self._spec, self._case, None, error)
            return ()
        working.book.add(self._spec, ingested)
        working.advance()
        return [self._task(chosen, question) for question in self._left]

    def close(self) -> None:
        self.shared.close()

    def _task(self, chosen: Method, question: Question) -> Callable[[], None]:
        def task() -> None:
            try:
                with self._working.means.spending.question():
                    result = self._result(chosen, question)
            except Exception as error:
                self.shared.failed = True
                self._working.fail(self._spec, self._case, question, error)
                return
            self._working.book.add(self._spec, result)
            self._working.advance()

        return task

    def _result(self, chosen: Method, question: Question) -> Result:
        working, request = self._working, self._working.request
        began = time.perf_counter()
        with working.means.spending.account() as usage:
            if request.retrieval_only:
                drawn = chosen.retrieve(question, None)
            else:
                drawn = chosen.answer(question, request.budget)
        seconds = time.perf_counter() - began  # scoring is no part of it
        result = Result(
            method=self._spec.text,
            case=self._case.name,
            question=question.id,
            category=question.category,
            counted=question.counted,
            found=_kept(drawn.found, request.retrieval_only),
            answer=drawn.answer,
            scores=dict(working.benchmark.retrieval(self._case, question, drawn.found)),
            usage=dict(usage),
            seconds=round(seconds, 4),
            steps=drawn.steps,
            failed=drawn.failed,
        )
        if drawn.answer is None:
            return result
        answered = working.benchmark.answered(question, drawn.answer)
        if drawn.failed:  # what stands in for an answer may be right by chance
            zeros = dict.fromkeys((*answered, *grades(question)), 0.0)
            return replace(result, scores={**result.scores, **zeros})
        verdicts, judged = judge(working.means.judge, question, drawn.answer)
        return replace(result, scores={**result.scores, **answered, **judged}, verdicts=verdicts)


def _kept(found: Sequence[Found], retrieval_only: bool) -> tuple[Found, ...]:
    """What is written down of what was found: of a ranking its head, of evidence every size."""
    rest = () if retrieval_only else (replace(item, text="") for item in found[KEPT:])
    return (*found[:KEPT], *rest)
