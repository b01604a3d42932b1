"""Grading answers by a model: a strict verdict and a lenient one, or one on each item of a rubric. All are
kept as they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from infinimem.evaluation.grading import JUDGE, JUDGE_LENIENT, JUDGE_RUBRIC
from infinimem.evaluation.metrics import normal, says_nothing
from infinimem.evaluation.model import Question
from infinimem.llm.base import LLM, Task
from infinimem.model import Usage

TASKS: Mapping[str, Task] = {"strict": JUDGE, "lenient": JUDGE_LENIENT}
_KINDS = {
    "single-session-preference": "preference",
    "temporal-reasoning": "time",
    "knowledge-update": "update",
}
"""LongMemEval's types whose answers are graded in a way of their own."""
_ORDER = "event ordering"
"""BEAM's ability whose rubric is a list in its order."""
RUBRIC, PARTS = "rubric", "parts"

_TELLING = 10
"""Questions of which hardly any two methods get all right, or none."""


def grade(rule: str) -> str:
    """The measure that a rule's verdicts give."""
    return f"judge {rule}"


def grades(question: Question) -> list[str]:
    """The measures by which an answer is graded."""
    if question.rubric:
        return [grade(RUBRIC)]
    return [grade(rule) for rule in (*TASKS, *([PARTS] if question.parts else ()))]


def judge(llm: LLM, question: Question, answer: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Grade an answer. Where its words settle it no model is asked; the generous rule is asked for only where
    the strict one said no, for it lets pass whatever that does. All items of a rubric are asked at once, and
    the score is the share that is met; so are, for a measure of their own, the parts of a list of which an
    answer gives not all.

    Args:
        llm: answers the tasks.
        question: with its expected answers, or its rubric.
        answer: as the method gave it.

    Returns:
        The verdicts by rule: {"correct", "reason", "text", "usage"}, where `correct` is None for a reply that
        could not be read and `failure` says why; and the scores of those that could ("judge strict").

    Raises:
        ModelUnavailable: the model does not answer.
    """
    if question.rubric:
        kind = "order" if question.category == _ORDER else _kind(question)
        return _by_items(llm, question, answer, RUBRIC, question.rubric, kind)
    rules = [*TASKS, PARTS] if question.parts else [*TASKS]
    if plain := _plainly_right(question, answer):
        verdict = {"correct": True, "reason": plain, "text": "", "usage": asdict(Usage())}
        return dict.fromkeys(TASKS, verdict), dict.fromkeys(map(grade, rules), 1.0)
    kind, expected = _kind(question), list(question.expected)
    told = {"question": question.text, "kind": kind, "expected": expected, "answer": answer}
    verdicts: dict[str, Any] = {}
    for rule, task in TASKS.items():
        reply = llm.complete(task, told)
        verdict = {"correct": None, "reason": "", "text": reply.text, "usage": asdict(reply.usage)}
        verdicts[rule] = {**verdict, **(reply.data or {"failure": reply.failure})}
        if verdicts[rule]["correct"]:
            verdicts = dict.fromkeys(TASKS, verdicts[rule]) | verdicts
            break
    known = {rule: verdict for rule, verdict in verdicts.items() if verdict["correct"] is not None}
    scores = {grade(rule): float(verdict["correct"]) for rule, verdict in known.items()}
    if not question.parts:
        return verdicts, scores
    if scores.get(grade("strict")):
        return verdicts, scores | {grade(PARTS): 1.0}
    parts, share = _by_items(llm, question, answer, PARTS, question.parts, "list")
    return verdicts | parts, scores | share


def _by_items(
    llm: LLM, question: Question, answer: str, rule: str, wanted: Sequence[str], kind: str
) -> tuple[dict[str, Any], dict[str, float]]:
    """A reply that leaves out an item is none that could be read."""
    items = [{"id": str(number), "text": item} for number, item in enumerate(wanted, 1)]
    told = {"question": question.text, "kind": kind, "rubric": items, "answer": answer}
    reply = llm.complete(JUDGE_RUBRIC, told)
    verdict = {"text": reply.text, "usage": asdict(reply.usage), **(reply.data or {"failure": reply.failure})}
    met = {row["item"].strip("[]. "): bool(row["met"]) for row in verdict.get("verdicts", ())}
    if not met.keys() >= {item["id"] for item in items}:
        return {rule: {"failure": "SCHEMA_FAIL", **verdict}}, {}
    return {rule: verdict}, {grade(rule): sum(met[item["id"]] for item in items) / len(items)}


def _kind(question: Question) -> str:
    return _KINDS.get(question.category, "plain") if question.answerable else "unanswerable"


def _plainly_right(question: Question, answer: str) -> str:
    """Why no judge is needed; "" where one is."""
    if not question.answerable:
        return "says nothing, and nothing is expected" if says_nothing(answer) else ""
    said = normal(answer)
    return "says what is expected" if said and said in map(normal, question.expected) else ""


def indifferent(means: Mapping[str, float], questions: int) -> str | None:
    """What to say of a judge that passed, or failed, every answer of every method.

    Args:
        means: of its strict verdicts, by method.
        questions: that were graded, of each method.
    """
    if len(means) < 2 or questions < _TELLING or set(means.values()) not in ({0.0}, {1.0}):
        return None
    what = "passed" if 1.0 in means.values() else "failed"
    return f"the judge {what} every answer of every method: its grades tell nothing, choose a better one"
