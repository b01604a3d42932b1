"""The nouns of a benchmark run, and its two protocols: data sets and methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from infinimem.model import Turn, Usage


@dataclass(frozen=True)
class Question:
    """A question with what is known to answer it.

    Args:
        category: by which results are grouped; `counted`: whether it is in the means over all of them.
        expected: answers, any of which counts; `parts`: of one that is a list.
        turns: ids of the turns that hold the evidence; `sessions`: of their sessions. Both where known.
        asked: ISO date.
        answerable: whether the memory holds an answer.
        scored: whether the data set's own scorer looks at its retrieval.
        rubric: what a good answer says or does, where answers are graded item by item.
    """

    id: str
    text: str
    category: str
    expected: tuple[str, ...]
    turns: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    asked: str | None = None
    counted: bool = True
    answerable: bool = True
    scored: bool = True
    rubric: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A history, as it was said, and the questions to it; of `notes`, by path, `turns` are the blocks."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    notes: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A piece that a method found, as an answerer is shown it, and the turns that it holds or cites."""

    text: str
    turns: tuple[str, ...]
    tokens: int


@dataclass(frozen=True)
class Ingested:
    """What making a case's library cost and left: tokens of each document, bytes, `written` (methods.py)."""

    method: str
    case: str
    usage: Mapping[str, Usage] = field(default_factory=dict)
    seconds: float = 0.0
    sizes: tuple[int, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 0
    disk: int = 0


@dataclass(frozen=True)
class Drawn:
    """What a method made of a question, best first; `answer` is None where none was asked for.

    Args:
        steps: of the reader, as its trace tells them; the last one of an answer names the lines cited.
        failed: why the answerer's reply could not be used (llm/base.py: Failure).
    """

    found: tuple[Found, ...]
    answer: str | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    failed: str | None = None


@dataclass(frozen=True)
class Result:
    """What one method made of one question, and what that is worth.

    Args:
        drawn: what stands in for an answer that failed is scored 0, and nothing is judged.
        scores: by measure, 0 to 1; "tokens to all" counts tokens and is missing where evidence was.
        verdicts: of the judge, raw: {"strict": {"correct": …, "text": …}, …}.
        seconds: of finding and answering, without the judge.
    """

    method: str
    case: str
    question: Question
    drawn: Drawn
    scores: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    seconds: float = 0.0


class Benchmark(Protocol):
    """A data set with its own rules of scoring."""

    name: str

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """Yield the cases of the official file, with at most `limit` questions of each category."""

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Return measures of a ranking, by name ("R@5"); none for a question without known evidence."""

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Return measures of an answer that need no judge."""


class Method(Protocol):
    """A memory, or what stands in for one, holding one case."""

    def ingest(self, case: Case) -> Ingested:
        """Take in a history."""

    def retrieve(self, question: Question) -> Drawn:
        """Return all that is ranked for a question; threads may ask at once."""

    def answer(self, question: Question, budget: int) -> Drawn:
        """Return an answer, and what it was drawn from; threads may ask at once."""
