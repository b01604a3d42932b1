"""Grading answers by a model: a strict verdict and a lenient one, or one on each item of a rubric.

Offline, rules stand in for the model: by the words shared with an expected answer. They see no paraphrase and
no contradiction, so their verdicts are a lower bound on short answers and too kind to answers that quote
much; they serve to try a run out, not to be published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from infinimem.evaluation.metrics import normal, says_nothing
from infinimem.evaluation.model import Question
from infinimem.llm.base import LLM, Task
from infinimem.llm.tasks import TEXT, list_of, object_of
from infinimem.model import Usage
from infinimem.terms import MONTHS, fold, query_terms

_ASKED = frozenset("question kind expected answer".split())
_VERDICT = object_of(reason=TEXT, correct={"type": "boolean"})
_HERE = "infinimem.evaluation.judge"

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


# ── the rules ───────────────────────────────────────────────────────────────────────────────────

_ENOUGH = 0.5
"""Of an expected answer's words, what the lenient rule wants."""
_MONTH = {
    name[:length].lower(): str(number) for number, name in enumerate(MONTHS, 1) for length in (3, len(name))
}
_INTRODUCED = re.compile(r"^.{0,24}response should \w+: ")
"""What BEAM puts before an item of a rubric."""


def strict(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_strict`: every word of one expected answer is there."""
    return _compare(variables, 1.0)


def lenient(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_lenient`: half of the words of one expected answer are there."""
    return _compare(variables, _ENOUGH)


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


def _words(text: str) -> frozenset[str]:
    """The words that tell; months as numbers, dates and numbers in parts, so that formats do not matter."""
    whole = (term for term in query_terms(text) if not any(char in term for char in "-./:"))
    return frozenset(_MONTH.get(term, term) for term in whole)
