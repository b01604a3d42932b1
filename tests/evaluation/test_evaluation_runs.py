"""Runs: resumed after whatever ended them, never asked twice, the same with one thread or several."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import Small, request, results

from infinimem.errors import ModelUnavailable, UsageError
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import FILE, Run
from infinimem.llm.base import Reply
from infinimem.model import Usage
from infinimem.testing import ScriptedLLM

RETRIEVAL = ("infini-retrieve", "bm25")


def start(wanted: Any, benchmark: Any = None) -> int:
    """How many questions are done; none failed by itself."""
    assert Run(wanted, benchmark or Small()).start(lambda done, total: None, 0) == 0
    return len(results(wanted.out))


def answerer(spends: int = 0) -> ScriptedLLM:
    reply = Reply({"answer": "Lisbon", "cites": []}, usage=Usage(1, spends, 0))
    return ScriptedLLM({"answer": lambda _: reply})


def test_a_run_of_retrieval(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    run = Run(request(tmp_path, *RETRIEVAL, retrieval_only=True), Small())
    size = run.estimate()
    assert (size.questions, size.cases, size.total.calls) == (16, 4, 0)
    assert not (tmp_path / "out").exists(), "an estimate writes nothing"
    assert run.start(lambda done, total: steps.append((done, total)), 20) == 0
    assert steps == [(number, 20) for number in range(1, 21)]
    found = results(tmp_path / "out")
    assert len(found) == 16 and {result.scores["R@5"] for result in found} == {1.0}
    assert all(result.answer is None and not result.verdicts for result in found)
    assert not (tmp_path / "out/work").exists()
    config = write_report(tmp_path / "out")["config"]
    assert config["methods"] == list(RETRIEVAL) and config["models"]["judge"] is None
    assert config["data"]["file"] == "small.json" and len(config["data"]["sha256"]) == 64


def test_answers_are_scored_and_judged_and_their_cost_is_told(tmp_path: Path) -> None:
    judge = ScriptedLLM(
        dict.fromkeys(("judge_strict", "judge_lenient"), lambda _: {"reason": "so", "correct": True})
    )
    wanted = request(tmp_path, "bm25", "none", answerer=answerer(7), judge=judge, keep=True)
    assert start(wanted) == 16
    first = results(tmp_path / "out")[0]
    assert first.answer == "Lisbon" and first.scores == {
        "R@5": 1.0,
        "exact": 1.0,
        "judge strict": 1.0,
        "judge lenient": 1.0,
    }
    assert first.usage == {"answer": Usage(1, 7, 0)}, "the judge's calls are not the method's"
    assert first.verdicts["strict"]["reason"] == "says what is expected"
    assert judge.calls, "of other questions"


def test_an_answer_that_failed_is_scored_zero(tmp_path: Path) -> None:
    """Bug guarded: the line that is quoted for want of an answer held what was expected, and counted."""
    broken = ScriptedLLM({"answer": lambda _: Reply(None, "TRUNCATED", text='{"answer": "Lis')})
    judge = ScriptedLLM({})
    start(request(tmp_path, "bm25", "none", "infini-bm25", answerer=broken, judge=judge))
    found = results(tmp_path / "out")
    assert len(found) == 24 and not judge.calls
    assert {result.failed for result in found} == {"TRUNCATED"}
    for result in found:
        answered = {name: score for name, score in result.scores.items() if name != "R@5"}
        assert answered == {"exact": 0.0, "judge strict": 0.0, "judge lenient": 0.0}
        assert result.verdicts == {}
    assert any("Lisbon" in (result.answer or "") for result in found), "what was quoted is kept"
    assert max(result.scores["R@5"] for result in found) == 1, "what was found is scored as ever"


def test_what_is_done_is_not_asked_again(tmp_path: Path) -> None:
    first, second = answerer(), answerer()
    start(request(tmp_path, "bm25", answerer=first))
    with closing(sqlite3.connect(tmp_path / "out" / FILE)) as rows, rows:
        rows.execute("DELETE FROM score WHERE result > 3")
        rows.execute("DELETE FROM spent WHERE question > 'one-q2'")
        rows.execute("DELETE FROM result WHERE id > 3")
    before = (tmp_path / "out" / FILE).read_bytes()
    assert Run(request(tmp_path, "bm25", answerer=second), Small()).estimate().questions == 5
    assert (tmp_path / "out" / FILE).read_bytes() == before, "an estimate writes nothing"
    assert start(request(tmp_path, "bm25", answerer=second)) == 8
    assert (len(first.calls), second.calls) == (8, []), "three are there, of the others the replies are"
    assert len({result.question for result in results(tmp_path / "out")}) == 8
    shutil.copytree(tmp_path / "out/replies", tmp_path / "two/replies")
    other = replace(request(tmp_path, "bm25", answerer=second, run=2), out=tmp_path / "two")
    assert start(other) == 8 and len(second.calls) == 8, "another run asks anew"


def test_the_cap_ends_a_run_that_then_goes_on(tmp_path: Path) -> None:
    wanted = request(tmp_path, "bm25", answerer=answerer(100), max_tokens=250)
    with pytest.raises(ModelUnavailable, match="cap of 250 tokens is spent; 3 questions are done") as told:
        start(wanted)
    assert "the same command goes on" in str(told.value) and "\n" not in str(told.value)
    assert len(results(tmp_path / "out")) == 3
    assert start(replace(wanted, max_tokens=None)) == 8


def test_a_model_that_is_gone_ends_a_run_in_one_line(tmp_path: Path) -> None:
    answers = iter(["Lisbon", "Rita"])
    dies = ScriptedLLM(
        {
            "answer": lambda _: (
                {"answer": text, "cites": []}
                if (text := next(answers, None))
                else ModelUnavailable("no answer from localhost:1")
            )
        }
    )
    with pytest.raises(ModelUnavailable, match="localhost:1; 2 questions are done"):
        start(request(tmp_path, "bm25", "none", answerer=dies))
    assert start(request(tmp_path, "bm25", "none", answerer=answerer())) == 16


def test_a_run_with_another_config_is_refused(tmp_path: Path) -> None:
    wanted = request(tmp_path, "bm25", retrieval_only=True)
    start(wanted)
    for other, word in (
        (replace(wanted, methods=("bm25", "grep")), "other methods"),
        (replace(wanted, limit=3), "other limit"),
        (replace(wanted, retrieval_only=False), "other budget"),
    ):
        with pytest.raises(UsageError, match=word):
            start(other)
        with pytest.raises(UsageError, match=word):
            Run(other, Small()).estimate()
    wanted.data.write_text("[1]")
    with pytest.raises(UsageError, match="other data"):
        start(wanted)
    assert start(replace(request(tmp_path, "bm25", retrieval_only=True), jobs=3, keep=True)) == 8
