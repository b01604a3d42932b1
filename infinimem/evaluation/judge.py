"""Grading answers by a model: a strict verdict and a lenient one, or one on each item of a rubric. All are
kept as they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from infinimem.evaluation.metrics.answers import normal
from infinimem.evaluation.model import Question
from infinimem.llm.base import LLM, Task
from infinimem.llm.offline.judge import says_nothing
from infinimem.llm.tasks import JUDGE, JUDGE_LENIENT, JUDGE_RUBRIC
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
RUBRIC = "rubric"

_TELLING = 10
"""Questions of which hardly any two methods get all right, or none."""


def grade(rule: str) -> str:
    """The measure that a rule's verdicts give."""
    return f"judge {rule}"


def grades(question: Question) -> list[str]:
    """The measures by which an answer is graded."""
    return [grade(RUBRIC)] if question.rubric else list(map(grade, TASKS))


def judge(llm: LLM, question: Question, answer: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Grade an answer. Where its words settle it no model is asked; the generous rule is asked for only where
    the strict one said no, for it lets pass whatever that does. All items of a rubric are asked at once, and
    the score is the share that is met.

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
        return _by_rubric(llm, question, answer)
    if plain := _plainly_right(question, answer):
        verdict = {"correct": True, "reason": plain, "text": "", "usage": asdict(Usage())}
        return dict.fromkeys(TASKS, verdict), dict.fromkeys(map(grade, TASKS), 1.0)
    kind = _KINDS.get(question.category, "plain") if question.answerable else "unanswerable"
    told = {"question": question.text, "kind": kind, "expected": list(question.expected), "answer": answer}
    verdicts: dict[str, Any] = {}
    for rule, task in TASKS.items():
        reply = llm.complete(task, told)
        verdict = {"correct": None, "reason": "", "text": reply.text, "usage": asdict(reply.usage)}
        verdicts[rule] = {**verdict, **(reply.data or {"failure": reply.failure})}
        if verdicts[rule]["correct"]:
            verdicts = dict.fromkeys(TASKS, verdicts[rule]) | verdicts
            break
    known = {rule: verdict for rule, verdict in verdicts.items() if verdict["correct"] is not None}
    return verdicts, {grade(rule): float(verdict["correct"]) for rule, verdict in known.items()}


def _by_rubric(llm: LLM, question: Question, answer: str) -> tuple[dict[str, Any], dict[str, float]]:
    """A reply that leaves out an item is none that could be read."""
    kind = "plain" if question.answerable else "unanswerable"
    items = [{"id": str(number), "text": item} for number, item in enumerate(question.rubric, 1)]
    told = {
        "question": question.text,
        "kind": "order" if question.category == _ORDER else kind,
        "rubric": items,
        "answer": answer,
    }
    reply = llm.complete(JUDGE_RUBRIC, told)
    verdict = {"text": reply.text, "usage": asdict(reply.usage), **(reply.data or {"failure": reply.failure})}
    met = {row["item"].strip("[]. "): bool(row["met"]) for row in verdict.get("verdicts", ())}
    if not met.keys() >= {item["id"] for item in items}:
        return {RUBRIC: {"failure": "SCHEMA_FAIL", **verdict}}, {}
    return {RUBRIC: verdict}, {grade(RUBRIC): sum(met[item["id"]] for item in items) / len(items)}


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
