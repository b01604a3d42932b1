"""Grouping the buffer: what the model names wrongly costs a title, never a line."""

from __future__ import annotations

from typing import Any

from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library, entry, ids, one_topic, rewritten

from infinimem.strategies.infini.asking import Asker
from infinimem.strategies.infini.compare import Claim
from infinimem.strategies.infini.rewrite import Draft, rewrite
from infinimem.testing import ScriptedLLM


def draft(library: Library, *replies: Any) -> tuple[Draft, ScriptedLLM]:
    llm = ScriptedLLM({"rewrite": replies})
    return rewrite(library.view(), Asker(llm)), llm


def seqs(found: Draft) -> dict[str, list[int]]:
    return {topic.title: [line.seq for line in topic.entries] for topic in found.topics}


def test_lines_are_grouped_as_named() -> None:
    library = Library()
    library.buffer("Drinks tea", "Drinks tea", "Lives in Rome", "Lives in Oslo")
    found, llm = draft(library, rewritten({"Home": [4, 3], "Drinks": [2]}))
    assert seqs(found) == {"Home": [3, 4], "Drinks": [2]}
    assert found.claims == (Claim(1, 2, "duplicate"),)  # found by rule: no one is asked about it
    assert (found.notes, found.titled) == ((), frozenset())
    assert llm.calls[0].variables["facts"][0] == {
        "id": "2",
        "time": None,
        "source": "user",
        "text": "Drinks tea",
    }


def test_lines_under_a_heading_have_their_topic_and_no_one_is_asked_about_them() -> None:
    lines = [entry(1, "a"), "# Food", entry(2, "b"), "# Unsorted 1", entry(3, "c"), "# Food", entry(4, "d")]
    library = Library({"CURRENT": "\n".join([*lines, ""])})
    found, llm = draft(library, rewritten({"X": [1, 3]}))
    assert seqs(found) == {"Food": [2, 4], "X": [1, 3]}
    assert found.titled == {"Food"}
    assert ids(llm.calls[0].variables["facts"]) == ["1", "3"]
    library = Library({"CURRENT": f"# Food\n{entry(2, 'b')}\n"})
    found, llm = draft(library)
    assert (seqs(found), llm.calls) == ({"Food": [2]}, [])


def test_lines_of_a_topic_stand_in_the_order_of_their_numbers_with_their_speakers() -> None:
    library = Library()
    library.buffer("a", "b", "c", speaker="Ana")
    found, llm = draft(library, rewritten({"X": [3, 1], "x": [2]}))
    assert seqs(found) == {"X": [1, 2, 3]}
    assert {told["speaker"] for told in llm.calls[0].variables["facts"]} == {"Ana"}


def test_a_wrong_reply_is_asked_for_again_with_its_problems() -> None:
    library = Library()
    library.buffer("a", "b", "c")
    wrong = rewritten({"X": [1, 1, 99], "Y": ["two", 3]})
    found, llm = draft(library, wrong, rewritten({"X": [1, 2], "# Y  ": [3]}))
    assert llm.calls[1].variables["problems"] == [
        "MISSING 2",
        "REPEATED 1",
        "UNKNOWN: 99, two",
    ]
    assert seqs(found) == {"X": [1, 2], "Y": [3]}


def test_what_stays_missing_is_a_topic_of_its_own() -> None:
    library = Library()
    library.buffer("a", "b", "c", "d")
    found, _ = draft(library, rewritten({"X": [1], "": [4]}), rewritten({"X": [1], "": [4]}))
    assert seqs(found) == {"X": [1], "Unsorted 1": [2, 3, 4]}
    assert found.notes == ("rewrite: MISSING 2, 3",)


def test_without_a_readable_reply_lines_are_unsorted() -> None:
    library = Library({"CURRENT": f"---\ncurrent_epoch: 6\n---\n{entry(1, 'a')}\n# Food\n{entry(2, 'b')}\n"})
    found, llm = draft(library, "no", "no")
    assert seqs(found) == {"Food": [2], "Unsorted 7": [1]}
    assert len(llm.calls) == 2


def test_a_second_reply_that_cannot_be_read_leaves_the_first() -> None:
    library = Library()
    library.buffer("a", "b")
    found, _ = draft(library, rewritten({"X": [1]}), "no")
    assert seqs(found) == {"X": [1], "Unsorted 1": [2]}


def test_a_second_reply_that_is_worse_leaves_the_first() -> None:
    library = Library()
    library.buffer("a", "b")
    found, _ = draft(library, rewritten({"X": [1]}), rewritten({"Y": ["9" * 5000]}))
    assert seqs(found) == {"X": [1], "Unsorted 1": [2]}


def test_a_large_buffer_goes_in_parts_and_equal_titles_meet() -> None:
    library = Library(plan_split_threshold=160)
    library.buffer(*(f"fact number {number} of ten" for number in range(11)))
    llm = ScriptedLLM({"rewrite": one_topic})
    found = rewrite(library.view(), Asker(llm))
    parts = [ids(call.variables["facts"]) for call in llm.calls]
    assert [len(part) for part in parts] == [6, 5]  # not eight and a rest
    assert [seq for part in parts for seq in part] == [str(seq) for seq in range(1, 12)]
    assert seqs(found) == {"Things": list(range(1, 12))}


@given(st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_nonsense_keeps_every_line_once(seed: int) -> None:
    library = Library(plan_split_threshold=(60, 5000)[seed % 2])
    library.buffer("Drinks tea", "Drinks tea", "Lives in Rome", "Lives in Oslo since 2020", "x", "北京")
    found = rewrite(library.view(), Asker(GarbageLLM(seed)))
    placed = [line.seq for topic in found.topics for line in topic.entries]
    assert sorted([*placed, *(claim.seq for claim in found.claims)]) == [1, 2, 3, 4, 5, 6]
    assert all(claim.by in placed for claim in found.claims)
    assert all(topic.title for topic in found.topics)
