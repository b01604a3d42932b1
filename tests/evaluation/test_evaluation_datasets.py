"""Data sets: what is read from official files, written here in small, and how a ranking of it is scored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infinimem.errors import UsageError
from infinimem.evaluation.datasets import NAMES, benchmark
from infinimem.evaluation.datasets.dialogues import NOT_MENTIONED
from infinimem.evaluation.metrics import HITS
from infinimem.evaluation.model import Case, DataSet, Found
from infinimem.importers import read_turns

LOCOMO = [
    {
        "sample_id": f"conv-{number}",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "I moved to Lisbon."},
                {"speaker": "Mel", "dia_id": "D1:2", "text": "My dentist plays the violin."},
                {"speaker": "Mel", "dia_id": "D1:3", "text": ""},
            ],
            "session_2_date_time": "2:00 pm on 9 May, 2023",
            "session_2": [{"speaker": "Ana", "dia_id": "D2:1", "text": "In 2022 I painted."}],
        },
        "qa": [
            {"question": "Where did Ana move?", "answer": "Lisbon", "evidence": ["D1:1"], "category": 4},
            {"question": "What do they do?", "answer": "a, b", "evidence": ["D1:2; D2:1"], "category": 1},
            {"question": "When did Ana paint?", "answer": 2022, "evidence": ["D1:1"], "category": 2},
            {
                "question": "Is Ana well?",
                "answer": "Yes; she is",
                "evidence": ["D9:9", "D1:3"],
                "category": 3,
            },
            {"question": "Who sings?", "adversarial_answer": "Mel", "evidence": ["D1:2"], "category": 5},
            {"question": "Who plays?", "answer": "the dentist", "evidence": ["D1:2"], "category": 4},
        ],
    }
    for number in (1, 2)
]


def longmemeval(name: str, users: bool = True) -> dict[str, Any]:
    said = [
        {"role": "user", "content": "I bought a piano.", "has_answer": users},
        {"role": "assistant", "content": "A grand one?", "has_answer": True},
    ]
    other = [{"role": "user", "content": "It rains.", "has_answer": False}]
    return {
        "question_id": name,
        "question_type": "multi-session",
        "question": "What did I buy?",
        "answer": 3,
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_session_ids": ["s2", "s1"],
        "haystack_dates": ["2023/05/21 (Sun) 00:41", "2023/05/20 (Sat) 00:41"],
        "haystack_sessions": [said, other],
        "answer_session_ids": ["s2"],
    }


FACTS = [
    {
        "context": "Here is a list of facts:\n0. Ana lives in Porto.\n1. Ana lives in Lisbon.\n",
        "questions": ["Where does Ana live?", "Who?"],
        "answers": [["Lisbon", "Lisboa"], ["Ana"]],
        "metadata": {"source": "factconsolidation_sh_6k"},
    }
]


@pytest.fixture
def cases(tmp_path: Path) -> Callable[..., list[Case]]:
    def read(data: DataSet, records: Any, limit: int | None = None) -> list[Case]:
        path = tmp_path / "data.json"
        path.write_text(json.dumps(records))
        return list(data.cases(path, limit))

    return read


def found(*turns: str, text: str = "", tokens: int = 600) -> Found:
    return Found(text, turns, tokens)


def test_names() -> None:
    assert [benchmark(name).name for name in NAMES] == list(NAMES)
    with pytest.raises(UsageError, match="use one of locomo, locomo-plus, longmemeval"):
        benchmark("locom")
    with pytest.raises(UsageError, match="locomo only"):
        benchmark("longmemeval", Path("audit.json"))


class TestLoCoMo:
    def test_questions(self, cases: Callable[..., list[Case]]) -> None:
        one, two = cases(benchmark("locomo"), LOCOMO)
        assert (one.name, two.name) == ("conv-1", "conv-2")
        assert [turn.turn for turn in one.turns] == ["D1:1", "D1:2", "D2:1"], "an empty turn is none"
        move, both, paint, well, sings, _ = one.questions
        assert (move.id, move.category, move.expected) == ("conv-1-q0", "single-hop", ("Lisbon",))
        assert both.turns == {"D1:2", "D2:1"}, "glued ids are taken apart"
        assert both.sessions == {"conv-1-s01", "conv-1-s02"}
        assert paint.expected == ("2022",)
        assert not well.turns and not well.scored and well.counted, "ids that name no turn are dropped"
        assert (sings.counted, sings.answerable, sings.scored) == (False, False, True)
        assert sings.expected == (NOT_MENTIONED,)

    def test_a_label_that_is_wrong_is_counted_apart(self, cases: Callable[..., list[Case]]) -> None:
        """The conversation tells what question 95 of conv-30 says it does not."""
        never = {"question": "?", "adversarial_answer": "a cup", "evidence": ["D1:1"], "category": 5}
        (case,) = cases(benchmark("locomo"), [LOCOMO[0] | {"sample_id": "conv-30", "qa": [never] * 96}])
        *others, answered = case.questions
        assert {(one.category, one.expected, one.answerable) for one in others} == {
            ("adversarial", (NOT_MENTIONED,), False)
        }
        assert (answered.category, answered.expected) == ("adversarial, answered", ("a cup",))
        assert answered.answerable and not answered.counted

    def test_the_limit_is_of_each_category(self, cases: Callable[..., list[Case]]) -> None:
        asked = cases(benchmark("locomo"), LOCOMO, 1)
        assert [[q.id for q in case.questions] for case in asked] == [[f"conv-1-q{n}" for n in range(5)]]
        asked = cases(benchmark("locomo"), LOCOMO, 3)
        assert [q.id for q in asked[1].questions if q.category == "single-hop"] == ["conv-2-q0"]

    def test_retrieval(self, cases: Callable[..., list[Case]]) -> None:
        data = benchmark("locomo")
        case = cases(data, LOCOMO)[0]
        scores = data.retrieval(case, case.questions[1], [found("D1:1", "D1:2"), found("D2:1")])
        assert (scores["R@5"], scores["all@5"], scores["R in 512"]) == (1, 1, 0)
        assert (scores["R in 1024"], scores["R in 2048"], scores["tokens to all"]) == (0.5, 1, 1200)
        assert "tokens to all" not in data.retrieval(case, case.questions[1], [found("D1:2")])
        assert data.retrieval(case, case.questions[3], [found("D1:2")]) == {}
        words = [Found(text, (), 10) for text in ("Nothing.", "Two years", "a year", "About two years ago")]
        asked = replace(case.questions[1], expected=("About two years ago",))
        scores = data.retrieval(case, asked, words)
        assert (scores["tokens to words"], scores["blocks to words"]) == (40, 4)
        assert [scores[name] for name in HITS] == [0.25, 0.25, 0.25]

    def test_answers(self, cases: Callable[..., list[Case]]) -> None:
        data = benchmark("locomo")
        move, both, _, well, sings, _ = cases(data, LOCOMO)[0].questions
        assert data.answered(move, "To Lisbon.")["F1"] == pytest.approx(2 / 3)
        assert data.answered(both, "b, a")["F1"] == 0.5, "'a' alone is an article"
        assert data.answered(well, "Yes") == {
            "F1": 1,
            "BLEU-1": pytest.approx(0.1353, abs=1e-4),
            "ROUGE-L": 0.5,
        }
        assert data.answered(sings, "That was not mentioned") == {"F1": 1}


class TestLongMemEval:
    def test_questions(self, cases: Callable[..., list[Case]]) -> None:
        records = [longmemeval("q1"), longmemeval("q2_abs"), longmemeval("q3", users=False)]
        one, nothing, assistant = cases(benchmark("longmemeval"), records)
        assert [turn.turn for turn in one.turns] == ["s001_1", "s002_1", "s002_2"], (
            "in the order of the dates"
        )
        (question,) = one.questions
        assert (question.turns, question.sessions) == ({"s002_1", "s002_2"}, {"s002"})
        assert (question.asked, question.expected) == ("2023-05-30T10:00:00", ("3",))
        assert question.scored
        (question,) = nothing.questions
        assert (question.category, question.answerable, question.scored) == ("abstention", False, False)
        assert assistant.questions[0].answerable and not assistant.questions[0].scored

    def test_retrieval(self, cases: Callable[..., list[Case]]) -> None:
        data = benchmark("longmemeval-mix")
        one, nothing, assistant = cases(
            data, [longmemeval("q1"), longmemeval("q2_abs"), longmemeval("q3", users=False)]
        )
        ranking = [found("s001_1"), found("s002_2"), found("s002_1")]
        scores = data.retrieval(one, one.questions[0], ranking)
        assert scores["R@5"] == scores["own R@5"] == scores["own turn R@5"] == 1
        assert scores["N@5"] == scores["own N@5"] == scores["own turn N@5"] == pytest.approx(0.6309, abs=1e-4)
        assert (scores["turns in 1024"], scores["turns in 2048"], scores["tokens to all"]) == (0, 1, 1800)
        scores = data.retrieval(one, one.questions[0], [found("s002_2")])
        assert (scores["R@5"], scores["own R@5"]) == (1, 0), "the data set's own scorer sees no assistant"
        scores = data.retrieval(assistant, assistant.questions[0], ranking)
        assert scores["R@5"] == 1 and "own R@5" not in scores
        assert data.retrieval(nothing, nothing.questions[0], ranking) == {}

    def test_answers(self, cases: Callable[..., list[Case]]) -> None:
        data = benchmark("longmemeval")
        one, nothing = cases(data, [longmemeval("q1"), longmemeval("q2_abs")])
        assert data.answered(one.questions[0], "3") == {"F1": 1, "BLEU-1": 1, "ROUGE-L": 1}
        assert data.answered(nothing.questions[0], "I don't know") == {"F1": 1}


class TestFactConsolidation:
    def test_all_of_it(self, cases: Callable[..., list[Case]]) -> None:
        data = benchmark("factconsolidation")
        (case,) = cases(data, FACTS)
        assert [turn.turn for turn in case.turns] == ["1", "2", "3"]
        assert len({turn.key for turn in case.turns}) == 3
        live, _ = case.questions
        assert (live.category, live.expected) == ("single-hop 6k", ("Lisbon", "Lisboa"))
        ranking = [found(text="Ana lives in Porto."), found(text="Ana lives in Lisbon.")]
        assert data.retrieval(case, live, ranking) == {
            "answer@1": 0,
            "answer@5": 1,
            "answer@10": 1,
            "answer@50": 1,
        }
        assert data.answered(live, "In lisboa!") == {"match": 1, "F1": pytest.approx(2 / 3)}
        assert len(cases(data, FACTS, 1)[0].questions) == 1


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "records", "said"),
    [
        ("locomo", [], "holds no record"),
        ("locomo", [1], "no object"),
        ("locomo", [{"qa": []}], "no 'conversation'"),
        ("locomo", [{"conversation": {}, "qa": []}], "without sessions"),
        ("locomo", [LOCOMO[0] | {"qa": [{"question": "?", "category": 6}]}], "is not as locomo has it"),
        ("locomo", [LOCOMO[0] | {"qa": [{"question": "?", "category": []}]}], "is not as locomo has it"),
        ("locomo", [LOCOMO[0] | {"qa": ["?"]}], "is not as locomo has it"),
        ("longmemeval", [FACTS[0]], "no 'question_id'"),
        ("longmemeval", [longmemeval("q") | {"haystack_sessions": 1}], "no list of sessions"),
        ("longmemeval", [longmemeval("q") | {"haystack_sessions": []}], "nothing to import"),
        ("factconsolidation", [FACTS[0] | {"answers": []}], "is not as factconsolidation has it"),
        ("factconsolidation", [FACTS[0] | {"context": 1}], "no text and questions"),
    ],
)
def test_a_file_of_another_shape_is_one_line(
    cases: Callable[..., list[Case]], name: str, records: Any, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        cases(benchmark(name), records)
    assert "\n" not in str(caught.value)


@pytest.mark.sample(2)
@pytest.mark.parametrize("content", [b"[{", b"\x00\x01", b"\x1f\x8b no gzip", b"", None])
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "data.json"
    if content is not None:
        path.write_bytes(content)
    for name in NAMES:
        with pytest.raises(UsageError) as caught:
            list(benchmark(name).cases(path))
        assert "\n" not in str(caught.value)


def test_the_development_data(shared_data: Path) -> None:
    cases = list(benchmark("locomo").cases(shared_data / "locomo_dev.json"))
    questions = [question for case in cases for question in case.questions]
    assert len(cases) == 6 and len(questions) == 1157
    assert sum(question.scored for question in questions) == 1155
    imported = read_turns(shared_data / "locomo_dev.json", only=cases[0].name).turns
    assert tuple(imported) == cases[0].turns, "what a library would carry"
    mended = benchmark("locomo", shared_data / "locomo_dev_errors.json")
    again = [q for case in mended.cases(shared_data / "locomo_dev.json") for q in case.questions]
    assert sum(one != other for one, other in zip(questions, again, strict=True)) == 94
    asked = [
        q
        for case in benchmark("longmemeval").cases(shared_data / "longmemeval_dev_oracle.json.xz")
        for q in case.questions
    ]
    assert (len(asked), sum(q.answerable for q in asked), sum(q.scored for q in asked)) == (250, 235, 206)
