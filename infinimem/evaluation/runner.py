"""A run: every method takes in every case and is asked its questions; what is done is written down at once.

It stops where a model is gone or its cap is spent, and goes on from there when it is started again. A case
or a question that fails by itself is noted and passed over. The file of a run is SQLite: what was asked for,
what each method made of each question, and what that took. A row is written once, whole, and never changed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from infinimem.errors import ModelError, ModelUnavailable, UsageError
from infinimem.evaluation.methods import Embedders, Making, Method, method
from infinimem.evaluation.metrics import grades, judge
from infinimem.evaluation.model import Case, DataSet, Drawn, Ingested, Question, Spec, parse_all
from infinimem.evaluation.spending import Estimate, Metered, Spending
from infinimem.llm.base import AGENT, LLM, OFFLINE, in_order
from infinimem.llm.replies import Cached
from infinimem.model import Usage
from infinimem.store.files import Files

FILE, REPLIES = "run.db", "replies"

_TABLES = """
CREATE TABLE IF NOT EXISTS config (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS made (
    method TEXT, history TEXT, seconds REAL, turns INTEGER, disk INTEGER, sizes TEXT, written TEXT,
    PRIMARY KEY (method, history));
CREATE TABLE IF NOT EXISTS result (
    id INTEGER PRIMARY KEY, method TEXT, history TEXT, question TEXT, category TEXT, counted INTEGER,
    seconds REAL, shown INTEGER, failed TEXT, record TEXT,
    UNIQUE (method, history, question));
CREATE TABLE IF NOT EXISTS score (
    result INTEGER, measure TEXT, value REAL,
    PRIMARY KEY (result, measure)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (
    method TEXT, history TEXT, question TEXT, phase TEXT, calls INTEGER, tokens_in INTEGER,
    tokens_out INTEGER, PRIMARY KEY (method, history, question, phase)) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS scored AS
    SELECT * FROM result JOIN score ON score.result = result.id WHERE measure NOT LIKE '% to %';
"""
_PACKAGES = ("infinimem", "numpy", "rank-bm25", "tantivy")
_KEPT = 50
"""Pieces of a ranking whose text is written down; what stands behind them is only scored."""

_Left = tuple[Case, Sequence[tuple[Spec, Sequence[Question]]]]
"""A case with the methods that have questions left."""
Step = Callable[[int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What `infinimem bench` is asked for; `max_tokens` caps this start, another `run` asks models anew."""

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


class Run:
    """A run that is ready to start, or to go on. UsageError if a method, a model or an embedder is wrong,
    ModelNotConfigured if an embedder's package or files are missing."""

    def __init__(self, request: Request, benchmark: DataSet) -> None:
        self._request = request
        self._benchmark = benchmark
        self._lock = Lock()
        self._models = {"keeper": request.keeper, "answerer": request.answerer, "judge": request.judge}
        if AGENT in (llm.name for llm in self._models.values()):
            raise UsageError("a bench needs models that answer at once; --model names one, or offline")
        self._specs = parse_all(request.methods)
        self._spending = Spending(request.max_tokens)
        self._embedders = Embedders(request.embedder, self._spending)
        self._vectors = {spec.text: self._embedders.of(spec) for spec in self._specs}

    def estimate(self) -> Estimate:
        """Return what is still to be done and what it will take; UsageError in another run's folder."""
        request = self._request
        asked = [name for name, llm in self._models.items() if llm.name != OFFLINE]
        found = Estimate(asked, request.budget, request.retrieval_only)
        with opened(request.out, self.config()) as rows:
            for case, left in self._left(rows):
                found.add(case, left, rows.made)
        return found

    def start(self, step: Step, total: int) -> int:
        """Do what is left, and return how many cases and questions failed; `step` is told how far it is.

        ModelUnavailable if a model is gone, or the cap is spent; what is done is kept.
        """
        request, out = self._request, self._request.out
        with opened(out, self.config(), write=True) as rows:
            (out / REPLIES).mkdir(mode=0o700, exist_ok=True)
            keeper, answerer, self._judge = (
                Metered(
                    llm if llm.name == OFFLINE else Cached(llm, out / REPLIES, request.run), self._spending
                )
                for llm in self._models.values()
            )
            self._making = Making(out / "work", keeper, answerer, self._embedders, self._spending)
            steps, self._failed = count(1), 0
            self._rows = rows
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
                shutil.rmtree(out / "work", ignore_errors=True)
            return self._failed

    def config(self) -> dict[str, Any]:
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
                who: llm.name if asks or who != "judge" else None for who, llm in self._models.items()
            },
            "embedders": {text: embedder.name for text, embedder in self._vectors.items() if embedder},
            "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
        }

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
        opened = in_order(
            lambda one: self._try(partial(self._take_in, one[0], case), one[0], case), left, workers
        )
        asked = [
            (spec, chosen, question)
            for (spec, questions), chosen in zip(left, opened, strict=True)
            if chosen is not None
            for question in questions
        ]
        ask = self._spending.question()(self._ask)
        done = in_order(
            lambda one: self._try(partial(ask, case, *one), one[0], case, one[2].id), asked, workers
        )
        if all(opened) and all(done) and not self._request.keep:
            for spec, _ in left:
                if spec.way is not None:
                    self._making.remove(spec, case)

    def _take_in(self, spec: Spec, case: Case) -> Method:
        chosen = method(spec, self._making)
        self._rows.take_in(chosen.ingest(case))
        return chosen

    def _try(self, do: Callable[[], T], spec: Spec, case: Case, question: str | None = None) -> T | None:
        """Do a step and tell of it, or note why it failed by itself; a model that is gone raises."""
        try:
            result = do()
        except ModelError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            row = {"method": spec.text, "case": case.name, "question": question, "error": why}
            with self._lock, (self._request.out / "errors.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                self._failed += 1
            return None
        with self._lock:
            self._step()
        return result

    def _ask(self, case: Case, spec: Spec, chosen: Method, question: Question) -> bool:
        began, asks = time.perf_counter(), not self._request.retrieval_only
        with self._spending.account() as usage:
            drawn = chosen.answer(question, self._request.budget) if asks else chosen.retrieve(question)
        seconds = round(time.perf_counter() - began, 4)  # scoring is no part of it
        scores = dict(self._benchmark.retrieval(case, question, drawn.found))
        verdicts: dict[str, Any] = {}
        if drawn.answer is not None:
            answered = self._benchmark.answered(question, drawn.answer)
            if drawn.failed:  # what stands in for an answer may be right by chance
                judged = dict.fromkeys((*answered, *grades(question)), 0.0)
            else:
                verdicts, judged = judge(self._judge, question, drawn.answer)
            scores |= {**answered, **judged}
        # Of a ranking its head is written down, of evidence every size.
        rest = drawn.found[_KEPT:] if asks else ()
        kept = (*drawn.found[:_KEPT], *(replace(item, text="") for item in rest))
        drawn = replace(drawn, found=kept, scores=scores, verdicts=verdicts, usage=usage, seconds=seconds)
        self._rows.add(spec.text, case.name, question, drawn)
        return True


def _file(path: Path) -> dict[str, str]:
    if path.is_dir():
        files = sorted(found for found in path.rglob("*") if found.is_file())
        inside = [(str(found.relative_to(path)), _file(found)) for found in files]
        return {"file": path.name, "sha256": hashlib.sha256(repr(inside).encode()).hexdigest()}
    try:
        with path.open("rb") as file:
            return {"file": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; --data names the official file") from error


# ── the file ────────────────────────────────────────────────────────────────────────────────────


class OtherRun(UsageError):
    """The folder holds a run that was asked for something else."""


class Database:
    def __init__(self, rows: sqlite3.Connection) -> None:
        self._rows = rows
        self._lock = Lock()
        self.asked = set(rows.execute("SELECT method, history, question FROM result"))
        self.made = set(rows.execute("SELECT method, history FROM made"))

    def take_in(self, made: Ingested) -> None:
        """Write down what making a case's library took, unless that is."""
        key = (made.method, made.case)
        texts = json.dumps(made.sizes), json.dumps(made.written)
        cells = (*key, made.seconds, made.turns, made.disk, *texts)
        self._add((*key, ""), "made", cells, made.usage, {})

    def add(self, method: str, case: str, of: Question, drawn: Drawn) -> None:
        """Write down what a method made of a question, unless something is."""
        key, shown = (method, case, of.id), sum(item.tokens for item in drawn.found)
        record = {name: getattr(drawn, name) for name in ("answer", "steps", "failed", "verdicts")}
        text = json.dumps({"found": [asdict(item) for item in drawn.found], **record})
        cells = (None, *key, of.category, of.counted, drawn.seconds, shown, drawn.failed, text)
        self._add(key, "result", cells, drawn.usage, drawn.scores)
        self.asked.add(key)

    def _add(
        self,
        key: tuple[str, str, str],
        table: str,
        cells: Sequence[Any],
        usage: Mapping[str, Usage],
        scores: Mapping[str, float],
    ) -> None:
        with self._lock, self._rows as rows:
            marks = ", ".join("?" * len(cells))
            new = rows.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", cells)
            if new.rowcount:
                known = [(new.lastrowid, *pair) for pair in scores.items()]
                rows.executemany("INSERT INTO score VALUES (?, ?, ?)", known)
                spent = [(*key, phase, *astuple(of)) for phase, of in usage.items()]
                rows.executemany("INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?)", spent)


@contextmanager
def opened(folder: Path, config: Mapping[str, Any], write: bool = False) -> Iterator[Database]:
    """Open the file of a run, or of one that has not begun; to `write`, as the only process that does.

    UsageError if the folder is no run's, OtherRun if it was asked for with another `config`, LockTimeout if
    another process writes to it.
    """
    path = folder / FILE
    is_there = path.exists()
    is_run = is_there or (folder / REPLIES).is_dir()
    if not is_run and folder.is_dir() and any(found.name[0] != "." for found in folder.iterdir()):
        raise UsageError(f"{folder} is not empty and holds no run; choose another folder with --out")
    if write:
        folder.mkdir(parents=True, exist_ok=True)
    held = Files(folder).exclusive(1) if write else nullcontext()
    now = {name: json.dumps(value, ensure_ascii=False, sort_keys=True) for name, value in config.items()}
    with held, _connected(path if write or is_there else ":memory:") as rows:
        before = dict(rows.execute("SELECT name, value FROM config"))
        for name in sorted({*before, *now} if before else ()):
            if before.get(name) != now.get(name):
                raise OtherRun(
                    f"{folder} holds a run with other {name} ({before.get(name)}, now {now.get(name)}); "
                    "ask for the same, or choose another --out"
                )
        if not before:
            with rows:
                rows.executemany("INSERT INTO config VALUES (?, ?)", now.items())
        if write:  # no row waits for the disk, and none is half there
            rows.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        yield Database(rows)


@contextmanager
def read(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of a run to look at it; UsageError if there is none, or nothing was asked yet."""
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder} holds no run that can be read: name the folder of one")
    with _connected(folder / FILE) as rows:
        if not rows.execute("SELECT 1 FROM result").fetchone():
            raise UsageError(f"{folder} holds no results yet: start the run first")
        yield rows


@contextmanager
def _connected(path: Path | str) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, check_same_thread=False)) as rows:
            rows.executescript(_TABLES)
            yield rows
    except sqlite3.DatabaseError as error:
        what = f"{path} cannot be read or written"
        raise UsageError(f"{what} ({error}); choose another folder with --out") from error
