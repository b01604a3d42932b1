"""The language tasks of grading (llm/tasks.py), and their rules: by the words shared with an expected answer.

The rules see no paraphrase and no contradiction, so their verdicts are a lower bound on short answers and too
kind to answers that quote much; they serve to try a run out, not to be published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from infinimem.evaluation.metrics import says_nothing
from infinimem.llm.base import Task
from infinimem.llm.tasks import TEXT, list_of, object_of
from infinimem.terms import MONTHS, fold, query_terms

_ASKED = frozenset("question kind expected answer".split())
_VERDICT = object_of(reason=TEXT, correct={"type": "boolean"})
_HERE = "infinimem.evaluation.grading"

JUDGE = Task("judge_strict", _ASKED, _VERDICT, f"{_HERE}:strict", 256)
"""Whether an answer says all that is expected. `expected`: wordings of which any counts; `kind`:
"preference", "time", "update", "unanswerable", or "plain"."""

JUDGE_LENIENT = Task("judge_lenient", _ASKED, _VERDICT, f"{_HERE}:lenient", 256)
"""The same under the rule of published tables, which lets vague answers pass."""

JUDGE_RUBRIC = Task(
    "judge_rubric",
    frozenset("question kind rubric answer".split()),
    object_of(verdicts=list_of(item=TEXT, reason=TEXT, met={"type": "boolean"})),
    f"{_HERE}:rubric",
    1024,
)
"""Which items of a rubric an answer meets. `rubric`: [{"id", "text"}, …], ids from 1; `kind`: "list",
"order", "unanswerable", or "plain"."""

ALL = (JUDGE, JUDGE_LENIENT, JUDGE_RUBRIC)

ENOUGH = 0.5
"""Of an expected answer's words, what the lenient rule wants."""

_MONTH = {
    name[:length].lower(): str(number) for number, name in enumerate(MONTHS, 1) for length in (3, len(name))
}
_INTRODUCED = re.compile(r"^.{0,24}response should \w+: ")
"""What BEAM puts before an item of a rubric."""


def strict(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_strict`: every word of one expected answer is there."""
    return _judge(variables, 1.0)


def lenient(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_lenient`: half of the words of one expected answer are there."""
    return _judge(variables, ENOUGH)


def rubric(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_rubric`: half of an item's words are there; an order is not looked at."""
    verdicts = []
    for item in variables["rubric"]:
        found = _judge({**variables, "expected": [_INTRODUCED.sub("", item["text"])]}, ENOUGH)
        verdicts.append({"item": item["id"], "reason": found["reason"], "met": found["correct"]})
    return {"verdicts": verdicts}


def _judge(variables: Mapping[str, Any], wanted: float) -> dict[str, Any]:
    told = fold(variables["answer"])
    unknown = says_nothing(told)
    if variables["kind"] == "unanswerable":
        reason = "the answer says" if unknown else "the answer does not say"
        return {"reason": f"{reason} that it is not known", "correct": unknown}
    if unknown or not told.strip():
        return {"reason": "the answer does not know", "correct": False}
    words = _words(told)
    expected = filter(None, map(_words, variables["expected"]))
    share = max((len(one & words) / len(one) for one in expected), default=0.0)
    return {"reason": f"{share:.0%} of the expected words are in the answer", "correct": share >= wanted}


def _words(text: str) -> frozenset[str]:
    """The words that tell; months as numbers, dates and numbers in parts, so that formats do not matter."""
    whole = (term for term in query_terms(text) if not any(char in term for char in "-./:"))
    return frozenset(_MONTH.get(term, term) for term in whole)
