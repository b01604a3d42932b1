"""What is shown beside what was found: wishes, what was superseded, lines from all that was said."""

from __future__ import annotations

from typing import Any

import pytest
from in_memory import LISBON, view_of

from infinimem import tokens
from infinimem.answer import answer
from infinimem.grounding.asked import about_all, about_my_words, about_past
from infinimem.llm.shown import shown
from infinimem.model import Evidence, Retrieved
from infinimem.settings import ReaderSettings
from infinimem.store.spec import STANDING
from infinimem.store.view import View
from infinimem.strategies.infini.plan import open_documents
from infinimem.strategies.infini.split_merge import may_change
from infinimem.strategies.readers.agentic import ROUND
from infinimem.strategies.readers.beside import standing, with_beside
from infinimem.strategies.readers.collect import collect
from infinimem.strategies.readers.spread import best_lines, spread
from infinimem.testing import ScriptedLLM

WISHES = LISBON | {
    STANDING: """# Instructions
- <seq=21,time=2023-05-08,source=user,origin=1> Always answer in metric units.
- <seq=22,time=2023-06-01,source=user,origin=2> From now on call me Bo.
# Preferences
- <seq=23,time=2023-05-08,source=user,origin=3> I prefer quiet hotels by the sea.
- <seq=24,time=2023-05-08,source=user,origin=4> I prefer short meetings.
"""
}
VIEW = view_of(WISHES)
HOTEL = "Which hotels would suit me?"


def read(question: str, view: View, budget: int = 4096) -> list[Retrieved]:
    return [*collect(ScriptedLLM({}), view, question, "bm25", ReaderSettings(), budget).items]


def seqs(items: list[Retrieved]) -> list[int]:
    return [seq for item in items for seq in item.seqs]


def test_instructions_are_known_whatever_is_asked_the_newest_first_and_preferences_by_relevance() -> None:
    assert seqs(standing(VIEW, HOTEL, 1024)) == [22, 21, 23]
    assert seqs(standing(VIEW, "How tall is the tower?", 1024)) == [22, 21]
    assert standing(view_of(LISBON), HOTEL, 1024) == []


def test_each_kind_of_wish_has_its_room() -> None:
    room = tokens.count("From now on call me Bo.")
    assert seqs(standing(VIEW, HOTEL, 4 * room)) == [22]


def test_a_reader_shows_them_within_the_budget() -> None:
    assert {21, 22} <= set(seqs(read("Where did Ana move?", VIEW)))
    few = read("Where did Ana move?", VIEW, 160)
    assert sum(tokens.count(item.text) for item in few) <= 160
    assert {13, 22} <= set(seqs(few))


def test_wishes_stand_behind_the_best_five() -> None:
    found = [Retrieved("topics/a", n, n, f"fact {n}", 1.0, seqs=(n,)) for n in range(100, 107)]
    told = with_beside(VIEW, "How tall?", found, 4096)
    assert seqs(told) == [100, 101, 102, 103, 104, 22, 21, 105, 106]


def test_nothing_is_filed_there_that_was_not_asked_for_and_nothing_leaves() -> None:
    assert STANDING not in open_documents(VIEW)
    assert not may_change(STANDING, VIEW)


def test_what_a_line_replaced_is_shown_beside_it_where_the_past_matters() -> None:
    past = read("Where did Ana live before?", VIEW)
    at = [item.seqs for item in past].index((11,))
    assert 13 in past[at - 1].seqs
    assert 11 not in seqs(read("Where does Ana live?", VIEW))


def test_an_answerer_is_told_by_which_line_it_was_replaced() -> None:
    llm = ScriptedLLM({"answer": [{"answer": "Porto", "cites": ["11"]}]})
    question = "Where did Ana live before?"
    answer(llm, question, Evidence(tuple(read(question, VIEW))), "2023-08-01", 4096)
    assert "Ana lives in Porto (when 2022-01-01, superseded by 13)" in shown(
        llm.calls[0].variables["evidence"]
    )


SESSIONS = {
    f"evidence/s{day}": "\n".join(
        f"- <seq={100 * day + n},time=2024-03-0{day},source={who}> The garden: step {n} of day {day}."
        for n, who in enumerate(("user", "user", "AI"), 1)
    )
    for day in range(1, 4)
}
GARDEN = view_of(SESSIONS, drawn=frozenset())


def test_the_order_of_things_is_read_from_all_sessions() -> None:
    found = seqs(spread(GARDEN, "In what order did the garden come along?"))
    assert sorted(seq // 100 for seq in found[:3]) == [1, 2, 3]
    assert sorted(seq // 100 for seq in found[3:6]) == [1, 2, 3]
    assert len(found) == 9


def test_the_agent_begins_with_more_where_the_whole_is_asked_for() -> None:
    long = {
        name: text.replace("The garden:", "The garden: " + "roses and beans, " * 30)
        for name, text in SESSIONS.items()
    }
    view = view_of(long, drawn=frozenset())
    some, few = (
        sum(
            tokens.count(item.text)
            for item in collect(ScriptedLLM({}), view, asked, "agent", ReaderSettings(), 4096).items
        )
        for asked in ("Summarize the garden.", "Where is the garden?")
    )
    assert few <= ROUND < some <= 4096 // 2


def test_of_what_the_user_brought_up_the_users_lines_are_shown() -> None:
    found = best_lines(GARDEN, "In what order did I bring up steps of the garden?", 4096)
    assert {item.source for item in found} == {"user"}


def test_an_answer_on_the_order_of_things_reads_lines_by_day() -> None:
    question = "In what order did the garden come along?"
    llm = ScriptedLLM({"answer": [{"answer": "1, 2, 3", "cites": ["101"]}]})
    view = view_of(
        SESSIONS | {STANDING: WISHES[STANDING].replace("origin=1>", "origin=101>")}, drawn=frozenset()
    )
    answer(llm, question, Evidence(tuple(read(question, view))), "2024-04-01", 4096)
    told: list[dict[str, Any]] = llm.calls[0].variables["evidence"]
    assert [row.get("day") or row["doc_id"] for row in told][:3] == ["2024-03-01", "2024-03-02", "2024-03-03"]
    assert [row["doc_id"] for row in told[3:]] == [STANDING]
    assert [line["id"] for row in told[:3] for line in row["lines"]] == [
        *("102", "103"),  # 101 is filed
        *("201", "202", "203"),
        *("301", "302", "303"),
    ]


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("In what order did I mention the trips?", True),
        ("Can you list them chronologically?", True),
        ("List the order in which I brought up the app.", True),
        ("What must I do in order to win?", False),
        ("Can you summarise the project?", True),
        ("How has my plan developed?", True),
        ("How is my progress coming along?", False),
        ("When did Ana move?", False),
    ],
)
def test_whether_a_question_asks_for_the_whole(question: str, whole: bool) -> None:
    assert about_all(question) is whole


def test_a_question_on_the_past_and_one_on_ones_own_words() -> None:
    assert about_past("Where did Ana live before?") and about_past("Have I met Bo?")
    assert not about_past("Where does Ana live?")
    assert about_my_words("the order in which I brought up the app")
    assert not about_my_words("the order in which the app grew")
