"""The nouns of a benchmark run: what is asked, what was found, and what each was worth."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from infinimem.errors import ImportFormatError, UsageError
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
        kind: how a judge reads it (prompts/judge_strict.md, judge_rubric.md); "" where none is asked.
        choices: of which the answerer is to name one, each behind its letter; no memory is asked for them.
        about: what else its data set scores it by.
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
    kind: str = "plain"
    choices: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


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
    """What a method made of a question, best first, and what that is worth.

    Args:
        answer: None where none was asked for.
        steps: of the reader, as its trace tells them; the last one of an answer names the lines cited.
        failed: why the answerer's reply could not be used (llm/base.py: Failure); it is scored 0.
        scores: by measure, 0 to 1; "tokens to all" counts tokens and is missing where evidence was.
        verdicts: of the judge, raw: {"strict": {"correct": …, "text": …}, …}.
        seconds: of finding and answering, without the judge.
    """

    found: tuple[Found, ...]
    answer: str | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    failed: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    seconds: float = 0.0


_MISSHAPEN = (
    *(AttributeError, EOFError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError),
    *(UnpicklingError, csv.Error),
)
"""What reading a file of another shape comes to."""
_UNFIT = re.compile(r"[^\w.-]+")

Load = Callable[[Path], Iterator[Case]]
Retrieval = Callable[[Case, Question, Sequence[Found]], Mapping[str, float]]
Answered = Callable[[Question, str], Mapping[str, float]]


@dataclass(frozen=True)
class DataSet:
    """A data set with its own rules of scoring.

    Args:
        load: yields the cases of the official file.
        retrieval: returns measures of a ranking, by name ("R@5"); none for a question without known evidence.
        answered: returns measures of an answer that need no judge.
    """

    name: str
    load: Load
    retrieval: Retrieval
    answered: Answered

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """Yield the cases of the official file that have questions among the first `limit` of each category.

        UsageError, in one line, if it is another file."""
        asked = Counter[str]()
        try:
            for case in self.load(path):
                taken = []
                for question in case.questions:
                    asked[question.category] += 1
                    if limit is None or asked[question.category] <= limit:
                        taken.append(question)
                if taken:
                    name = _UNFIT.sub("_", case.name).strip(".") or "_"
                    yield replace(case, name=name, questions=tuple(taken))
        except ImportFormatError as error:
            raise UsageError(str(error)) from error
        except _MISSHAPEN as error:
            why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            told = f"{path.name} is not as {self.name} has it ({why}): give the official file"
            raise UsageError(told) from error
