"""FactConsolidation: facts that contradict each other, of which the newest counts (MemoryAgentBench, 2025).

The conflict-resolution split as a JSON list of `context`, `questions`, `answers`, `metadata`. The file names
no evidence: what is found is scored by whether it holds an expected answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.reading import Quota, as_text, entries, file_name, turns
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.exports import MEMORYAGENTBENCH
from infinimem.importers.fields import Json

CUTS = (1, 5, 10, 50)

_WHAT = "FactConsolidation"
_SOURCE = re.compile(r"factconsolidation_(sh|mh)_(\w+)")
_HOPS = {"sh": "single-hop", "mh": "multi-hop"}


class FactConsolidation:
    """The data set (evaluation/model.py: Benchmark)."""

    name = "factconsolidation"

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """A case for each context.

        Raises:
            UsageError: the file cannot be read or is not as it should be.
        """
        quota = Quota(limit)
        for record in entries(path, ("context", "questions", "answers"), _WHAT):
            if not MEMORYAGENTBENCH.matches(record):
                raise UsageError(f"{path.name} is not as {_WHAT} has it: no text and questions")
            (name,) = MEMORYAGENTBENCH.names(record, path.stem)
            questions = quota.take(_questions(record, name, path))
            if questions:
                said = turns(MEMORYAGENTBENCH.turns(record, path.stem, Counter()), path)
                yield Case(file_name(name), said, questions)

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Whether an expected answer stands in one of the first k texts: "answer@1" and so on."""
        ranks = (rank for rank, item in enumerate(found) if metrics.holds(item.text, question.expected))
        first = next(ranks, len(found) + CUTS[-1])
        return {f"answer@{k}": float(first < k) for k in CUTS}

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Substring match ("match"), which is the data set's own measure, and token F1."""
        return {
            "match": float(metrics.holds(answer, question.expected)),
            "F1": metrics.best(metrics.token_f1, answer, question.expected),
        }


def _questions(record: Json, name: str, path: Path) -> Iterator[Question]:
    asked, expected = record["questions"], record["answers"]
    if not isinstance(expected, list) or len(asked) != len(expected):
        raise UsageError(f"{name} in {path.name} is not as {_WHAT} has it: not an answer for each question")
    match = _SOURCE.fullmatch(name)
    category = f"{_HOPS[match[1]]} {match[2]}" if match else name
    for number, (text, found) in enumerate(zip(asked, expected, strict=True)):
        yield Question(
            id=f"{name}-q{number}",
            text=str(text),
            category=category,
            expected=tuple(as_text(answer) for answer in (found if isinstance(found, list) else [found])),
            scored=False,
        )
