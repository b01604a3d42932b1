"""What methods work with: models, embedders, and how what was found becomes an answer."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem import answer as answering
from infinimem import tokens
from infinimem.embedders.local import connect
from infinimem.errors import ModelNotConfigured, UsageError
from infinimem.evaluation.methods.spec import LENGTHS, Spec
from infinimem.evaluation.model import Case, Drawn, Found, Question
from infinimem.evaluation.spending import Booked, Spending
from infinimem.index.vectors import Vectors
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply, Task, Wrapper
from infinimem.model import Evidence, Retrieved
from infinimem.settings import EMBEDDERS, configuration
from infinimem.strategies.readers.pipeline import Search

if TYPE_CHECKING:
    from infinimem.embedders.base import Embedder

ALL = 1 << 30
"""Tokens: more than any history has."""
_LOCAL = ("static", "minilm")
"""What stands in for an embedder that nobody named, the first that is installed; else words alone."""
_KEPT = 1 << 26
"""Numbers that are kept of vectors, 256 MB: those of some 170,000 turns by a small model."""


@dataclass(frozen=True)
class Means:
    """What methods work with; libraries are made in the folder `work`, by the model `keeper`."""

    work: Path
    keeper: LLM
    answerer: LLM
    judge: LLM
    embedders: Embedders
    spending: Spending


# ── vectors ─────────────────────────────────────────────────────────────────────────────────────


class Embedders:
    """Connects to embedders by name ("openai/MODEL" with one), to each once; threads may share them.

    `name` is the run's; None takes INFINIMEM_EMBEDDER, else what each method takes by itself.
    """

    def __init__(self, name: str | None = None, spending: Spending | None = None) -> None:
        self._spending = spending or Spending()
        self._settings = configuration().settings.embedder
        self.name = name or (self._settings.name if self._settings.name != "lexical" else None)
        self._lock = threading.RLock()
        self._known: dict[str, Embedder] = {}
        self._vectors: dict[str, Vectors] = {}

    def memory(self, name: str | None) -> Embedder | None:
        """The embedder of a library; None where neither the method nor the run names one."""
        wanted = name or self.name
        return self._of(wanted) if wanted else None

    def of(self, spec: Spec) -> Embedder | None:
        """What a method's vectors come from, if it has any; a baseline that takes them cannot do without."""
        if spec.way is not None:
            return self.memory(spec.embedder)
        return self._of(spec.embedder or self.name or self._fallback) if spec.takes_embedder else None

    def vectors(self, spec: Spec) -> Vectors:
        """The vectors of a baseline, in memory: histories of a data set share sessions, and methods texts."""
        embedder = self.of(spec)
        assert embedder is not None
        with self._lock:
            known = self._vectors.get(embedder.name)
            if known is None or known.rows.matrix.size > _KEPT:
                known = self._vectors[embedder.name] = Vectors(None, embedder)
            return known

    def _of(self, name: str) -> Embedder:
        with self._lock:
            if name not in self._known:
                kind, _, model = name.partition("/")
                if model and kind in EMBEDDERS and kind != "openai":
                    raise UsageError(
                        f"the embedder {kind!r} has one model only; write {kind!r}, without a slash"
                    )
                found = connect(kind, replace(self._settings, model=model or None))
                counts = hasattr(found, "usage")
                self._known[name] = Booked(found, self._spending) if counts else found
            return self._known[name]

    @cached_property
    def _fallback(self) -> str:
        for name in _LOCAL:
            try:
                self._of(name)
            except ModelNotConfigured:
                continue
            return name
        return "lexical"


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


def found_of(items: Iterable[Retrieved], turn_of: Mapping[int, str]) -> tuple[Found, ...]:
    """Pieces of evidence as they are scored: by the turns that they hold or cite."""
    return tuple(
        Found(
            item.text,
            tuple(dict.fromkeys(turn_of[seq] for seq in item.origin if seq in turn_of)),
            tokens.count(item.text),
        )
        for item in items
    )


def drawn(
    heard: Heard,
    question: Question,
    now: str,
    evidence: Evidence,
    turn_of: Mapping[int, str],
    budget: int,
    search: Search | None = None,
) -> Drawn:
    """Return an answer from evidence, best first, of which `budget` tokens are shown; `search` shows more."""
    answered = answering.answer(heard, question.text, evidence, now, budget, search)
    cited = {"cited": [citation.text for citation in answered.citations]}
    steps = (*map(asdict, answered.evidence.trace), cited)
    return Drawn(found_of(answered.evidence.items, turn_of), answered.text, steps, heard.failed)


class Heard(Wrapper):
    """The answerer, heard out and held to a length (methods/spec.py: Spec) where the method names one: where
    its reply is unusable `answer` quotes a line, and that may be right."""

    failed: str | None = None

    def __init__(self, llm: LLM, spec: Spec) -> None:
        super().__init__(llm)
        self._length = {key: spec.counts[key] for key in LENGTHS if key in spec.counts}

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        if task.name == tasks.ANSWER.name:
            task = replace(task, variables=task.variables | self._length.keys())
            variables = {**variables, **self._length}
        reply = self._llm.complete(task, variables)
        unusable = reply.data is None or not str(reply.data.get("answer", "")).strip()
        self.failed = (reply.failure or "EMPTY") if unusable else None
        return reply


def now_of(case: Case, question: Question) -> str:
    """The date of a question; where it has none, that of the last turn."""
    times = (turn.time for turn in reversed(case.turns) if turn.time)
    return (question.asked or next(times, ""))[:10]
