"""Measures of rankings and of answers, means over questions, and how sure a difference of two methods is.

A piece of a ranking is scored by the ids that it holds or cites; an id counts where it comes first, relevance
is binary. Sources: recall, hit and nDCG as in Manning and others, Introduction to Information Retrieval
(2008), chapter 8; nDCG with the discount 1/log2(rank + 1) of Järvelin and Kekäläinen (2002); token F1 and
its rules by category as LoCoMo scores (Maharana and others, 2024); BLEU of Papineni and others (2002) for
single words; ROUGE-L of Lin (2004); the substring match of MemoryAgentBench.

A model may grade answers, too; offline, rules stand in for it, to try a run out (docs/BENCHMARKS.md).
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from infinimem.errors import ModelNotConfigured
from infinimem.evaluation.model import Question
from infinimem.llm.base import LLM, Task
from infinimem.llm.tasks import TEXT, list_of, object_of
from infinimem.model import Usage
from infinimem.terms import MONTHS, fold, query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CUTS = (5, 10, 20, 50)
FIRST = 20
"""Pieces of which it is told how many words of the answer each holds; xMemory's Naive RAG shows so many."""
HITS = ("1-hit", "2-hit", "multi-hit")
"""The shares of these that hold one such word, two, and more."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLES_AND = re.compile(r"\b(?:a|an|the|and)\b")
_WORDS = re.compile(r"\w+")
_NOTHING = re.compile(
    r"no information|not (?:mentioned|specified|known|stated)|unknown|holds? nothing|nothing about|"
    r"do(?:es)? not (?:know|say)|do(?:es)?n't (?:know|say)|(?:cannot|can't) be answered"
)
"""Ways to say that there is no answer. LoCoMo's own list is "no information available", "not mentioned"."""

Piece = tuple[Collection[Hashable], int]
"""The ids that a piece of evidence holds, and its tokens."""


# ── rankings ────────────────────────────────────────────────────────────────────────────────────


def reciprocal_rank(ranked: Iterable[Hashable], gold: Collection[Hashable]) -> float:
    """Return 1 over the rank of the first id in `gold`, or 0. Its mean is the MRR."""
    return next((1 / rank for rank, item in enumerate(ranked, 1) if item in gold), 0.0)


def measures(
    ranked: Iterable[Hashable], gold: Collection[Hashable], cuts: Iterable[int] = CUTS, label: str = ""
) -> dict[str, float]:
    """Return all measures of a ranking by rank, their names behind `label`.

    For each k "R@k" (recall), "N@k" (nDCG), "hit@k" (whether any is there), "all@k" (whether all are). An id
    that comes twice counts where it comes first; `gold` is not empty.
    """
    hits = [item in gold for item in dict.fromkeys(ranked)]
    scores = {}
    for k in cuts:
        share = sum(hits[:k]) / len(gold)
        gained = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(hits[:k]) if hit)
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), k)))
        scores[f"{label}R@{k}"] = share
        scores[f"{label}N@{k}"] = gained / ideal
        scores[f"{label}hit@{k}"] = float(share > 0)
        scores[f"{label}all@{k}"] = float(share == 1)
    return scores


def within(pieces: Iterable[Piece], gold: Collection[Hashable], budget: int) -> float:
    """Return the share of `gold` in the pieces that are read before one exceeds the budget of tokens."""
    seen: set[Hashable] = set()
    for ids, tokens in pieces:
        budget -= tokens
        if budget < 0:
            break
        seen.update(ids)
    return len(seen & set(gold)) / len(gold)


def tokens_until(pieces: Iterable[Piece], gold: Collection[Hashable]) -> int | None:
    """Return the tokens read until all of `gold` was seen, or None if the pieces never hold it all."""
    missing, read = set(gold), 0
    for ids, tokens in pieces:
        if not missing:
            break
        read += tokens
        missing.difference_update(ids)
    return None if missing else read


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


def says_nothing(text: str) -> bool:
    return bool(_NOTHING.search(fold(text)))


def normal(text: str) -> str:
    """Return a text in lower case, without punctuation and articles: as MemoryAgentBench compares."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def holds(text: str, expected: Iterable[str]) -> bool:
    """Return whether one of the expected answers is a part of the text, both as `normal` leaves them."""
    whole = normal(text)
    return any(wanted in whole for answer in expected if (wanted := normal(answer)))


@lru_cache(maxsize=1 << 14)
def stems(text: str) -> tuple[str, ...]:
    """Return the words that LoCoMo compares: NLTK's Porter stems, without punctuation, articles and "and"."""
    plain = _ARTICLES_AND.sub(" ", text.lower().translate(_PUNCTUATION))
    return tuple(map(_stem, plain.split()))


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise ModelNotConfigured(
            "words are compared by nltk's stems: pip install 'infinimem[bench]'"
        ) from error
    stem: str = PorterStemmer().stem(word)
    return stem


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall of words, each counted as often as both have it."""
    return _f1(stems(answer), stems(expected))


def parts_f1(answer: str, expected: str) -> float:
    """Split both at commas and return the mean over the expected parts of each one's best F1."""
    given = [stems(part) for part in answer.split(",")]
    return fmean([max(_f1(part, stems(wanted)) for part in given) for wanted in expected.split(",")])


def locomo_f1(answer: str, expected: str, category: str) -> float:
    """Return LoCoMo's F1: of "multi-hop" by parts, of "open-domain" to what is expected before a ";"."""
    if category == "multi-hop":
        return parts_f1(answer, expected)
    if category == "open-domain":
        expected = expected.partition(";")[0].strip()
    return token_f1(answer, expected)


def words(text: str) -> list[str]:
    """Return the runs of letters and digits in lower case: what BLEU and ROUGE count here."""
    return _WORDS.findall(text.lower())


def bleu1(answer: str, expected: str) -> float:
    """Return BLEU of single words, not smoothed: clipped precision, times a penalty on short answers."""
    given, wanted = words(answer), words(expected)
    if not given:
        return 0.0
    common = (Counter(given) & Counter(wanted)).total()
    brevity = 1.0 if len(given) > len(wanted) else math.exp(1 - len(wanted) / len(given))
    return brevity * common / len(given)


def rouge_l(answer: str, expected: str) -> float:
    """Return ROUGE-L: F of the longest common subsequence of words, precision and recall alike."""
    given, wanted = words(answer), words(expected)
    row = [0] * (len(wanted) + 1)
    for item in given:
        before = 0
        for at, against in enumerate(wanted, 1):
            above = row[at]
            row[at] = before + 1 if item == against else max(above, row[at - 1])
            before = above
    return _harmonic(row[-1], len(given), len(wanted))


def best(measure: Callable[[str, str], float], answer: str, expected: Iterable[str]) -> float:
    return max((measure(answer, wanted) for wanted in expected), default=0.0)


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    return _harmonic((Counter(given) & Counter(wanted)).total(), len(given), len(wanted))


def _harmonic(common: int, given: int, wanted: int) -> float:
    return 2 * common / (given + wanted) if common else 0.0


# ── over questions ──────────────────────────────────────────────────────────────────────────────


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least this share of all (0 to 1) reach; 0 of nothing."""
    import numpy as np

    return float(np.quantile([*values] or [0.0], share, method="inverted_cdf"))


def paired_difference(
    differences: Sequence[float], resamples: int = 10_000, seed: int = 7
) -> dict[str, float]:
    """Return the mean, and by bootstrap (Efron and Tibshirani, 1993) its 95 % from "low" to "high"."""
    import numpy as np

    scores = np.array(differences, dtype=np.float32)
    means = _times_drawn(len(differences), resamples, seed) @ scores / len(differences)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"mean": fmean(differences), "low": float(low), "high": float(high)}


@lru_cache(maxsize=4)
def _times_drawn(questions: int, resamples: int, seed: int) -> NDArray[np.float32]:
    """Return how often each resample draws each question: the same for all measures and methods of a run."""
    import numpy as np

    generator = np.random.default_rng(seed)
    times = np.empty((resamples, questions), dtype=np.float32)
    for row in times:
        row[:] = np.bincount(generator.integers(0, questions, questions), minlength=questions)
    return times


# ── by a judge ──────────────────────────────────────────────────────────────────────────────────

_ASKED = frozenset("question kind expected answer".split())
_VERDICT = object_of(reason=TEXT, correct={"type": "boolean"})

JUDGE = Task("judge_strict", _ASKED, _VERDICT, f"{__name__}:strict", 256)
"""Whether an answer says all of any of the wordings `expected`, by the rules for its `kind` (`_KINDS`)."""

JUDGE_LENIENT = Task("judge_lenient", _ASKED, _VERDICT, f"{__name__}:lenient", 256)
"""The same under the rule of published tables, which lets vague answers pass."""

JUDGE_RUBRIC = Task(
    "judge_rubric",
    frozenset("question kind rubric answer".split()),
    object_of(verdicts=list_of(item=TEXT, reason=TEXT, met={"type": "boolean"})),
    f"{__name__}:rubric",
    1024,
)
"""Which items of a rubric, [{"id", "text"}, …] with ids from 1, an answer meets; `kind`: "list", too."""

TASKS = (JUDGE, JUDGE_LENIENT, JUDGE_RUBRIC)

_RULES = {"strict": JUDGE, "lenient": JUDGE_LENIENT}
_KINDS = {
    "single-session-preference": "preference",
    "temporal-reasoning": "time",
    "knowledge-update": "update",
    "event ordering": "order",
}
"""Categories of LongMemEval and BEAM whose answers are graded in a way of their own."""
_TELLING = 10
"""Questions of which hardly any two methods get all right, or none."""


def grades(question: Question) -> list[str]:
    if question.rubric:
        return ["judge rubric"]
    return ["judge strict", "judge lenient", *(["judge parts"] if question.parts else ())]


def judge(llm: LLM, question: Question, answer: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Grade an answer: return the raw verdicts by rule, and the scores of those that could be read.

    Where its words settle it no model is asked; the generous rule is asked for only where the strict one said
    no, for it lets pass whatever that does. All items of a rubric are asked at once, and the score is the
    share that is met; so are, for a measure of their own, the parts of a list of which an answer gives not
    all. A verdict has "correct", None for a reply that could not be read, "reason", "text", "usage".
    """
    kind = _KINDS.get(question.category, "plain") if question.answerable else "unanswerable"
    told = {"question": question.text, "kind": kind, "answer": answer}
    if question.rubric:
        return _by_items(llm, told, "rubric", question.rubric)
    if plain := _plainly_right(question, answer):
        verdict = {"correct": True, "reason": plain, "text": "", "usage": asdict(Usage())}
        return dict.fromkeys(_RULES, verdict), dict.fromkeys(grades(question), 1.0)
    verdicts: dict[str, Any] = {}
    for rule, task in _RULES.items():
        reply = llm.complete(task, {**told, "expected": list(question.expected)})
        verdict = {"correct": None, "reason": "", "text": reply.text, "usage": asdict(reply.usage)}
        verdicts[rule] = {**verdict, **(reply.data or {"failure": reply.failure})}
        if verdicts[rule]["correct"]:
            verdicts = dict.fromkeys(_RULES, verdicts[rule]) | verdicts
            break
    known = {rule: one["correct"] for rule, one in verdicts.items() if one["correct"] is not None}
    scores = {f"judge {rule}": float(correct) for rule, correct in known.items()}
    if not question.parts:
        return verdicts, scores
    if known.get("strict"):
        return verdicts, scores | {"judge parts": 1.0}
    parts, share = _by_items(llm, told | {"kind": "list"}, "parts", question.parts)
    return verdicts | parts, scores | share


def _by_items(
    llm: LLM, told: Mapping[str, Any], rule: str, wanted: Sequence[str]
) -> tuple[dict[str, Any], dict[str, float]]:
    """A reply that leaves out an item is none that could be read."""
    items = [{"id": str(number), "text": item} for number, item in enumerate(wanted, 1)]
    reply = llm.complete(JUDGE_RUBRIC, {**told, "rubric": items})
    verdict = {"text": reply.text, "usage": asdict(reply.usage), **(reply.data or {"failure": reply.failure})}
    met = {row["item"].strip("[]. "): bool(row["met"]) for row in verdict.get("verdicts", ())}
    if not met.keys() >= {item["id"] for item in items}:
        return {rule: {"failure": "SCHEMA_FAIL", **verdict}}, {}
    return {rule: verdict}, {f"judge {rule}": sum(met[item["id"]] for item in items) / len(items)}


def _plainly_right(question: Question, answer: str) -> str:
    """Why no judge is needed; "" where one is."""
    if not question.answerable:
        return "says nothing, and nothing is expected" if says_nothing(answer) else ""
    said = normal(answer)
    return "says what is expected" if said and said in map(normal, question.expected) else ""


def indifferent(means: Mapping[str, float], questions: int) -> str | None:
    """Say so of a judge that passed, or failed, every answer of every method, by its strict verdicts."""
    if len(means) < 2 or questions < _TELLING or set(means.values()) not in ({0.0}, {1.0}):
        return None
    what = "passed" if 1.0 in means.values() else "failed"
    return f"the judge {what} every answer of every method: its grades tell nothing, choose a better one"


# ── the rules that stand in for a judge ─────────────────────────────────────────────────────────

_ENOUGH = 0.5
"""Of an expected answer's words, what the lenient rule wants."""
_MONTH = {
    name[:length].lower(): str(number) for number, name in enumerate(MONTHS, 1) for length in (3, len(name))
}
_INTRODUCED = re.compile(r"^.{0,24}response should \w+: ")
"""What BEAM puts before an item of a rubric."""


def rubric(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_rubric`: half of an item's words are there; an order is not looked at."""
    verdicts = []
    for item in variables["rubric"]:
        found = _compare({**variables, "expected": [_INTRODUCED.sub("", item["text"])]}, _ENOUGH)
        verdicts.append({"item": item["id"], "reason": found["reason"], "met": found["correct"]})
    return {"verdicts": verdicts}


def _compare(variables: Mapping[str, Any], wanted: float) -> dict[str, Any]:
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


strict, lenient = partial(_compare, wanted=1.0), partial(_compare, wanted=_ENOUGH)
"""Answer the tasks `judge_strict` and `judge_lenient`."""


def _words(text: str) -> frozenset[str]:
    """The words that tell; months as numbers, dates and numbers in parts, so that formats do not matter."""
    whole = (term for term in query_terms(text) if not any(char in term for char in "-./:"))
    return frozenset(_MONTH.get(term, term) for term in whole)
