"""What the data sets share: records of a file, a case's turns, and how many questions are taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from infinimem.errors import ImportFormatError, UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.model import Found, Question
from infinimem.importers.fields import Json
from infinimem.importers.read import keyed
from infinimem.importers.reading import opened, records
from infinimem.model import Turn
from infinimem.terms import STOP_WORDS

_UNFIT = re.compile(r"[^\w.-]+")


def entries(path: Path, fields: Iterable[str], what: str) -> Iterator[Json]:
    """The records of a JSON list or of JSON lines, plain or packed (.gz, .xz), one after the other.

    Args:
        path: of the file; one record is held at a time.
        fields: that every record has.
        what: the data set's name, for messages.

    Raises:
        UsageError: the file cannot be read, is damaged, or holds records of another shape.
    """
    wanted = tuple(fields)
    count = 0
    try:
        with opened(path) as sources:
            for source in sources:
                for record in records(source, path.name):
                    count += 1
                    if not isinstance(record, dict):
                        raise _other(path, count, what, "it is no object")
                    missing = [name for name in wanted if name not in record]
                    if missing:
                        raise _other(path, count, what, f"it has no {missing[0]!r}")
                    yield record
    except ImportFormatError as error:
        raise UsageError(str(error)) from error
    if not count:
        raise UsageError(f"{path.name} holds no record: give the official file of {what}")


def objects(record: Json, field: str, path: Path, what: str) -> list[Json]:
    """A list of objects in a record.

    Raises:
        UsageError: something else stands there.
    """
    values = record.get(field)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UsageError(f"{path.name} is not as {what} has it: {field!r} is no list of objects")
    return values


def turns(found: Iterable[Turn], path: Path) -> tuple[Turn, ...]:
    """A case's turns under the ids that an imported library carries, and numbered where there are none.

    Raises:
        UsageError: no turn has any text.
    """
    try:
        whole = keyed(iter(found), path, Counter())
        return tuple(
            turn if turn.turn is not None else replace(turn, turn=str(number))
            for number, turn in enumerate(whole, 1)
        )
    except ImportFormatError as error:
        raise UsageError(str(error)) from error


def as_text(value: Any) -> str:
    """An expected answer: some files hold numbers and booleans."""
    return " ".join(str(value).split())


def file_name(name: str) -> str:
    """A name that is fit for a file's."""
    return _UNFIT.sub("_", name).strip(".") or "_"


class Quota:
    """Takes the first questions of each category, all where no limit is set."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._taken: Counter[str] = Counter()

    def take(self, questions: Iterable[Question]) -> tuple[Question, ...]:
        """Those that are asked."""
        return tuple(question for question in questions if self._wants(question.category))

    def _wants(self, category: str) -> bool:
        self._taken[category] += 1
        return self._limit is None or self._taken[category] <= self._limit


def by_turn(question: Question, found: Sequence[Found], budgets: Iterable[int]) -> dict[str, float]:
    """Measures of the turns that were found, by rank and as they are read; none without evidence."""
    if not question.scored:
        return {}
    ranked = [turn for item in found for turn in item.turns]
    scores = metrics.measures(ranked, question.turns) | evidence_read(found, question.turns, budgets)
    needed = words_read(found, question)
    return scores if needed is None else {**scores, "tokens to words": float(needed)}


def words_read(found: Sequence[Found], question: Question) -> int | None:
    """Tokens read until each telling word of the expected answer was seen; None where one never is.

    Source: xMemory (arXiv 2602.02007), section 5.2 (evidence coverage).
    """
    words = {word for answer in question.expected[:1] for word in metrics.stems(answer)}
    telling = words.difference(*(metrics.stems(word) for word in STOP_WORDS))
    pieces = ((set(metrics.stems(item.text)), item.tokens) for item in found)
    return metrics.tokens_until(pieces, telling) if telling else None


def evidence_read(
    found: Sequence[Found], gold: frozenset[str], budgets: Iterable[int], label: str = "R"
) -> dict[str, float]:
    """Measures of what a reader has read: "R in 512", …, and "tokens to all" where all of `gold` is found."""
    pieces = [(item.turns, item.tokens) for item in found]
    scores = {f"{label} in {budget}": metrics.within(pieces, gold, budget) for budget in budgets}
    needed = metrics.tokens_until(pieces, gold)
    return scores if needed is None else {**scores, "tokens to all": float(needed)}


def _other(path: Path, number: int, what: str, why: str) -> UsageError:
    return UsageError(
        f"record {number} of {path.name} is not as {what} has it ({why}): give the official file"
    )
