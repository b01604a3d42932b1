"""The offline rules for reading: the search agent's rounds and the quoting answerer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import by_rules

from infinimem.llm import tasks
from infinimem.llm.offline.answer import CLOSEST, NOTHING, QUOTED
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of


def evidence(*texts: str, times: Sequence[str] = ()) -> list[dict[str, Any]]:
    lines = [
        {"id": str(n), "time": times[n - 1] if times else None, "source": "user", "text": text}
        for n, text in enumerate(texts, 1)
    ]
    return [{"doc_id": "topics/a", "lines": lines}]


def answer(question: str, lines: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """The quoted lines and their ids; no lines where it is said that there is nothing."""
    data = by_rules(tasks.ANSWER, question=question, evidence=list(lines), now="2024-01-01")
    if data["answer"] == NOTHING:
        return [], list(data["cites"])
    first, *quoted = data["answer"].split("\n")
    assert first in (QUOTED, CLOSEST)
    return [line.removeprefix("- ") for line in quoted], list(data["cites"])


# ── answering ───────────────────────────────────────────────────────────────────────────────────


def test_the_closest_line_is_quoted_with_its_date_and_cited() -> None:
    lines = evidence(
        "Ann: Bob, what did you paint?",
        "Bob: I painted a lake.",
        "Bob: Tea is nice.",
        times=["2023-05-08"] * 3,
    )
    quoted, cites = answer("What did Bob paint?", lines)
    assert quoted[0] == "Bob: I painted a lake. (2023-05-08)" and cites[0] == "2"
    assert "Bob: Tea is nice. (2023-05-08)" not in quoted


def test_nothing_found_is_said_and_nothing_is_cited() -> None:
    assert answer("Who won the chess match?", evidence("Bob: I painted a lake.")) == ([], [])
    assert answer("Who won the chess match?", []) == ([], [])


def test_a_name_alone_is_no_answer() -> None:
    assert answer("Which instrument does Bob play?", evidence("Bob: Tea is nice.", "Thanks, Bob!")) == (
        [],
        [],
    )
    assert answer("Bob?", evidence("Bob: Tea is nice."))[1] == ["1"]
    assert answer("What do we know about Bob?", evidence("Ann: Bob has a key."))[1] == ["1"]


@pytest.mark.parametrize(
    ("texts", "times", "newest"),
    [
        (["I live in Lisbon.", "I live in Porto now."], ["2023-05-01", "2024-05-01"], "2"),
        (["I live in Lisbon.", "I live in Porto now."], ["2024-05-01", "2023-05-01"], "1"),
        (["I live in Lisbon.", "I live in Porto now."], [], "2"),
        (["8. I live in Lisbon.", "3. I live in Porto."], [], "2"),
    ],
)
def test_of_lines_about_the_same_thing_only_the_newest_is_quoted(
    texts: list[str], times: list[str], newest: str
) -> None:
    assert answer("Where do you live?", evidence(*texts, times=times))[1] == [newest]


def test_seqs_compare_as_numbers() -> None:
    lines = evidence("The capital of Chad is Lima.", "The capital of Chad is Oslo.")
    lines[0]["lines"][0]["id"], lines[0]["lines"][1]["id"] = "100", "99"
    assert answer("What is the capital of Chad?", lines)[1] == ["100"]


def test_lines_about_different_things_do_not_rival() -> None:
    lines = evidence("The capital of Chad is Lima.", "The capital of Peru is Oslo.", "Chad exports cotton.")
    assert answer("What is the capital of Chad?", lines)[1][0] == "1"
    both = evidence("Ann: I live in Lisbon.", "Bob: I live in Lisbon.")
    assert answer("Who can live in Lisbon?", both)[1] == ["2", "1"]


def test_everyday_words_find_their_kin_and_dates_count() -> None:
    assert answer("Where does she live?", evidence("I moved to Lisbon.", "I bought a lamp."))[1] == ["1"]
    times = ["2023-05-01", "2023-07-01", "2023-09-01"]
    lines = evidence("I ran a race.", "The race along the river was wet.", "Zoe won a race.", times=times)
    assert answer("Which race was in July 2023?", lines)[1][0] == "2"


def test_a_name_that_a_line_calls_out_is_not_its_subject() -> None:
    lines = evidence("Ann: Nice paint, Bob!", "Bob: I paint boats with oil.")
    assert answer("What does Bob paint?", lines)[1][0] == "2"


def test_headings_are_no_answers_and_unsigned_lines_may_be() -> None:
    said = {"id": "notes/a:3", "source": "human", "text": "The kiln is hot"}
    lines: list[dict[str, Any]] = [{"heading": "Kiln hot"}, said]
    assert answer("Is the kiln hot?", [{"doc_id": "notes/a", "lines": lines}])[1] == ["notes/a:3"]


def test_at_most_three_lines() -> None:
    assert len(answer("tea", evidence(*(f"Tea from {c}{c} is {c}." for c in "abcdefgh")))[1]) == 3


@pytest.mark.parametrize(("size", "floor"), [("6k", 99), ("32k", 97)])
def test_the_newest_fact_is_quoted_first(shared_data: Path, size: str, floor: int) -> None:
    sets = json.loads((shared_data / "factconsolidation_dev.json").read_text())
    [data] = [s for s in sets if s["metadata"]["source"] == f"factconsolidation_sh_{size}"]
    facts = [line for line in data["context"].split("\n") if line[:1].isdigit()]
    held = [set(terms_of(fact)) for fact in facts]
    right = 0
    for question, golds in zip(data["questions"], data["answers"], strict=True):
        wanted = set(query_terms(question))
        best = sorted(range(len(facts)), key=lambda i: (-len(wanted & held[i]), i))[:20]
        lines = [{"id": str(i + 1), "time": None, "source": "user", "text": facts[i]} for i in best]
        quoted, _ = answer(question, [{"doc_id": "d", "lines": lines}])
        right += any(gold.lower() in quoted[0].lower() for gold in golds)
    assert right >= floor


WORDS = st.text(max_size=60) | st.text(alphabet="ab AB.,!?'-1é北\u0301👍\"", max_size=30)


def is_sure(question: str, *texts: str) -> bool:
    data = by_rules(tasks.ANSWER, question=question, evidence=evidence(*texts), now="2024-01-01")
    assert data["cites"]
    return str(data["answer"]).startswith(QUOTED)


@pytest.mark.parametrize(
    ("question", "line", "sure"),
    [
        ("When is Tom's birthday?", "Maja's birthday is on 3 May.", False),
        ("When is Maja's birthday?", "Maja's birthday is on 3 May.", True),
        ("When is Maja's birthday?", "Maja wants a party for her birthday.", False),
        ("Who won the marathon in Rotterdam?", "Registered for the Rotterdam marathon.", False),
        ("Who won the marathon?", "Abdi won the marathon.", True),
        ("Did she ever go to Japan for the ferry?", "Booked a ferry to Oslo.", False),
        ("What colour is the ferry?", "The ferry leaves at noon.", False),
        ("Did Tom take the job at the opera?", "Tom was offered a position at the opera.", False),
        ("How much is the ferry?", "The ferry leaves at noon or so.", False),
    ],
)
def test_what_is_close_is_no_answer_yet(question: str, line: str, sure: bool) -> None:
    assert is_sure(question, "Nora: Tea is nice.", f"Nora: {line}") == sure


def test_what_holds_now_is_told_first() -> None:
    lines = evidence(
        "Bob: The tea that I drink is green.",
        "Bob: Black tea since March.",
        times=["2023-01-01", "2023-03-01"],
    )
    assert answer("Which drink with tea?", lines)[1] == ["1", "2"]
    assert answer("Which drink with tea these days?", lines)[1] == ["2", "1"]


def test_a_list_is_quoted_whole_and_the_newest_first() -> None:
    days = [f"2024-01-0{day}" for day in range(1, 6)]
    lines = evidence(*(f"Booked the {name} ferry." for name in "BCDEF"), times=days)
    assert answer("Where is the ferry booked?", lines)[1] == ["5"]
    assert answer("Which ferries are booked?", lines)[1] == ["5", "4", "3", "2", "1"]


def test_a_notes_title_counts_less_than_its_words() -> None:
    rows = [
        {"id": f"git/rename-a-branch:{n}", "time": None, "source": "human", "text": text}
        for n, text in (
            (3, "Thanks to Dillon."),
            (5, "To rename the branch that you are on, use -m, and mind it."),
        )
    ]
    found = answer("How to rename a branch?", [{"doc_id": "git/rename-a-branch", "lines": rows}])[1]
    assert found[0] == "git/rename-a-branch:5"


def test_of_a_note_paragraphs_are_quoted_with_its_title() -> None:
    texts = {3: "- [Ferry](a.md) [ferry](b.md)", 5: "The ferry to Oslo leaves", 6: "at nine.", 8: "- Blue."}
    rows = [
        {"id": f"trips/oslo:{n}", "time": None, "source": "human", "text": text} for n, text in texts.items()
    ]
    quoted, cites = answer("When does the ferry leave?", [{"doc_id": "trips/oslo", "lines": rows}])
    assert (quoted[0], cites[0]) == ("oslo: The ferry to Oslo leaves at nine.", "trips/oslo:5")
    assert not any("a.md" in line for line in quoted)


@given(WORDS, st.lists(WORDS, max_size=6))
def test_any_question_over_any_lines_is_answered_from_them(question: str, texts: list[str]) -> None:
    data = by_rules(tasks.ANSWER, question=question, evidence=evidence(*texts), now="")
    assert set(data["cites"]) <= {str(n) for n in range(1, len(texts) + 1)}
    assert bool(data["cites"]) == (data["answer"] != NOTHING)
    beside = {"catalog": [], "calls": [], "rounds_left": "6"}
    searched = by_rules(tasks.SEARCHING, question=question, evidence=evidence(*texts), now="", **beside)
    assert searched == {**data, "calls": []}
