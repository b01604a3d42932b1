"""A run: every method takes in every case and is asked its questions; what is done is written down at once.

It stops where a model is gone or its cap is spent, and goes on from there when it is started again. A case
or a question that fails by itself is noted and passed over.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import Any

from infinimem.errors import ModelError, ModelUnavailable, UsageError
from infinimem.evaluation.database import REPLIES, Database, opened
from infinimem.evaluation.judge import grades, judge
from infinimem.evaluation.methods import Embedders, Making, Means, method
from infinimem.evaluation.model import Benchmark, Case, Method, Question, Result
from infinimem.evaluation.spec import Spec, parse_all
from infinimem.evaluation.spending import Booked, Estimate, Metered, Spending
from infinimem.llm.base import LLM, in_order
from infinimem.llm.connect import OFFLINE
from infinimem.llm.replies import Cached

_PACKAGES = ("infinimem", "numpy", "rank-bm25", "tantivy")
_KEPT = 50
"""Pieces of a ranking whose text is written down; what stands behind them is only scored."""
_WORK = "work"
"""Where libraries are made, in the run's folder."""

_Left = tuple[Case, Sequence[tuple[Spec, Sequence[Question]]]]
"""A case with the methods that have questions left."""
Step = Callable[[int, int], None]
"""Told how much is done, of how much."""


@dataclass(frozen=True)
class Request:
    """What is asked for, as `infinimem bench` takes it (docs/CLI.md). `max_tokens` caps this start of the
    run; `run` is its number: another one asks the models anew."""

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
    """Questions that are done, now and before; cases and questions that were passed over."""

    done: int
    failed: int


class Run:
    """A run that is ready to start, or to go on. UsageError if a method or an embedder is wrong,
    ModelNotConfigured if an embedder's package or files are missing."""

    def __init__(self, request: Request, benchmark: Benchmark) -> None:
        self._request = request
        self._benchmark = benchmark
        self._lock = Lock()
        self._specs = parse_all(request.methods)
        self._spending = Spending(request.max_tokens)
        self._embedders = Embedders(request.embedder, self._spending)
        found = {spec.text: self._embedders.of(spec) for spec in self._specs}
        self._vectors = {text: embedder for text, embedder in found.items() if embedder is not None}

    def estimate(self) -> Estimate:
        """Return what is still to be done and what it will take; UsageError in another run's folder."""
        request = self._request
        models = {"keeper": request.keeper, "answerer": request.answerer, "judge": request.judge}
        asked = [name for name, llm in models.items() if llm.name != OFFLINE]
        embeds = [text for text, embedder in self._vectors.items() if isinstance(embedder, Booked)]
        found = Estimate(asked, request.budget, request.retrieval_only, embeds)
        with opened(request.out, self.config()) as rows:
            for case, left in self._left(rows):
                found.add(case, left, rows.made)
        return found

    def start(self, step: Step, total: int) -> Ended:
        """Do what is not done yet; `step` is told how far it is, of `total` questions and cases.

        ModelUnavailable if a model is gone, or the cap is spent; what is done is kept.
        """
        request, out = self._request, self._request.out
        with opened(out, self.config(), write=True) as rows:
            (out / REPLIES).mkdir(mode=0o700, exist_ok=True)
            models = (request.keeper, request.answerer, request.judge)
            keeper, answerer, judge = map(self._client, models)
            means = Means(out / _WORK, keeper, answerer, judge, self._embedders, self._spending)
            steps, self._failed = count(1), 0
            self._rows, self._means, self._making = rows, means, Making(means)
            self._step: Callable[[], None] = lambda: step(next(steps), total)
            try:
                left = self._left(rows)
                while some := list(islice(left, request.jobs)):  # each holds libraries
                    do = partial(self._do, max(1, request.jobs // len(some)))
                    stop = partial(self._spending.stop, "the run was interrupted")
                    in_order(do, some, request.jobs, stop)
            except ModelUnavailable as error:
                raise ModelUnavailable(
                    f"{str(error).rstrip('.')}; {len(rows.asked)} questions are done and kept in {out}, the "
                    "same command goes on from there"
                ) from error
            if not request.keep and not self._failed:
                shutil.rmtree(means.work, ignore_errors=True)
            return Ended(len(rows.asked), self._failed)

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
            "embedders": {text: embedder.name for text, embedder in self._vectors.items()},
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in _PACKAGES},
            },
        }

    def _client(self, llm: LLM) -> LLM:
        """A client whose calls are booked, and whose replies are kept; the offline rules cost nothing."""
        is_free = llm.name == OFFLINE
        kept = llm if is_free else Cached(llm, self._request.out / REPLIES, self._request.run)
        return Metered(kept, self._spending)

    def _left(self, rows: Database) -> Iterator[_Left]:
        for case in self._benchmark.cases(self._request.data, self._request.limit):
            left = [
                (spec, asked)
                for spec in self._specs
                if (asked := [it for it in case.questions if (spec.text, case.name, it.id) not in rows.asked])
            ]
            if left:
                yield case, left

    def _do(self, workers: int, of: _Left) -> None:
        case, left = of
        opened = in_order(lambda one: self._take_in(one[0], case), left, workers)
        asked = [
            (spec, chosen, question)
            for (spec, questions), chosen in zip(left, opened, strict=True)
            if chosen is not None
            for question in questions
        ]
        done = in_order(lambda one: self._ask(case, *one), asked, workers)
        if all(opened) and all(done) and not self._request.keep:
            for spec, _ in left:
                if spec.way is not None:
                    self._making.remove(spec, case)

    def _take_in(self, spec: Spec, case: Case) -> Method | None:
        with self._noted(spec, case):
            chosen = method(spec, self._means, self._making)
            self._rows.add(chosen.ingest(case))
            return chosen
        return None

    def _ask(self, case: Case, spec: Spec, chosen: Method, question: Question) -> bool:
        with self._noted(spec, case, question.id), self._means.spending.question():
            self._rows.add(self._result(case, spec, chosen, question))
            return True
        return False

    @contextmanager
    def _noted(self, spec: Spec, case: Case, question: str | None = None) -> Iterator[None]:
        """Tell of a step that is done, and note one that failed by itself; a model that is gone raises."""
        try:
            yield
            with self._lock:
                self._step()
        except ModelError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            row = {"method": spec.text, "case": case.name, "question": question, "error": why}
            with self._lock, (self._request.out / "errors.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                self._failed += 1

    def _result(self, case: Case, spec: Spec, chosen: Method, question: Question) -> Result:
        began = time.perf_counter()
        with self._means.spending.account() as usage:
            asks = not self._request.retrieval_only
            drawn = chosen.answer(question, self._request.budget) if asks else chosen.retrieve(question)
        seconds = round(time.perf_counter() - began, 4)  # scoring is no part of it
        scores = dict(self._benchmark.retrieval(case, question, drawn.found))
        verdicts: dict[str, Any] = {}
        if drawn.answer is not None:
            answered = self._benchmark.answered(question, drawn.answer)
            if drawn.failed:  # what stands in for an answer may be right by chance
                judged = dict.fromkeys((*answered, *grades(question)), 0.0)
            else:
                verdicts, judged = judge(self._means.judge, question, drawn.answer)
            scores |= {**answered, **judged}
        # Of a ranking its head is written down, of evidence every size.
        rest = drawn.found[_KEPT:] if asks else ()
        kept = (*drawn.found[:_KEPT], *(replace(item, text="") for item in rest))
        drawn = replace(drawn, found=kept)
        return Result(spec.text, case.name, question, drawn, scores, verdicts, dict(usage), seconds)


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
