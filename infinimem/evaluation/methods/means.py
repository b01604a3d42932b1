"""What methods work with: models, embedders, and how what was found becomes an answer."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem import answer as answering
from infinimem import tokens
from infinimem.embedders.base import text_key
from infinimem.embedders.connect import connect
from infinimem.errors import ModelNotConfigured, UsageError
from infinimem.evaluation.methods.spec import LENGTHS, Spec
from infinimem.evaluation.model import Case, Drawn, Found, Question
from infinimem.evaluation.spending import Booked, Spending
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply, Task, Wrapper
from infinimem.model import Evidence, Retrieved
from infinimem.settings import EMBEDDERS, configuration
from infinimem.strategies.readers.collect import Search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infinimem.embedders.base import Embedder, Kind

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
        self._known: dict[str, Embedding] = {}

    def memory(self, name: str | None) -> Embedder | None:
        """The embedder of a library; None where neither the method nor the run names one."""
        wanted = name or self.name
        return self._of(wanted).embedder if wanted else None

    def dense(self, name: str | None) -> Embedding:
        """The embedder of a baseline, which cannot do without."""
        with self._lock:
            return self._of(name or self.name or self._fallback)

    def of(self, spec: Spec) -> Embedder | None:
        """What a method's vectors come from, if it has any."""
        if spec.way is not None:
            return self.memory(spec.embedder)
        return self.dense(spec.embedder).embedder if spec.takes_embedder else None

    def _of(self, name: str) -> Embedding:
        with self._lock:
            if name not in self._known:
                kind, _, model = name.partition("/")
                if model and kind in EMBEDDERS and kind != "openai":
                    raise UsageError(
                        f"the embedder {kind!r} has one model only; write {kind!r}, without a slash"
                    )
                found = connect(kind, replace(self._settings, model=model or None))
                counts = hasattr(found, "usage")
                self._known[name] = Embedding(Booked(found, self._spending) if counts else found)
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


class Embedding:
    """An embedder that remembers: histories of one data set share sessions, and methods share texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._lock = threading.Lock()
        self._rows: dict[bytes, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> NDArray[np.float32]:
        """A row of length 1 for each text."""
        import numpy as np

        keys = [text_key(kind + text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
            if new:
                self._rows.update(zip(new, self.embedder.embed(list(new.values()), kind), strict=True))
            rows = [self._rows[key] for key in keys]
            if rows and len(self._rows) * len(rows[0]) > _KEPT:
                self._rows.clear()
        return np.stack(rows) if rows else np.zeros((0, self.embedder.size), np.float32)


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
