"""Grading: what each rule lets pass, and what is kept of a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cases import each

from infinimem.evaluation.metrics import indifferent, judge
from infinimem.evaluation.model import Question
from infinimem.llm.offline import OfflineClient
from infinimem.testing import ScriptedLLM


def question(*expected: str, category: str = "single-hop", answerable: bool = True) -> Question:
    return Question("q", "When did she move?", category, expected, answerable=answerable)


@each(
    ("expected", "answer", "strict", "lenient"),
    [
        (("7 May 2023",), "She moved on 2023-05-07.", True, True),
        (("7 May 2023",), "In May 2023.", False, True),
        (("7 May 2023",), "Last spring.", False, False),
        (("Lisbon", "the capital of Portugal"), "To Lisbon, in March.", True, True),
        (("a red bicycle and a lamp",), "a red bicycle", False, True),
        (("Lisbon",), "The memory holds nothing about Lisbon.", False, False),
        (("Lisbon",), " ", False, False),
        ((), "Lisbon", False, False),
    ],
)
def test_the_offline_rules(expected: tuple[str, ...], answer: str, strict: bool, lenient: bool) -> None:
    verdicts, scores = judge(OfflineClient(), question(*expected), answer)
    assert scores == {"judge strict": strict, "judge lenient": lenient}
    assert verdicts["strict"]["correct"] is strict and verdicts["strict"]["reason"]


@each(
    ("asked", "answer", "calls"),
    [
        (question("The red bike."), "a red bike", []),
        (question("x", answerable=False), "The memory holds nothing about it.", []),
        (question("Lisbon"), "She moved to Lisbon", ["judge_strict"]),
        (question("Lisbon"), "Somewhere warm", ["judge_strict", "judge_lenient"]),
    ],
)
def test_no_verdict_is_asked_for_that_is_settled(asked: Question, answer: str, calls: list[str]) -> None:
    model = ScriptedLLM(
        {
            "judge_strict": lambda told: {"reason": "", "correct": "Lisbon" in told["answer"]},
            "judge_lenient": lambda _: {"reason": "", "correct": True},
        }
    )
    verdicts, scores = judge(model, asked, answer)
    assert [call.task for call in model.calls] == calls
    assert scores == {"judge strict": float(len(calls) < 2), "judge lenient": 1.0}
    assert set(verdicts) == {"strict", "lenient"}


@each(
    ("answer", "share", "calls"),
    [
        ("Figurines, shoes.", 1.0, 0),
        ("She bought figurines and shoes.", 1.0, 1),
        ("She bought shoes.", 0.5, 3),
    ],
)
def test_a_list_is_credited_by_its_parts(answer: str, share: float, calls: int) -> None:
    """Only where the whole is not right, and in a measure of its own."""

    def parts(told: Mapping[str, Any]) -> dict[str, Any]:
        assert told["kind"] == "list"
        rows = [(row["id"], row["text"] in told["answer"]) for row in told["rubric"]]
        return {"verdicts": [{"item": name, "reason": "", "met": met} for name, met in rows]}

    model = ScriptedLLM(
        {
            "judge_strict": lambda told: {"reason": "", "correct": "figurines" in told["answer"]},
            "judge_lenient": lambda _: {"reason": "", "correct": True},
            "judge_rubric": parts,
        }
    )
    asked = replace(question("figurines, shoes"), parts=("figurines", "shoes"))
    verdicts, scores = judge(model, asked, answer)
    assert scores == {"judge strict": float(share == 1), "judge lenient": 1.0, "judge parts": share}
    assert len(model.calls) == calls and ("parts" in verdicts) is (share < 1)


def test_a_verdict_that_cannot_be_read_is_kept_and_counts_for_nobody() -> None:
    model = ScriptedLLM(
        {"judge_strict": ["Well, yes."], "judge_lenient": ['{"reason": "r", "correct": true}']}
    )
    verdicts, scores = judge(model, question("x"), "y")
    assert scores == {"judge lenient": 1.0}
    assert verdicts["strict"]["correct"] is None and verdicts["strict"]["failure"] == "JSON_PARSE_FAIL"
    assert verdicts["strict"]["text"] == "Well, yes."
    assert verdicts["lenient"]["reason"] == "r" and verdicts["lenient"]["usage"]["calls"] == 1


@each(
    ("means", "questions", "words"),
    [
        ((1.0, 1.0), 12, "passed every answer"),
        ((0.0, 0.0), 12, "failed every answer"),
        ((1.0, 0.0), 12, None),
        ((0.9, 0.9), 12, None),
        ((1.0, 1.0), 3, None),
        ((1.0,), 12, None),
    ],
)
def test_a_judge_that_tells_nothing_apart_is_told(
    means: tuple[float, ...], questions: int, words: str | None
) -> None:
    """Seen with a model of 135M parameters, which passed all that it was shown."""
    told = indifferent({str(at): {"passed": one, "graded": questions} for at, one in enumerate(means)})
    assert (told is None) if words is None else (words in str(told))
