"""Measures of an answer against expected ones, by their words. No model is asked.

Sources: token F1 and its rules by category as LoCoMo scores (Maharana and others, 2024); BLEU of Papineni
and others (2002) for single words; ROUGE-L of Lin (2004); the substring match of MemoryAgentBench.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from infinimem.evaluation.grading import says_nothing
from infinimem.evaluation.metrics.porter import stem

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLES_AND = re.compile(r"\b(?:a|an|the|and)\b")
_WORDS = re.compile(r"\w+")


def normal(text: str) -> str:
    """Lower case, without punctuation and articles: as MemoryAgentBench compares."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def holds(text: str, expected: Iterable[str]) -> bool:
    """Whether one of the expected answers is a part of the text, both as `normal` leaves them."""
    whole = normal(text)
    return any(wanted in whole for answer in expected if (wanted := normal(answer)))


def stems(text: str) -> tuple[str, ...]:
    """A text's words as LoCoMo compares them: lower case, no punctuation, articles and "and"; stems."""
    plain = _ARTICLES_AND.sub(" ", text.lower().translate(_PUNCTUATION))
    return tuple(stem(word) for word in plain.split())


def token_f1(answer: str, expected: str) -> float:
    """Harmonic mean of precision and recall of the words, each counted as often as both have it."""
    return _f1(stems(answer), stems(expected))


def parts_f1(answer: str, expected: str) -> float:
    """For an answer of several parts, split at commas: each expected part's best F1, averaged."""
    given = [stems(part) for part in answer.split(",")]
    return _mean([max(_f1(part, stems(wanted)) for part in given) for wanted in expected.split(",")])


def locomo_f1(answer: str, expected: str, category: str) -> float:
    """LoCoMo's F1 under the rule of the question's category.

    Args:
        answer: as it was given.
        expected: one answer of the data set; not looked at for "adversarial".
        category: "multi-hop" splits at commas; "open-domain" takes what is expected before a ";";
            "adversarial" is right where the answer says that there is none.
    """
    if category == "adversarial":
        return float(says_nothing(answer))
    if category == "multi-hop":
        return parts_f1(answer, expected)
    if category == "open-domain":
        expected = expected.partition(";")[0].strip()
    return token_f1(answer, expected)


def words(text: str) -> list[str]:
    """Runs of letters and digits in lower case: what BLEU and ROUGE count here."""
    return _WORDS.findall(text.lower())


def bleu1(answer: str, expected: str) -> float:
    """BLEU of single words, not smoothed: clipped precision, times a penalty on answers that are short."""
    given, wanted = words(answer), words(expected)
    if not given:
        return 0.0
    common = (Counter(given) & Counter(wanted)).total()
    brevity = 1.0 if len(given) > len(wanted) else math.exp(1 - len(wanted) / len(given))
    return brevity * common / len(given)


def rouge_l(answer: str, expected: str) -> float:
    """ROUGE-L: F of the longest common subsequence of words, precision and recall alike."""
    given, wanted = words(answer), words(expected)
    return _harmonic(_common_subsequence(given, wanted), len(given), len(wanted))


def best(measure: Callable[[str, str], float], answer: str, expected: Iterable[str]) -> float:
    """The measure against the expected answer that fits best; 0 where none is expected."""
    return max((measure(answer, wanted) for wanted in expected), default=0.0)


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    return _harmonic((Counter(given) & Counter(wanted)).total(), len(given), len(wanted))


def _harmonic(common: int, given: int, wanted: int) -> float:
    return 2 * common / (given + wanted) if common else 0.0


def _common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    row = [0] * (len(other) + 1)
    for item in one:
        before = 0
        for at, against in enumerate(other, 1):
            above = row[at]
            row[at] = before + 1 if item == against else max(above, row[at - 1])
            before = above
    return row[-1]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
