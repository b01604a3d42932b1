"""What is shown beside what was found: wishes, what was superseded, lines from all that was said."""

from __future__ import annotations

from cases import each
from in_memory import LISBON, view_of

from infinimem.grounding.asked import about_all, about_my_words, about_past
from infinimem.model import Retrieved
from infinimem.store.spec import STANDING
from infinimem.strategies.infini.plan import open_documents
from infinimem.strategies.infini.split_merge import may_change
from infinimem.strategies.readers.beside import standing

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


def seqs(items: list[Retrieved]) -> list[int]:
    return [seq for item in items for seq in item.seqs]


def test_instructions_are_known_whatever_is_asked_the_newest_first_and_preferences_by_relevance() -> None:
    assert seqs(standing(VIEW, HOTEL, 1024)) == [22, 21, 23]
    assert seqs(standing(VIEW, "How tall is the tower?", 1024)) == [22, 21]
    assert standing(view_of(LISBON), HOTEL, 1024) == []


def test_nothing_is_filed_there_that_was_not_asked_for_and_nothing_leaves() -> None:
    assert STANDING not in open_documents(VIEW)
    assert not may_change(STANDING, VIEW)


@each(
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
