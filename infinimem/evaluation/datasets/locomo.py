"""LoCoMo: ten long conversations of two people, with questions about them (Maharana and others, 2024).

The official file, locomo10.json, or a part of it. Its labels are mended as docs/BENCHMARKS.md tells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.reading import Quota, as_text, by_turn, by_words, entries, file_name, turns
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.exports import LOCOMO
from infinimem.importers.fields import Json
from infinimem.model import Turn

CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
ADVERSARIAL = CATEGORIES[5]
BUDGETS = (512, 1024, 2048)
ANSWERED = "adversarial, answered"
"""Questions of the fifth category that the conversation does answer: locomo_answered.txt lists their ids."""
NOT_MENTIONED = "Not mentioned in the conversation"
"""What is expected of a question about something that was never said."""

_WHAT = "LoCoMo"
_CATEGORY = {str(number): name for number, name in CATEGORIES.items()}
_ID = re.compile(r"D(\d+):(\d+)")
_LISTED = CATEGORIES[1]
_BETWEEN = re.compile(r",\s*(?:and\s+)?(?!\s*\d{4}\b)")
"""The parts of a list; a year belongs to its day."""

Corrections = Mapping[tuple[str, str], Json]
"""By the question's text and the answer that the official file gives."""


def gold_turns(evidence: Iterable[object], known: Collection[str]) -> list[str]:
    """The turn ids of a question: glued ones taken apart ("D8:6; D9:17"), those that name no turn dropped."""
    found = _ID.findall(" ".join(str(item) for item in evidence))
    ids = [f"D{int(session)}:{int(turn)}" for session, turn in found]
    return [turn for turn in dict.fromkeys(ids) if turn in known]


class LoCoMo:
    """The data set (evaluation/model.py: Benchmark).

    Args:
        corrections: a published audit's file: a list of objects that name a question (`question`,
            `golden_answer`) and what is right (`correct_answer`, `correct_evidence`).
    """

    name = "locomo"

    def __init__(self, corrections: Path | None = None) -> None:
        self._corrections = corrections

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """A case for each conversation; one that no question is taken from is left out.

        Raises:
            UsageError: a file cannot be read or is not as it should be.
        """
        corrections = _corrections(self._corrections) if self._corrections else {}
        quota = Quota(limit)
        for record in entries(path, ("conversation", "qa"), _WHAT):
            if not LOCOMO.matches(record):
                raise UsageError(f"{path.name} is not as {_WHAT} has it: a conversation without sessions")
            (name,) = LOCOMO.names(record, path.stem)
            said = turns(LOCOMO.turns(record, path.stem, Counter()), path)
            rows = record["qa"]
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise UsageError(f"{path.name} is not as {_WHAT} has it: 'qa' is no list of objects")
            questions = quota.take(_questions(rows, name, said, corrections, path))
            if questions:
                yield Case(file_name(name), said, questions)

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Turn level; none for a question without evidence."""
        return by_turn(question, found, BUDGETS)

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Token F1 by the rule of the category; BLEU-1 and ROUGE-L where there is an answer."""
        return by_words(question, answer, partial(metrics.locomo_f1, category=question.category))


def _questions(
    rows: Iterable[Json], name: str, said: Sequence[Turn], corrections: Corrections, path: Path
) -> Iterator[Question]:
    session_of = {turn.turn: turn.session for turn in said}
    known = frozenset(turn.turn for turn in said if turn.turn)
    answered = files(__package__).joinpath("locomo_answered.txt").read_text(encoding="utf-8").split()
    for number, row in enumerate(rows):
        text, category = row.get("question"), _CATEGORY.get(str(row.get("category")))
        if not isinstance(text, str) or category is None:
            raise UsageError(f"question {number} of {name} in {path.name} has no text or no category 1 to 5")
        right = corrections.get((as_text(text), as_text(row.get("answer", ""))), {})
        evidence = right.get("correct_evidence", row.get("evidence"))
        gold = frozenset(gold_turns(evidence if isinstance(evidence, list) else [], known))
        expected = as_text(right.get("correct_answer", row.get("answer", "")))
        counted, named = category != ADVERSARIAL, f"{name}-q{number}"
        if not counted and named in answered:
            category, expected = ANSWERED, as_text(row["adversarial_answer"])
        adversarial = category == ADVERSARIAL
        yield Question(
            id=named,
            text=text,
            category=category,
            expected=(NOT_MENTIONED,) if adversarial else (expected,),
            turns=gold,
            sessions=frozenset(session for turn in gold if (session := session_of[turn])),
            counted=counted,
            answerable=not adversarial,
            scored=bool(gold),
            parts=_parts(expected) if category == _LISTED else (),
        )


def _parts(expected: str) -> tuple[str, ...]:
    """Of an answer that is a list; none of any other."""
    found = tuple(filter(None, (part.strip() for part in _BETWEEN.split(expected))))
    return found if len(found) > 1 else ()


def _corrections(path: Path) -> Corrections:
    fields = ("question", "golden_answer", "correct_answer", "correct_evidence")
    return {
        (as_text(record["question"]), as_text(record["golden_answer"])): record
        for record in entries(path, fields, f"an audit of {_WHAT}")
    }
