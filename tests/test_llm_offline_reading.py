"""The offline rules for reading: the search agent's rounds and the quoting answerer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import by_rules

from infinimem.llm import tasks
from infinimem.llm.offline.answer import CLOSEST, NOTHING, QUOTED


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


@each(
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


WORDS = st.text(max_size=60) | st.text(alphabet="ab AB.,!?'-1é北\u0301👍\"", max_size=30)


def is_sure(question: str, *texts: str) -> bool:
    data = by_rules(tasks.ANSWER, question=question, evidence=evidence(*texts), now="2024-01-01")
    assert data["cites"]
    return str(data["answer"]).startswith(QUOTED)


@each(
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


@given(WORDS, st.lists(WORDS, max_size=6))
def test_any_question_over_any_lines_is_answered_from_them(question: str, texts: list[str]) -> None:
    data = by_rules(tasks.ANSWER, question=question, evidence=evidence(*texts), now="")
    assert set(data["cites"]) <= {str(n) for n in range(1, len(texts) + 1)}
    assert bool(data["cites"]) == (data["answer"] != NOTHING)
    beside = {"catalog": [], "calls": [], "rounds_left": "6"}
    searched = by_rules(tasks.SEARCHING, question=question, evidence=evidence(*texts), now="", **beside)
    assert searched == {**data, "calls": []}
