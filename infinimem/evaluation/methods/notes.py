"""The `search` tool over a folder of notes, as an agent calls it: nothing is recorded, nothing extracted."""

from __future__ import annotations

import time
from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from infinimem import tokens
from infinimem.errors import UsageError
from infinimem.evaluation.datasets.notes import first_line
from infinimem.evaluation.methods.answering import Means
from infinimem.evaluation.methods.library import SETTINGS, Making
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Case, Drawn, Found, Ingested, Question
from infinimem.memory import open_memory

LIMIT = 50
"""Sections; the tool gives no more."""


class NotesSearch:
    """A method (evaluation/model.py: Method).

    Args:
        spec: its settings; without any the folder holds notes and nothing else.
        means: what it works with.
        making: where the folder goes.
    """

    def __init__(self, spec: Spec, means: Means, making: Making) -> None:
        self._spec = spec
        self._means = means
        self._making = making

    def ingest(self, case: Case) -> Ingested:
        """Write the notes out and index them.

        Raises:
            UsageError: the case has none.
        """
        if not case.notes:
            raise UsageError(f"{self._spec.name} searches a folder of notes: leave it out here")
        folder = self._making.folder(self._spec, case)
        for name, data in case.notes.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if self._spec.settings:
            (folder / SETTINGS).write_text(self._spec.toml(), encoding="utf-8")
        else:  # another method may have left its own
            (folder / SETTINGS).unlink(missing_ok=True)
        self._blocks: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for turn in case.turns:
            assert turn.speaker is not None and turn.turn is not None
            self._blocks[turn.speaker].append((first_line(turn.turn), turn.turn))
        began = time.perf_counter()
        embedder = self._means.embedders.memory(self._spec.embedder)
        options: dict[str, Any] = {} if embedder is None else {"embedder": embedder}
        self._tools = open_memory(folder, model=self._means.keeper, trust=True, **options).tools
        self._tools.search(case.questions[0].text)  # indexes
        return Ingested(
            self._spec.text, case.name, seconds=time.perf_counter() - began, turns=len(case.turns)
        )

    def retrieve(self, question: Question, budget: int | None) -> Drawn:
        """The hits, each as the block that its lines are from."""
        hits = self._tools.search(question.text, LIMIT)["hits"]
        return Drawn(
            tuple(Found(hit["snippet"], (self._block(hit),), tokens.count(hit["snippet"])) for hit in hits)
        )

    def answer(self, question: Question, budget: int) -> Drawn:
        """As `retrieve`: the tool answers nothing."""
        return self.retrieve(question, budget)

    def _block(self, hit: Mapping[str, Any]) -> str:
        blocks = self._blocks[hit["doc_id"]]
        return blocks[bisect(blocks, hit["start_line"], key=lambda block: block[0]) - 1][1]
