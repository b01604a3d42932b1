"""Grading without a model: by the words that the answer shares with an expected one.

It sees no paraphrase and no contradiction, so its verdicts are a lower bound on short answers and too kind
to answers that quote much; they serve to try a run out, not to be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.retrieval.tokenizer import fold, query_terms

ENOUGH = 0.5
"""Of an expected answer's words, what the lenient rule wants."""

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = {name[:length]: str(number) for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))}
_UNKNOWN = (
    "holds nothing",
    "not known",
    "unknown",
    "no information",
    "not mentioned",
    "does not say",
    "do not know",
    "don't know",
    "not specified",
    "cannot be answered",
)


def strict(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_strict`: every word of one expected answer is there."""
    return _judge(variables, 1.0)


def lenient(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_lenient`: half of the words of one expected answer are there."""
    return _judge(variables, ENOUGH)


def _judge(variables: Mapping[str, Any], wanted: float) -> dict[str, Any]:
    told = fold(variables["answer"])
    unknown = any(words in told for words in _UNKNOWN)
    if variables["kind"] == "unanswerable":
        reason = "the answer says" if unknown else "the answer does not say"
        return {"reason": f"{reason} that it is not known", "correct": unknown}
    if unknown or not told.strip():
        return {"reason": "the answer does not know", "correct": False}
    words = _words(told)
    share = max((_share(_words(expected), words) for expected in variables["expected"]), default=0.0)
    return {"reason": f"{share:.0%} of the expected words are in the answer", "correct": share >= wanted}


def _share(expected: frozenset[str], words: frozenset[str]) -> float:
    return len(expected & words) / len(expected) if expected else 0.0


def _words(text: str) -> frozenset[str]:
    """The words that tell; months as numbers, dates and numbers in parts, so that formats do not matter."""
    whole = (term for term in query_terms(text) if not any(char in term for char in "-./:"))
    return frozenset(_MONTH.get(term, term) for term in whole)
