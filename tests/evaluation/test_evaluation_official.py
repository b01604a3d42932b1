"""Data sets of several files or tasks: small records of our own in the shape of the official ones."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from cases import each
from evaluation_data import request, results

from infinimem.errors import UsageError
from infinimem.evaluation.datasets import NAMES, benchmark
from infinimem.evaluation.metrics import judge
from infinimem.evaluation.model import Case, DataSet, Found
from infinimem.evaluation.runner import Run
from infinimem.testing import ScriptedLLM

Json = dict[str, Any]


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


# ── MemoryAgentBench ────────────────────────────────────────────────────────────────────────────


def task(source: str, context: str, asked: list[str], answers: list[Any], **about: Any) -> Json:
    return {
        "context": context,
        "questions": asked,
        "answers": answers,
        "metadata": {"source": source, **about},
    }


def session(*said: str, answer: bool = False) -> list[Json]:
    return [
        {"role": role, "content": text, "has_answer": answer}
        for role, text in zip(("user", "assistant"), said, strict=False)
    ]


CHATS = [session("I sold my canoe.", "Who took it?", answer=True), session("It hails.", "Stay in.")]
TASKS = [
    task(
        "ruler_qa1_197K",
        "Document 1:\nOslo is wet.\n\nDocument 2:\nRiga is dry.",
        ["Which is dry?"],
        [["Riga"]],
    ),
    task("ruler_qa2_421K", "Document 1:\nIvo wed Una.", ["Who wed Una?"], [["Ivo"]]),
    task(
        "eventqa_65536",
        "The boat sank.\n\nThey swam.",
        ["What came next? A: They swam. B: They sang."],
        [["They swam."]],
    ),
    task("eventqa_65536", "The bell rang.\n\nHe left.", ["What came next?"], [["He left."]]),
    task(
        "longmemeval_s*",
        repr(["Chat Time: 2023/05/20 (Sat) 02:21", CHATS[0], "Chat Time: 2023/05/21 (Sun) 09:00", CHATS[1]]),
        ["What did I sell?", "What did I buy?"],
        [["a canoe"], ["You never said."]],
        question_types=["temporal-reasoning", "multi-session"],
        question_dates=["2023/05/30 (Tue) 10:00", "2023/05/31 (Wed) 10:00"],
        question_ids=["a1", "a2_abs"],
        haystack_sessions=[CHATS, [CHATS[1]]],
    ),
    task(
        "icl_banking77_5900shot_balance",
        "Where is my card?\nlabel: 41\nIt is lost.\nlabel: 7",
        ["My card is gone"],
        [["7"]],
    ),
    task(
        "recsys_redial_full",
        "User: I like Heat.\n\nSystem: See Ronin.",
        ["User: Something alike?"],
        [["12", "9"]],
    ),
    task(
        "infbench_sum_eng_shots2",
        "Chapter one.\n\nA boy finds a map.\n\nHe sails away.",
        ["Summarize."],
        [["A boy finds a map. He sails away."]],
        keypoints=["A boy finds a map", "He sails away"],
    ),
    task(
        "detective_qa",
        "The cook lied.\n\nThe maid saw it.",
        ["Who lied?\nA. the cook\nB. the maid"],
        [["A. the cook"]],
    ),
    task("factconsolidation_sh_6k", "0. Ana is in Porto.\n1. Ana is in Faro.", ["Where is Ana?"], [["Faro"]]),
]
MOVIES = {"/film/Heat_(1995)": 3, "<http://x/Ronin_(1998)>": 12, "The Score (2001)": 9}
OFFICIAL = {
    "ruler_qa1_197K": ("Riga", {"match": 1.0, "F1": 1.0}),
    "ruler_qa2_421K": ("It was Ivo", {"match": 1.0, "F1": 0.5}),
    "eventqa_65536": ("they swam.", {"match": 1.0}),
    "eventqa_65536-2": ("He stayed.", {"match": 0.0}),
    "icl_banking77_5900shot_balance": ("label: 7", {"exact": 1.0}),
    "recsys_redial_full": ("1. Ronim\n2. Heat\n3. Alien", {"Recall@5": 0.5}),
    "detective_qa": ("A", {"exact": 1.0}),
    "factconsolidation_sh_6k": ("Faro", {"match": 1.0, "F1": 1.0}),
}


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    put(tmp_path / "entity2id.json", MOVIES)
    return put(tmp_path / "data/tasks.json", TASKS)


def test_each_source_has_its_own_score(whole: Path) -> None:
    data = benchmark("memoryagentbench")
    cases = {case.name: case for case in data.cases(whole)}
    assert len(cases) == len(TASKS), "one of several records of a source has a name of its own"
    for name, (answer, scores) in OFFICIAL.items():
        assert data.answered(cases[name].questions[0], answer) == pytest.approx(scores, abs=0.01), name
    labels = cases["icl_banking77_5900shot_balance"]
    assert [turn.text for turn in labels.turns] == ["Where is my card?\nlabel: 41", "It is lost.\nlabel: 7"]
    assert labels.questions[0].category == "MCC banking77" and not labels.questions[0].kind
    assert cases["recsys_redial_full"].questions[0].expected == ("ronin", "the score")
    asked = cases["ruler_qa1_197K"].questions[0]
    assert data.retrieval(cases["ruler_qa1_197K"], asked, [Found("Riga is dry.", (), 3)])["answer@1"] == 1


def test_chats_keep_their_dates_and_sessions(whole: Path) -> None:
    data = benchmark("memoryagentbench")
    case = next(case for case in data.cases(whole) if case.name.startswith("longmemeval"))
    assert [(turn.time, turn.session, turn.role) for turn in case.turns[1:3]] == [
        ("2023-05-20T02:21:00", "s001", "assistant"),
        ("2023-05-21T09:00:00", "s002", "user"),
    ]
    sold, bought = case.questions
    assert (sold.category, sold.kind, sold.asked) == (
        "LongMemEval(S*) temporal-reasoning",
        "time",
        "2023-05-30T10:00:00",
    )
    assert sold.sessions == {"s001"} and sold.turns == {"s001_1", "s001_2"}
    assert data.retrieval(case, sold, [Found("", ("s001_1",), 9)])["own turn R@5"] == 1
    assert (bought.answerable, bought.category) == (False, "LongMemEval(S*) abstention")


@each(
    ("fluent", "score"),
    [(True, 2 / 3), (False, 0.0)],
)
def test_a_summary_is_graded_by_key_points_and_fluency(whole: Path, fluent: bool, score: float) -> None:
    data = benchmark("memoryagentbench")
    case = next(case for case in data.cases(whole) if case.name.startswith("infbench"))

    def verdict(told: Json) -> Json:
        rows = [
            (row["id"], fluent if told["kind"] == "fluent" else "map" in row["text"])
            for row in told["rubric"]
        ]
        return {"verdicts": [{"item": name, "reason": "", "met": met} for name, met in rows]}

    model = ScriptedLLM({"judge_rubric": verdict})
    verdicts, scores = judge(model, case.questions[0], "A boy has a map.")
    assert scores == {"judge summary": pytest.approx(score)}, "one of two points, and nothing beside them"
    assert set(verdicts) == {"recall", "precision", "fluency"}
    assert data.answered(case.questions[0], "A boy has a map.").keys() == {"F1", "BLEU-1", "ROUGE-L"}


def test_parquet_is_read_as_json_is(whole: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for name, rows in (("A", TASKS[:3]), ("B", TASKS[3:])):
        parquet.write_table(pyarrow.Table.from_pylist(rows), whole.parent / f"{name}.parquet")
    data = benchmark("memoryagentbench")
    cases = list(data.cases(whole.parent))
    assert [case.turns for case in cases] == [case.turns for case in data.cases(whole)]
    questions = [question for case in cases for question in case.questions]
    assert [one.expected for one in questions] == [
        q.expected for case in data.cases(whole) for q in case.questions
    ]
    (whole.parent / "A.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(UsageError, match=r"A\.parquet cannot be read as parquet"):
        list(data.cases(whole.parent))


@each(
    ("name", "record", "told"),
    [
        (
            "memoryagentbench",
            TASKS[0] | {"metadata": {"source": "poems"}},
            "'poems', which is not scored here: ruler_qa1_",
        ),
        ("memoryagentbench", TASKS[0] | {"metadata": None}, "has the source ''"),
        ("factconsolidation", TASKS[2], "'eventqa_65536', which is not scored here: factconsolidation is"),
        ("memoryagentbench", TASKS[4] | {"context": "Hello"}, "is not as memoryagentbench has it"),
        ("memoryagentbench", TASKS[6], "put the official entity2id.json beside it"),
    ],
)
def test_what_is_not_scored_is_refused_by_name(tmp_path: Path, name: str, record: Json, told: str) -> None:
    """Bug guarded: any record with questions was scored by whether its answer's words occur."""
    with pytest.raises(UsageError, match=told) as caught:
        list(benchmark(name).cases(put(tmp_path / "one/tasks.json", [record])))
    assert "\n" not in str(caught.value)


# ── PersonaMem ──────────────────────────────────────────────────────────────────────────────────

REPLIES = ["(a) Go rowing.", "(b) Rest, as you like to."]


def packed(path: Path) -> Path:
    text = (
        "[SYSTEM] Current user persona: Bo\n\n[USER] User: I dislike rowing.\n\n[ASSISTANT] Assistant: Noted."
    )
    asked = {
        "id": "q1",
        "query": "User: Bo\n\nWhat now?\n\n" + "\n".join(REPLIES),
        "gold_answers": [REPLIES[1], "b"],
    }
    meta = {"question_type": "suggest_new_ideas"}
    documents = [
        {"id": "u_0", "user_id": "u", "content": text},
        {"id": "v_0", "user_id": "v", "content": text},
    ]
    return put(
        path / "p.json", {"documents": documents, "queries": [{**asked, "user_id": "u", "meta": meta}]}
    )


def official(path: Path) -> Path:
    said = [
        ("system", "Bo"),
        ("user", "User: I dislike rowing."),
        ("assistant", "Assistant: Noted."),
        ("user", "Later."),
    ]
    put(
        path / "shared_contexts_32k.jsonl",
        {"u" * 20: [{"role": role, "content": text} for role, text in said]},
    )
    row = {
        "question_id": "q1",
        "question_type": "suggest_new_ideas",
        "user_question_or_message": "User: What now?",
        "correct_answer": "(b)",
        "all_options": repr(REPLIES),
        "shared_context_id": "u" * 20,
        "end_index_in_shared_context": "3",
    }
    with (path / "questions_32k.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    return path / "questions_32k.csv"


@pytest.mark.parametrize("write", [packed, official])
def test_replies_are_chosen_by_their_letter(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    (case,) = benchmark("personamem").cases(write(tmp_path))
    assert [(turn.role, turn.text) for turn in case.turns[1:]] == [
        ("user", "I dislike rowing."),
        ("assistant", "Noted."),
    ]
    (asked,) = case.questions
    assert (asked.text, asked.category, asked.choices) == ("What now?", "suggest new ideas", tuple(REPLIES))
    graded = {told: benchmark("personamem").answered(asked, told)["choice"] for told in CHOSEN}
    assert graded == CHOSEN


CHOSEN = {
    "b": 1.0,
    "(b)": 1.0,
    "(B) Rest": 1.0,
    "b.": 1.0,
    "I would say (b).": 1.0,
    "Rest, as you like to.": 0.0,
    "(b) Rest, as you like to.": 1.0,
    "a": 0.0,
    "(a)": 0.0,
    "": 0.0,
    "A boat": 0.0,
}


def test_memory_is_asked_without_the_replies_and_no_judge_is(tmp_path: Path) -> None:
    data = packed(tmp_path)
    model = ScriptedLLM({"answer": lambda told: {"answer": "(b)", "cites": []}})
    wanted = request(tmp_path, "bm25", "none", "infini-bm25", answerer=model, judge=model)
    wanted = type(wanted)(**{**vars(wanted), "data": data})
    run = Run(wanted, benchmark("personamem"))
    assert not [phase for (_, phase) in run.estimate().usage if phase == "judging"]
    assert run.start(lambda *_: None, 0) == 0
    assert [result.scores for result in results(tmp_path / "out")] == [{"choice": 1.0}] * 3
    assert {call.task for call in model.calls} == {"answer"}
    for call in model.calls:
        assert call.variables["question"] == "What now?"
        assert call.variables["choices"] == "\n".join(REPLIES)


# ── PrecisionMemBench ───────────────────────────────────────────────────────────────────────────


def belief(name: str, **more: Any) -> Json:
    given = {
        "_id": name,
        "user_id": "test-user",
        "canonical_name": name,
        "aliases": [],
        "content": f"On {name}.",
    }
    given |= {"why_it_matters": "So.", "scope": ["domain:code"], "type": "preference", "pinned": False}
    return given | {"superseded_by": None, "resolved_at": None, "created_at": "2026-01-01T00:00:00Z"} | more


def expecting(*only: str, **more: Any) -> Json:
    return {"scope": ["domain:code"], "expect": {"relevantBeliefs": {"shouldOnlyInclude": [*only]}, **more}}


BELIEFS = [belief("tea"), belief("jam"), belief("ink", pinned=True), belief("gin", user_id="other")]
CASES = [
    {
        "caseId": "c1",
        "category": "alias",
        "query": "tea?",
        **expecting("tea", pinnedFacts={"mustInclude": ["ink"]}),
    }
]
TURNS = [
    {"turnIndex": 0, "userMessage": "On jam", "createBeliefAtTurn": belief("rye"), **expecting("jam")},
    {"turnIndex": 1, "userMessage": "On rye", **expecting("rye", noiseCheck={"mustNotSurface": ["jam"]})},
]


def beliefs(path: Path, folder: bool = False) -> Path:
    sessions = [{"caseId": "s", "turns": TURNS}]
    if not folder:
        return put(path / "p.json", {"beliefs": BELIEFS, "cases": CASES, "session_cases": sessions})
    put(path / "f/beliefs.seed.json", BELIEFS)
    put(path / "f/retrieval.cases.json", CASES)
    return put(path / "f/session-retrieval.cases.json", sessions).parent


@pytest.mark.parametrize("folder", [False, True])
def test_what_must_not_be_found_counts(tmp_path: Path, folder: bool) -> None:
    data = benchmark("precisionmembench")
    one, first, second = data.cases(beliefs(tmp_path, folder))
    assert [turn.turn for turn in one.turns] == ["tea", "jam", "ink"], "another person's belief is elsewhere"
    assert [turn.turn for turn in second.turns] == ["tea", "jam", "ink", "rye"], "made in the turn before"

    def scored(case: Case, *ids: str) -> Any:
        return data.retrieval(case, case.questions[0], [Found("", (name,), 1) for name in ids])

    assert scored(one, "ink", "tea") == {"pass": 1, "active pass": 1, "precision": 1}, "pinned ones are given"
    assert scored(one, "tea", "jam") == {"pass": 0, "active pass": 0, "precision": 0.5}
    assert scored(one)["pass"] == 0
    assert scored(first, "jam")["drift"] == 0
    assert scored(second, "rye", "jam") == {"pass": 0, "active pass": 0, "precision": 0.5, "drift": 0.5}


# ── LoCoMo-Plus, PerLTQA, DialSim, BEAM's largest tier ──────────────────────────────────────────


def plus(path: Path) -> Path:
    talk = {
        "speaker_a": "Ida",
        "speaker_b": "Max",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ida", "dia_id": "D1:1", "text": "Hello."}],
        "session_2_date_time": "1:56 pm on 8 June, 2023",
        "session_2": [{"speaker": "Max", "dia_id": "D2:1", "text": "Bye."}],
    }
    put(path / "locomo10.json", [{"sample_id": "conv-1", "conversation": talk, "qa": []}])
    cue = {"cue_dialogue": "A: I quit sugar.\nB: Well done.", "trigger_query": "A: I baked a cake."}
    return put(
        path / "locomo_plus.json", [{**cue, "relation_type": "causal", "time_gap": "about two weeks later"}]
    )


def test_a_remark_stands_where_its_day_is(tmp_path: Path) -> None:
    data = benchmark("locomo-plus")
    (case,) = data.cases(plus(tmp_path))
    assert [(turn.speaker, turn.text, (turn.time or "")[:10]) for turn in case.turns] == [
        ("Ida", "Hello.", "2023-05-08"),
        ("Ida", "I quit sugar.", "2023-06-01"),
        ("Max", "Well done.", "2023-06-01"),
        ("Max", "Bye.", "2023-06-08"),
    ]
    (asked,) = case.questions
    assert (asked.text, asked.kind, (asked.asked or "")[:10]) == (
        "I baked a cake.",
        "preference",
        "2023-06-15",
    )
    assert data.retrieval(case, asked, [Found("", ("plus-0:0",), 5)])["R@5"] == 0.5


@each(
    ("gap", "days"),
    [("seven months later", 210), ("an year later", 365), ("10 weeks later", 70), ("soon after", 0)],
)
def test_gaps_are_counted_as_the_official_program_does(tmp_path: Path, gap: str, days: int) -> None:
    file = plus(tmp_path)
    put(file, [{**json.loads(file.read_text())[0], "time_gap": gap}])
    (case,) = benchmark("locomo-plus").cases(file)
    said = next(turn.time for turn in case.turns if turn.text == "I quit sugar.")
    assert (date(2023, 6, 15) - date.fromisoformat((said or "")[:10])).days == days


def people(path: Path) -> Path:
    memory = {
        "profile": {"Protagonist": "Lu Wen", "Age": 28},
        "social_relationship": {
            "1_0": {"Supporting Characters": "Bai", "Relationship": "aunt", "Description": "A nurse."}
        },
        "events": {
            "1_0_0": {"summary": "A trip", "content": "They saw a lake.", "Creation Time": "May 12, 2022"}
        },
        "dialogues": {
            "1_0_0#0": {"contents": {"2022-05-12 10:00": ["Lu Wen: What a lake!", "Bai: And so cold."]}}
        },
    }
    asked = {"Question": "How old?", "Answer": "28", "Reference Memory": "Age"}
    talk = {"Question": "Who was cold?", "Answer": "Bai", "Reference Memory": "['1_0_0#0']"}
    put(path / "perltmem_en.json", {"Lu Wen": memory})
    return put(
        path / "perltqa_en.json", [{"Lu Wen": {"profile": [asked], "dialogues": [{"1_0_0#0": [talk]}]}}]
    ).parent


def test_memories_of_four_kinds_are_sessions(tmp_path: Path) -> None:
    data = benchmark("perltqa")
    (case,) = data.cases(people(tmp_path))
    assert [turn.session for turn in case.turns] == [
        "Protagonist",
        "Age",
        "1_0",
        "1_0_0",
        "1_0_0#0",
        "1_0_0#0",
    ]
    assert (case.turns[3].time, case.turns[5].speaker) == ("2022-05-12", "Bai")
    age, cold = case.questions
    assert (age.category, age.sessions, cold.sessions) == ("profile", {"Age"}, {"1_0_0#0"})
    assert data.retrieval(case, cold, [Found("", ("1_0_0#0:1",), 4)])["R@5"] == 1
    assert data.answered(age, "28")["F1"] == 1


def show() -> Json:
    row = {
        "questions": {"default": "Who waved?", "Jo": "Who?"},
        "options": ["Al", "Jo", "I don't know."],
        "answer": "Jo",
    }
    scene = {
        "date": "September 22, 1994",
        "script": "Jo: Hi: all.\nwaves\nAl: Bye.\n",
        "hard_q": {"fu": [row]},
    }
    return {"E1.txt": {1: scene, 2: {**scene, "hard_q": {}, "easy_q": {"ans_w_time": {7: row}}}}}


@pytest.mark.parametrize("name", ["friends_dialsim.pickle", "friends.json"])
def test_a_scene_is_asked_of_what_was_said_until_then(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / name, show())
    if path.suffix == ".pickle":
        path.write_bytes(pickle.dumps(show()))
    data = benchmark("dialsim")
    first, second = data.cases(path)
    assert [(turn.speaker, turn.text, turn.time) for turn in first.turns] == [
        ("Jo", "Hi: all.\nwaves", "1994-09-22"),
        ("Al", "Bye.", "1994-09-22"),
    ]
    assert len(second.turns) == 4 and second.questions[0].category == "easy ans_w_time"
    (asked,) = first.questions
    assert (asked.text, asked.choices[1], asked.expected) == ("Who waved?", "(b) Jo", ("b", "Jo"))
    assert data.answered(asked, "(b)") == {"choice": 1} and data.answered(asked, "c") == {"choice": 0}


class Bomb:
    def __reduce__(self) -> Any:
        return print, ("boom",)


def test_a_pickle_that_would_run_something_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "friends_dialsim.pickle"
    path.write_bytes(pickle.dumps({"E1": Bomb()}))
    with pytest.raises(UsageError, match=r"would load builtins\.print"):
        list(benchmark("dialsim").cases(path))
    assert "boom" not in capsys.readouterr().out


def test_the_plans_of_ten_million_tokens_are_joined(tmp_path: Path) -> None:
    """Ids begin anew in each plan; pickles beside the chat are not looked at."""

    def plan(day: str, *said: tuple[int, str]) -> list[Json]:
        turns = [[{"role": "user", "id": name, "content": text, "time_anchor": day}] for name, text in said]
        return [{"batch_number": 1, "turns": turns, "time_anchor": None}]

    chat = [
        {"plan-0": plan("March-15-2024", (0, "I row."), (1, "I sail."))},
        {"plan-1": plan("April-2-2025", (0, "I ski."))},
    ]
    folder = put(tmp_path / "10M/1/chat.json", chat).parent
    (folder / "chat.pickle").write_bytes(b"never read")
    asked = {"question": "What do I do?", "answer": "sail", "source_chat_ids": [1], "rubric": ["sail"]}
    put(folder / "probing_questions/probing_questions.json", {"information_extraction": [asked]})
    (case,) = benchmark("beam").cases(tmp_path)
    assert [(turn.turn, turn.time, turn.text) for turn in case.turns] == [
        ("plan-0:0", "2024-03-15", "I row."),
        ("1", "2024-03-15", "I sail."),
        ("plan-1:0", "2025-04-02", "I ski."),
    ]
    assert case.questions[0].turns == {"1"}


@pytest.mark.parametrize("name", ["locomo-plus", "perltqa", "personamem"])
def test_a_file_that_lacks_the_other_one_is_told_so(tmp_path: Path, name: str) -> None:
    file = {"locomo-plus": plus, "perltqa": people, "personamem": official}[name](tmp_path)
    for other in ("locomo10.json", "perltmem_en.json", "shared_contexts_32k.jsonl"):
        (tmp_path / other).unlink(missing_ok=True)
    with pytest.raises(UsageError, match="beside it: give the folder of the official files"):
        list(benchmark(name).cases(file))


def test_the_replies_at_hand(shared_data: Path) -> None:
    data: DataSet = benchmark("personamem")
    questions = [q for case in data.cases(shared_data / "personamem32k_dev.json.xz") for q in case.questions]
    assert len(questions) == 280 and len({q.category for q in questions}) == 7
    assert all(data.answered(q, q.expected[0]) == {"choice": 1} for q in questions)
    cases = list(benchmark("precisionmembench").cases(shared_data / "precisionmembench.json.xz"))
    assert [len(case.questions) for case in cases] == [76, 1, 5, 5, 2]
    whole = list(benchmark("beam").cases(shared_data / "beam_500k_dev.json.xz"))
    assert [len(case.questions) for case in whole] == [20, 20] and all(len(c.turns) > 1000 for c in whole)


def test_a_file_of_another_data_set_is_refused_in_one_line(tmp_path: Path) -> None:
    put(tmp_path / "data/entity2id.json", MOVIES)
    files = {
        "memoryagentbench": put(tmp_path / "data/tasks.json", TASKS),
        "personamem": packed(tmp_path / "m"),
        "precisionmembench": beliefs(tmp_path / "b"),
        "locomo-plus": plus(tmp_path / "l"),
        "perltqa": people(tmp_path / "t") / "perltqa_en.json",
        "dialsim": put(tmp_path / "d/friends.json", show()),
        "": put(
            tmp_path / "n/nested.json", [{"documents": [1], "queries": {"a": 2}, "beliefs": 3, "context": []}]
        ),
    }
    for name in NAMES:
        for owner, file in files.items():
            if name != owner:
                with pytest.raises(UsageError) as caught:
                    list(benchmark(name).cases(file))
                assert "\n" not in str(caught.value), (name, owner)
