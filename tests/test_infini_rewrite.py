"""Grouping the buffer: what the model names wrongly costs a title, never a line."""

from __future__ import annotations

from typing import Any

import pytest
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library, entry, ids, one_topic, rewritten

from infinimem.strategies.infini.asking import Asker
from infinimem.strategies.infini.rewrite import Claim, Draft, rewrite
from infinimem.testing import ScriptedLLM


def draft(library: Library, *replies: Any) -> tuple[Draft, ScriptedLLM]:
    llm = ScriptedLLM({"rewrite": replies})
    return rewrite(library.view(), Asker(llm)), llm


def seqs(found: Draft) -> dict[str, list[int]]:
    return {topic.title: [line.seq for line in topic.entries] for topic in found.topics}


def test_lines_are_grouped_as_named() -> None:
    library = Library()
    library.buffer("Drinks tea", "Drinks tea", "Lives in Rome", "Lives in Oslo")
    found, llm = draft(library, rewritten({"Home": [4], "Drinks": [2]}, [(1, 2)], [(3, 4)]))
    assert seqs(found) == {"Home": [4], "Drinks": [2]}
    assert found.claims == (Claim(1, 2, "duplicate"), Claim(3, 4, "superseded"))
    assert found.notes == ()
    assert llm.calls[0].variables["facts"][0] == {
        "id": "1",
        "time": None,
        "source": "user",
        "text": "Drinks tea",
    }


def test_lines_of_a_topic_stand_in_the_order_of_their_numbers_with_their_speakers() -> None:
    library = Library()
    library.buffer("a", "b", "c", speaker="Ana")
    found, llm = draft(library, rewritten({"X": [3, 1], "x": [2]}))
    assert seqs(found) == {"X": [1, 2, 3]}
    assert {told["speaker"] for told in llm.calls[0].variables["facts"]} == {"Ana"}


def test_a_line_that_is_to_stand_for_itself_is_asked_about_again() -> None:
    library = Library()
    library.buffer("a", "b")
    found, llm = draft(library, rewritten({"X": [2]}, [(1, 1)]), rewritten({"X": [1, 2]}))
    assert llm.calls[1].variables["problems"] == ["UNKNOWN_SURVIVOR 1: 1"]
    assert seqs(found) == {"X": [1, 2]}


def test_a_wrong_reply_is_asked_for_again_with_its_problems() -> None:
    library = Library()
    library.buffer("a", "b", "c")
    wrong = rewritten({"X": [1, 1, 99], "Y": ["two"]}, [(3, 77)])
    found, llm = draft(library, wrong, rewritten({"X": [1, 2], "# Y  ": [3]}))
    assert llm.calls[1].variables["problems"] == [
        "MISSING 2",
        "REPEATED 1",
        "UNKNOWN: 99, two",
        "UNKNOWN_SURVIVOR 3: 77",
    ]
    assert seqs(found) == {"X": [1, 2], "Y": [3]}


def test_what_stays_missing_is_a_topic_of_its_own() -> None:
    library = Library()
    library.buffer("a", "b", "c", "d")
    found, _ = draft(library, rewritten({"X": [1], "": [4]}), rewritten({"X": [1], "": [4]}))
    assert seqs(found) == {"X": [1], "Unsorted 1": [2, 3, 4]}
    assert found.notes == ("rewrite: MISSING 2, 3",)


def test_without_a_readable_reply_the_sections_of_the_buffer_are_the_topics() -> None:
    library = Library({"CURRENT": f"---\ncurrent_epoch: 6\n---\n{entry(1, 'a')}\n# Food\n{entry(2, 'b')}\n"})
    found, llm = draft(library, "no", "no")
    assert seqs(found) == {"Unsorted 7": [1], "Food": [2]}
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


def test_a_line_that_is_placed_and_discarded_stays() -> None:
    library = Library()
    library.buffer("Drinks tea", "Drinks tea")
    both = rewritten({"X": [1, 2]}, [(1, 2)])
    assert draft(library, both, both)[0].claims == ()


@pytest.mark.parametrize(
    ("lines", "claims", "held"),
    [
        (["Has 2 cats", "Has 3 cats"], {"duplicates": [(1, 2)]}, ()),
        (["old", "new"], {"superseded": [(2, 1)]}, ()),
        (["Has a cat", "Has a cat", "Has no cat"], {"duplicates": [(1, 2)], "superseded": [(2, 3)]}, (1, 2)),
        (["Has 2 cats", "Has 2 cats", "Has 3 cats"], {"duplicates": [(1, 2), (2, 3)]}, (1,)),
        (["same", "same"], {"duplicates": [(1, 2), (2, 1)]}, ()),
        (["same", "same", "same"], {"duplicates": [(1, 2), (2, 3), (3, 2)]}, ()),
        (["same", "same"], {"duplicates": [(1, 1)]}, ()),
    ],
    ids=["numbers differ", "older", "chain", "broken chain", "circle", "into a circle", "itself"],
)
def test_claims_hold_only_where_the_law_lets_them(
    lines: list[str], claims: dict[str, list[tuple[int, int]]], held: tuple[int, ...]
) -> None:
    library = Library()
    library.buffer(*lines)
    named = {old for pairs in claims.values() for old, _ in pairs}
    reply = rewritten({"X": [seq for seq in range(1, len(lines) + 1) if seq not in named]}, **claims)
    found, _ = draft(library, reply, reply)
    assert tuple(claim.seq for claim in found.claims) == held
    assert all(claim.by not in held for claim in found.claims)
    assert sorted([*held, *(seq for group in seqs(found).values() for seq in group)]) == list(
        range(1, len(lines) + 1)
    )


def test_a_withheld_line_stays_with_its_survivor() -> None:
    library = Library()
    library.buffer("Has 2 cats", "Has 3 cats", "Plays chess")
    insists = rewritten({"Chess": [3], "Pets": [2]}, [(1, 2)])
    found, llm = draft(library, insists, insists)
    assert llm.calls[1].variables["problems"] == ["NOT_A_DUPLICATE 1, 2"]
    assert seqs(found) == {"Chess": [3], "Pets": [1, 2]}
    assert found.notes == ("withheld: NOT_A_DUPLICATE 1, 2",)


def test_one_speaker_neither_repeats_nor_replaces_another() -> None:
    library = Library()
    library.buffer("I have a dog", speaker="Ana")
    library.buffer("I have a dog", speaker="Bo")
    found, _ = draft(library, rewritten({"Pets": [2]}, [(1, 2)]), rewritten({"Pets": [1, 2]}))
    assert found.claims == ()


def test_a_persons_line_is_not_discarded() -> None:
    library = Library()
    library.buffer("Drinks tea", source="human")
    library.buffer("Drinks tea", pin="yes")
    library.buffer("Drinks tea")
    found, _ = draft(library, rewritten({"Tea": [3]}, [(1, 3), (2, 3)]))
    assert found.claims == ()
    assert seqs(found) == {"Tea": [1, 2, 3]}


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
