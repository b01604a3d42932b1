"""What the data sets share: records of a file, a case's turns, and how many questions are taken."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
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


def entries(path: Path, fields: Collection[str], what: str) -> Iterator[Json]:
    """Yield the records of a JSON list or of JSON lines, plain or packed (.gz, .xz), one in memory at a time.

    UsageError if the file cannot be read, or a record lacks one of the `fields`; `what` names the data set.
    """
    count = 0
    try:
        with opened(path) as sources:
            for source in sources:
                for record in records(source, path.name):
                    count += 1
                    is_object = isinstance(record, dict)
                    missing = [name for name in fields if name not in record] if is_object else []
                    if missing or not is_object:
                        why = f"it has no {missing[0]!r}" if missing else "it is no object"
                        where = f"record {count} of {path.name}"
                        raise UsageError(f"{where} is not as {what} has it ({why}): give the official file")
                    yield record
    except ImportFormatError as error:
        raise UsageError(str(error)) from error
    if not count:
        raise UsageError(f"{path.name} holds no record: give the official file of {what}")


def turns(found: Iterable[Turn], path: Path) -> tuple[Turn, ...]:
    """Return a case's turns under the ids that an imported library carries, or numbered."""
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
    return _UNFIT.sub("_", name).strip(".") or "_"


class Quota:
    """Takes the first questions of each category, all where no limit is set."""

    def __init__(self, limit: int | None) -> None:
        self._left = defaultdict[str, float](lambda: inf if limit is None else limit)

    def take(self, questions: Iterable[Question]) -> tuple[Question, ...]:
        taken = []
        for question in questions:
            self._left[question.category] -= 1
            taken += [question] if self._left[question.category] >= 0 else []
        return tuple(taken)


def by_turn(question: Question, found: Sequence[Found], budgets: Iterable[int]) -> dict[str, float]:
    """Measures of the turns that were found, by rank and as they are read; none without evidence.

    "tokens to words" and "blocks to words": what is read until each telling word of the expected answer was
    seen; of the first pieces the shares that hold one of them, two, and more. Source: xMemory (arXiv
    2602.02007), section 5.2 (evidence density and coverage).
    """
    if not question.scored:
        return {}
    scores = metrics.measures([turn for item in found for turn in item.turns], question.turns)
    scores |= read_within(found, question.turns, budgets)
    words = {word for answer in question.expected[:1] for word in metrics.stems(answer)}
    telling = words.difference(*(metrics.stems(word) for word in STOP_WORDS))
    if not telling:
        return scores
    hits = [telling.intersection(metrics.stems(item.text)) for item in found]
    tokens = [item.tokens for item in found]
    for unit, sizes in (("tokens", tokens), ("blocks", [1] * len(found))):
        needed = metrics.tokens_until(zip(hits, sizes, strict=True), telling)
        scores |= {} if needed is None else {f"{unit} to words": float(needed)}
    counts = Counter(min(len(words), len(metrics.HITS)) for words in hits[: metrics.FIRST])
    return scores | {name: counts[at] / max(counts.total(), 1) for at, name in enumerate(metrics.HITS, 1)}


def read_within(
    found: Sequence[Found], gold: frozenset[str], budgets: Iterable[int], label: str = "R"
) -> dict[str, float]:
    """Measures of what a reader has read: "R in 512", …, and "tokens to all" where all of `gold` is found."""
    pieces = [(item.turns, item.tokens) for item in found]
    scores = {f"{label} in {budget}": metrics.within(pieces, gold, budget) for budget in budgets}
    needed = metrics.tokens_until(pieces, gold)
    return scores if needed is None else {**scores, "tokens to all": float(needed)}


def by_words(
    question: Question, answer: str, f1: Callable[[str, str], float] = metrics.token_f1
) -> dict[str, float]:
    """Measures of an answer's words; of a question about what was never said, whether the answer says so."""
    if not question.answerable:
        return {"F1": float(metrics.says_nothing(answer))}
    measures = {"F1": f1, "BLEU-1": metrics.bleu1, "ROUGE-L": metrics.rouge_l}
    return {name: metrics.best(of, answer, question.expected) for name, of in measures.items()}
