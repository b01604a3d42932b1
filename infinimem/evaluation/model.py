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
        id: unique in its data set.
        text: as it is asked.
        category: by which results are grouped.
        expected: answers, any of which counts.
        turns: ids of the turns that hold the evidence; none where the data set names none.
        sessions: ids of the sessions that do.
        asked: ISO date of the question, where it has one.
        counted: whether it is in the means over all categories.
        answerable: whether the memory holds an answer.
        scored: whether the data set's own scorer looks at its retrieval.
        rubric: what a good answer says or does, where answers are graded item by item.
        parts: of an expected answer that is a list.
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
    """A history and the questions to it.

    Args:
        name: unique in its data set, fit for a file's name.
        turns: in the order in which they were said; each has a `turn` id.
        questions: asked when all was said.
        notes: a folder of notes, by path, where the history is one; `turns` are then its blocks.
    """

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    notes: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A piece that a method found.

    Args:
        text: as an answerer is shown it.
        turns: ids of the turns that it holds or cites.
        tokens: of the text.
    """

    text: str
    turns: tuple[str, ...]
    tokens: int


@dataclass(frozen=True)
class Ingested:
    """What writing one case cost and left.

    Args:
        usage: tokens and calls by phase (a language task's name).
        seconds: of wall clock.
        sizes: tokens of each document that was made.
        written: what became of what was said (methods/library.py: written_of).
        turns: that were taken in.
        disk: bytes of the library's files.
    """

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
    """What a method made of a question.

    Args:
        found: best first.
        answer: None where none was asked for.
        steps: of the reader, as its trace tells them; the last one of an answer names the lines cited.
        failed: why the answerer's reply could not be used (llm/base.py: Failure); None where it could.
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
        usage: tokens and calls by phase.
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
        """Yield the cases of the official file, with at most `limit` questions of each category.

        Raises:
            UsageError: a file cannot be read or is not as it should be.
        """

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
