"""BEAM: the official folders, gold messages, and answers graded item by item."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import request, results

from infinimem.errors import UsageError
from infinimem.evaluation.datasets import benchmark
from infinimem.evaluation.model import Case, Question
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import Run
from infinimem.llm.base import Reply
from infinimem.testing import ScriptedLLM


def batch(day: str, *said: tuple[int, str]) -> dict[str, Any]:
    """As the official files have it: the day stands at the first message."""
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[at % 2], "id": name, "content": text}
        for at, (name, text) in enumerate(said)
    ]
    messages[0]["time_anchor"] = day
    return {"batch_number": 1, "turns": [messages[:2], messages[2:]], "time_anchor": None}


CHAT = [
    batch("March-15-2024", (0, "I moved to Lisbon. ->-> 1,1"), (1, "Good."), (2, "Use inches.->-> 1,2)")),
    batch("April-2-2024", (3, "I moved to Porto.\n ->-> 2,N/A"), (4, "It is 3 ->-> 4 there.\nBye.")),
]
ASKED: dict[str, Any] = {
    "abstention": [{"question": "Who is Rita?", "ideal_response": "None.", "rubric": ["there is nothing"]}],
    "knowledge_update": [
        {
            "question": "Where do I live?",
            "answer": "Porto",
            "source_chat_ids": {"original_info": [0], "updated_info": [3]},
            "rubric": ["LLM response should state: Porto", "LLM response should mention: moved, in April"],
        }
    ],
    "event_ordering": [
        {"question": "In which order?", "answer": "x", "source_chat_ids": [2, 99], "rubric": ["a", "b"]}
    ],
}


def folder(path: Path, chat: Any = CHAT, name: str = "chat.json") -> Path:
    (path / "probing_questions").mkdir(parents=True)
    (path / name).write_text(json.dumps(chat))
    (path / "probing_questions" / "probing_questions.json").write_text(json.dumps(ASKED))
    return path


def cases(path: Path, limit: int | None = None) -> list[Case]:
    return list(benchmark("beam").cases(path, limit))


def test_the_official_folders(tmp_path: Path) -> None:
    for name in ("10", "9"):
        folder(tmp_path / "chats" / "100K" / name)
    first, second = cases(tmp_path / "chats")
    assert (first.name, second.name) == ("100K-9", "100K-10")
    assert [(turn.turn, turn.session, turn.time, turn.role) for turn in first.turns] == [
        ("0", "s001", "2024-03-15", "user"),
        ("1", "s001", "2024-03-15", "assistant"),
        ("2", "s001", "2024-03-15", "user"),
        ("3", "s002", "2024-04-02", "user"),
        ("4", "s002", "2024-04-02", "assistant"),
    ]
    assert [turn.text for turn in first.turns] == [
        *("I moved to Lisbon.", "Good.", "Use inches.", "I moved to Porto."),
        "It is 3 ->-> 4 there.\nBye.",
    ], "a label stands at the end"
    nothing, update, order = first.questions
    assert (nothing.category, nothing.answerable, nothing.scored) == ("abstention", False, False)
    assert update.turns == {"0", "3"} and update.sessions == {"s001", "s002"}
    assert update.expected == ("Porto",)
    assert order.turns == {"2"} and len(update.rubric) == 2
    assert len(cases(tmp_path / "chats", 1)) == 1, "a conversation that nothing is asked about is not read in"
    assert [case.name for case in cases(tmp_path / "chats" / "100K" / "9")] == ["100K-9"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: (path / "chat.json").unlink(), "holds no chat.json"),
        (lambda path: (path / "probing_questions/probing_questions.json").unlink(), "without its probing_q"),
        (
            lambda path: (path / "probing_questions/probing_questions.json").write_text(
                '{"abstention": [{"question": "Who?", "rubric": []}]}'
            ),
            r"abstention 0 of 100K-1: no text, or no rubric",
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_told(tmp_path: Path, spoil: Any, told: str) -> None:
    spoil(folder(tmp_path / "100K" / "1"))
    with pytest.raises(UsageError, match=told):
        cases(tmp_path)


def test_no_label_reaches_a_memory(shared_data: Path) -> None:
    """The real data: labels stand in two spellings there, and behind line ends."""
    found = cases(shared_data / "beam_dev.json.xz")
    assert len(found) == 10 and sum(len(case.questions) for case in found) == 200
    assert not [turn.turn for case in found for turn in case.turns if "->->" in turn.text]
    assert all(turn.time for case in found for turn in case.turns)
    assert len({question.category for case in found for question in case.questions}) == 10


# ── grading ─────────────────────────────────────────────────────────────────────────────────────


def question(*rubric: str, category: str = "summarization", answerable: bool = True) -> Question:
    return Question("q", "What?", category, ("x",), answerable=answerable, rubric=rubric)


def verdict(*met: bool) -> dict[str, Any]:
    return {"verdicts": [{"item": str(at), "reason": "", "met": one} for at, one in enumerate(met, 1)]}


def test_a_run_tells_abilities_apart(tmp_path: Path) -> None:
    data = folder(tmp_path / "100K" / "1")
    replies = {"Where do I live?": {"answer": "Porto", "cites": []}}
    broken = Reply(None, "TRUNCATED", text="{")
    answerer = ScriptedLLM({"answer": lambda told: replies.get(told["question"], broken)})
    wanted = request(tmp_path, "recent", answerer=answerer)
    judged = Run(replace(wanted, data=data, judge=answerer), benchmark("beam")).estimate()
    usage = {phase: spent.calls for (_, phase), spent in judged.usage.items()}
    assert usage == {"answering": 3, "judging": 3}
    assert judged.usage["recent", "judging"].tokens_out == 60 * 5, "a verdict on each item"
    run = Run(replace(wanted, data=data), benchmark("beam"))
    assert run.estimate().questions == 3
    assert run.start(lambda *_: None, 0) == 0
    scores = {result.category: result.scores.get("judge rubric") for result in results(tmp_path / "out")}
    assert scores == {"abstention": 0.0, "event ordering": 0.0, "knowledge update": 0.5}
    report = write_report(tmp_path / "out")
    assert report["primary"] == "judge rubric" and report["methods"]["recent"]["ungraded"] == 0
    text = (tmp_path / "out/report.md").read_text()
    assert "## judge rubric by category" in text and "## R@5 by category" in text
