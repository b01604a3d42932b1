"""The project's own methods: a library made from a history, read in one way or another.

Methods that differ only in how they read share a library: it is made once, and what that cost is told
of each of them.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from infinimem.evaluation.methods.answering import ALL, Means, drawn, found_of, now_of
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Case, Drawn, Ingested, Question
from infinimem.evaluation.written import written_of
from infinimem.memory import Memory, open_memory
from infinimem.model import Evidence, Usage
from infinimem.retrieval.cache import delete_cache
from infinimem.store.spec import TOPICS
from infinimem.strategies.readers.collect import search

SETTINGS = "infinimem.toml"


@dataclass(frozen=True)
class _Made:
    """What making a library took, and left."""

    usage: Mapping[str, Usage]
    seconds: float
    sizes: tuple[int, ...]
    disk: int


class LibraryMethod:
    """A reader over a library (evaluation/model.py: Method).

    Args:
        spec: which reader, and its settings.
        means: what it works with.
        making: where the libraries of the run are made.
    """

    def __init__(self, spec: Spec, means: Means, making: Making) -> None:
        assert spec.way is not None
        self._way = spec.way
        self._spec = spec
        self._means = means
        self._making = making

    def ingest(self, case: Case) -> Ingested:
        """Make the library, or open one that is made."""
        made = self._making.make(self._spec, case)
        self._case = case
        self._memory = self._making.open(self._spec, case, building=False)
        self._turn_of = {
            place.entry.seq: place.entry.fields["turn"]
            for place in self._memory.view.entries("evidence")
            if "turn" in place.entry.fields
        }
        return Ingested(
            self._spec.text,
            case.name,
            made.usage,
            made.seconds,
            made.sizes,
            written_of(self._memory, case) if self._spec.draws else {},
            len(case.turns),
            made.disk,
        )

    def retrieve(self, question: Question, budget: int | None) -> Drawn:
        """What is ranked."""
        evidence = self._read(question, self._way.ranked_by, ALL if budget is None else budget)
        return Drawn(found_of(evidence.items, self._turn_of), steps=asdict(evidence)["trace"])

    def answer(self, question: Question, budget: int) -> Drawn:
        """An answer from what the reader finds."""
        evidence = self._read(question, self._way.answered_by, budget)
        now = now_of(self._case, question)
        more = search(self._memory.view, question.text, self._way.answered_by or "")
        return drawn(self._means.answerer, question, now, evidence, self._turn_of, budget, more)

    def _read(self, question: Question, reader: str | None, budget: int) -> Evidence:
        if reader is None:
            return self._memory.retrieve(question.text, budget)
        return self._memory.read(question.text, reader, budget)


class Making:
    """Makes the libraries of a run, each by one thread.

    Args:
        means: whose folder, model and embedders are used.
    """

    def __init__(self, means: Means) -> None:
        self._means = means
        self._lock = threading.Lock()
        self._locks: dict[Path, threading.Lock] = defaultdict(threading.Lock)
        self._made: dict[Path, _Made] = {}

    def folder(self, spec: Spec, case: Case) -> Path:
        """Of the library."""
        return self._means.work / spec.library / case.name

    def make(self, spec: Spec, case: Case) -> _Made:
        """Make the library, unless this start of the run has; one of an earlier start is made anew, of the
        replies that were kept."""
        folder = self.folder(spec, case)
        with self._exclusive(folder):
            if (made := self._made.get(folder)) is None:
                self.remove(spec, case)
                made = self._made[folder] = self._make(spec, case, folder)
        return made

    def open(self, spec: Spec, case: Case, building: bool) -> Memory:
        """Open a library with a method's settings, those for making it or all of them."""
        folder = self.folder(spec, case)
        with self._exclusive(folder):
            return self._open(spec, folder, building)

    def remove(self, spec: Spec, case: Case) -> None:
        """Delete the library."""
        folder = self.folder(spec, case)
        self._made.pop(folder, None)
        delete_cache(str(folder.absolute()))
        shutil.rmtree(folder, ignore_errors=True)

    def _make(self, spec: Spec, case: Case, folder: Path) -> _Made:
        began = time.perf_counter()
        with self._means.spending.account() as spent:
            memory = self._open(spec, folder, building=True)
            if spec.draws:
                memory.observe(case.turns)
                memory.consolidate()
            else:
                memory.record(case.turns)
        sizes = tuple(row.tokens for row in memory.view.catalog(folder=TOPICS))
        disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        return _Made(dict(sorted(spent.items())), time.perf_counter() - began, sizes, disk)

    def _open(self, spec: Spec, folder: Path, building: bool) -> Memory:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SETTINGS).write_text(spec.toml(building), encoding="utf-8")
        embedder = self._means.embedders.memory(spec.linked_by if building else spec.embedder)
        options: dict[str, Any] = {} if embedder is None else {"embedder": embedder}
        model = self._means.keeper if building else self._means.answerer
        return open_memory(folder, model=model, create=True, trust=True, **options)

    def _exclusive(self, folder: Path) -> threading.Lock:
        with self._lock:
            return self._locks[folder]
