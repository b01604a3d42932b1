"""The rules that stand in for a judge: they see words in common, no paraphrase."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from infinimem.llm.offline.keep import ENGLISH
from infinimem.terms import MONTHS, fold, query_terms

_MONTH = {
    name[:length].lower(): str(number) for number, name in enumerate(MONTHS, 1) for length in (3, len(name))
}


def says_nothing(text: str) -> bool:
    return bool(ENGLISH["says nothing"].search(fold(text)))


def strict(variables: Mapping[str, Any], wanted: float = 1.0) -> dict[str, Any]:
    """Answer the task `judge_strict`: the share that is `wanted` of one expected answer's words is there."""
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


lenient = partial(strict, wanted=0.5)
"""Answer the task `judge_lenient`: half of the words of one expected answer are there."""


def rubric(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_rubric`: half of an item's words are there; an order is not looked at."""
    verdicts = []
    for item in variables["rubric"]:
        found = lenient({**variables, "expected": [ENGLISH["introduced"].sub("", item["text"])]})
        verdicts.append({"item": item["id"], "reason": found["reason"], "met": found["correct"]})
    return {"verdicts": verdicts}


def _words(text: str) -> frozenset[str]:
    """The words that tell; months as numbers, dates and numbers in parts, so that formats do not matter."""
    whole = (term for term in query_terms(text) if not any(char in term for char in "-./:"))
    return frozenset(_MONTH.get(term, term) for term in whole)
