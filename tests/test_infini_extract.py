"""Extraction: every turn ends up cited or empty, and no sentence of a model says more than its origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library

from infinimem import tokens
from infinimem.errors import ModelUnavailable
from infinimem.model import NewEntry, Plan
from infinimem.settings import Settings
from infinimem.strategies.infini.asking import cut, unsupported, verbatim
from infinimem.strategies.infini.extract import units
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.strategy import Infini
from infinimem.testing import ScriptedLLM


def item(text: str, *origin: object, time: str | None = None, refers: str | None = None) -> dict[str, Any]:
    return {"text": text, "from": [str(seq) for seq in origin], "time": time, "refers": refers}


def reply(*entries: dict[str, Any], empty: Sequence[object] = ()) -> dict[str, Any]:
    return {"entries": list(entries), "empty": [str(seq) for seq in empty]}


def observe(library: Library, *replies: Any) -> tuple[list[Plan], ScriptedLLM]:
    llm = ScriptedLLM({"extract": replies})
    view = library.view()
    library.drive(Infini(llm, library.settings).observe(view, view.uncited()))
    return library.plans, llm


def test_a_phrased_entry_names_its_origin_and_a_copied_one_is_nobodys() -> None:
    library = Library()
    library.say("I moved to Lisbon. The flat is small.", "Nice!", speaker="Ana", time="2023-05-08")
    (plan,), llm = observe(
        library,
        reply(
            item("Ana lives in Lisbon", 1, time="2023-05-07 14:00", refers="Lisbon, Portugal"),
            item("The flat is small.", 1, time="last week"),
            empty=(2,),
        ),
    )
    phrased, copied = plan.adds
    assert phrased == NewEntry(
        "Ana lives in Lisbon", (1,), time="2023-05-07T14:00", by="model", refers="Lisbon, Portugal"
    )
    assert copied == NewEntry("The flat is small.", (1,))
    assert plan.empty == (2,)
    assert plan.op == "append"
    turn = llm.calls[0].variables["turns"][0]
    assert turn == {
        "id": "1",
        "role": "user",
        "speaker": "Ana",
        "time": "2023-05-08",
        "text": "I moved to Lisbon. The flat is small.",
    }


@pytest.mark.parametrize("time", ["2025-13-45", "2025-02-30 10:00", "2025-05-06T99:99", "May", ""])
def test_a_time_that_no_calendar_has_is_left_to_the_origin(time: str) -> None:
    library = Library()
    library.say("I moved to Lisbon.", time="2023-05-08")
    (plan,), _ = observe(library, reply(item("I moved to Lisbon.", 1, time=time)))
    assert [add.time for add in plan.adds] == [None]


def test_what_an_entry_refers_to_is_of_bounded_length() -> None:
    library = Library()
    library.say("I moved to Lisbon.")
    (plan,), _ = observe(library, reply(item("I moved to Lisbon.", 1, refers="Lisbon " * 100)))
    assert len(plan.adds[0].refers or "") == 200


@pytest.mark.parametrize(
    "said",
    ["Ana paid 14 euros", "Ana met Bruno there", "Ana does not live in Lisbon", "zebra"],
    ids=["number", "name", "negation", "unrelated"],
)
def test_what_the_origin_does_not_hold_is_replaced_by_the_origin(said: str) -> None:
    library = Library()
    library.say("I live in\nLisbon now", speaker="Ana")
    (plan,), llm = observe(library, reply(item(said, 1)))
    assert plan.adds == (NewEntry("I live in Lisbon now", (1,)),)
    assert len(llm.calls) == 1
    assert any("UNSUPPORTED" in note for note in plan.notes)


def test_beside_a_supported_sentence_the_origin_of_an_unsupported_one_is_kept_too() -> None:
    library = Library()
    library.say("I live in Lisbon now", "I paint")
    (plan,), _ = observe(library, reply(item("Lives in Lisbon", 1), item("Has 3 kids", 1), item("Paints", 2)))
    assert [add.text for add in plan.adds] == ["Lives in Lisbon", "Paints", "I live in Lisbon now"]


def test_problems_are_listed_once_and_what_stays_open_is_kept_as_said() -> None:
    library = Library()
    library.say("I like tea", "I like figs", "I own a kayak")
    bad = reply(item("likes tea", 1), item("", 2), item("x", 77), empty=(1,))
    (plan,), llm = observe(library, bad, reply(item("likes tea", 1), empty=(3, 9)))
    assert llm.calls[1].variables["problems"] == [
        "MISSING 2, 3",
        "REPEATED 1",
        "UNKNOWN: 77",
        "EMPTY_TEXT",
        "NO_ORIGIN",
    ]
    assert [(add.text, add.origin, add.by) for add in plan.adds] == [
        ("likes tea", (1,), "model"),
        ("I like figs", (2,), None),
    ]
    assert plan.empty == (3,)


def test_a_reply_that_cannot_be_read_twice_keeps_every_turn_as_said() -> None:
    library = Library()
    library.say("one\n\n  two", "three")
    (plan,), llm = observe(library, "no JSON", '{"entries": [')
    assert plan.adds == (NewEntry("one two", (1,)), NewEntry("three", (2,)))
    assert len(llm.calls) == 2


def test_a_dead_endpoint_leaves_the_turns_pending_and_what_came_before_applied() -> None:
    library = Library(feed="turn")
    library.say("one", "two")
    with pytest.raises(ModelUnavailable):
        observe(library, reply(item("one", 1)), ModelUnavailable("no answer"))
    assert [place.entry.seq for place in library.view().uncited()] == [2]


def test_a_refused_plan_is_followed_by_the_turns_as_said_and_then_by_nothing() -> None:
    library = Library(feed="turn")
    library.say("I like tea", "two", "three")
    library.refuse = ["BAD", "", "BAD", "BAD"]
    plans, _ = observe(library, reply(item("likes tea", 1)), reply(item("two", 2)), reply(item("three", 3)))
    assert [plan.adds[0].text for plan in plans] == ["likes tea", "I like tea", "two", "two"]
    assert [place.entry.seq for place in library.view().uncited()] == [2, 3]


def test_context_is_the_two_turns_before_of_the_same_session() -> None:
    library = Library(feed="turn")
    library.say("old", session="s0")
    library.say("a", "b", "c", "d", session="s1")
    view = library.view()
    llm = ScriptedLLM({"extract": lambda v: reply(item(v["turns"][0]["text"], v["turns"][0]["id"]))})
    library.drive(Infini(llm, library.settings).observe(view, view.uncited()))
    before = [[turn["text"] for turn in call.variables["context"]] for call in llm.calls]
    assert before == [[], [], ["a"], ["a", "b"], ["b", "c"]]


def test_a_turn_larger_than_a_chunk_is_asked_about_in_parts_and_planned_once() -> None:
    library = Library(chunk_tokens=60, workers=1)  # so that it is known in which order they are asked
    text = " ".join(f"Day {number} went well for the garden." for number in range(40))
    library.say("before", text, "after")
    view = library.view()
    shown: list[str] = []

    def answer(variables: Any) -> Any:
        shown.append(" ".join(turn["text"] for turn in variables["turns"]))
        if "Day 0" in shown[-1]:
            return reply(item("Day 0 went well for the garden.", 2))
        return (
            "garbage" if "Day 39" in shown[-1] else reply(empty=[turn["id"] for turn in variables["turns"]])
        )

    llm = ScriptedLLM({"extract": answer})
    library.drive(Infini(llm, library.settings).observe(view, view.uncited()))
    assert [len(plan.adds) for plan in library.plans] == [0, 2, 0]
    assert all(tokens.count(part) <= 60 for part in shown)
    assert "".join(dict.fromkeys(shown[1:-1])).split() == text.split()
    first, last = library.plans[1].adds
    assert first.origin == last.origin == (2,)
    assert last.text.endswith("Day 39 went well for the garden.") and last.by is None


# ── feeding ─────────────────────────────────────────────────────────────────────────────────────


def test_exchanges_are_a_turn_and_what_was_replied_to_it() -> None:
    library = Library(feed="exchange")
    for role, text in [("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d"), ("assistant", "e")]:
        library.say(text, role=role)
    library.say("f", role="assistant", session="s2")  # a reply, but to nothing of this session
    feed = units(library.view().uncited(), library.settings.of(InfiniSettings))
    assert [[turn.entry.text for turn in unit] for unit in feed] == [["a", "b", "c"], ["d", "e"], ["f"]]


@given(st.lists(st.integers(1, 300), max_size=30), st.sampled_from(["turn", "chunk", "exchange"]))
@settings(max_examples=30, deadline=None)
def test_feeding_keeps_every_turn_in_order_and_within_the_chunk(lengths: list[int], feed: str) -> None:
    library = Library(feed=feed, chunk_tokens=200)
    for number, length in enumerate(lengths):
        library.say("word " * length, speaker="AB"[number % 2])
    turns = library.view().uncited()
    portions = units(turns, library.settings.of(InfiniSettings))
    assert [turn for unit in portions for turn in unit] == list(turns)
    for unit in portions:
        assert len(unit) == 1 or sum(tokens.count(turn.entry.text) for turn in unit) <= 200


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_nonsense_of_the_right_shape_loses_no_turn(seed: int) -> None:
    library = Library(feed=("turn", "chunk", "exchange")[seed % 3], chunk_tokens=30)
    library.say(
        "I like tea and 3 figs", "   ", "北京很大", 'She said "no"', "Nothing - <seq=1> here", "word " * 90
    )
    view = library.view()
    library.drive(Infini(GarbageLLM(seed), Settings()).observe(view, view.uncited()))
    assert library.view().uncited() == ()
    for plan in library.plans:
        cited = {seq for add in plan.adds for seq in add.origin}
        assert not cited & set(plan.empty)
        for add in plan.adds:
            origins = [place.entry.text for seq in add.origin if (place := view.entry(seq))]
            assert add.by is None or not unsupported(add.text, origins)


# ── wording ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "origin", "holds"),
    [
        ("I like tea", "I like tea", True),
        ("I like tea", "I  like\ttea", True),
        ("I like tea.", "Well. I like tea. Do you?", True),
        ("like tea.", "I don't like tea.", False),
        ("I like tea", "I like tea without milk", False),
        ("second line", "first line\nsecond line\nthird", True),
        ("first line second line", "first line\n\nsecond line", True),
        ("line second", "first line\nsecond line", False),
        ("", "anything", False),
        ("我喜欢茶。", "你好。我喜欢茶。", True),
    ],
)
def test_verbatim_is_whole_sentences_or_lines(text: str, origin: str, holds: bool) -> None:
    assert verbatim(text, origin) is holds


@given(st.text(alphabet=st.sampled_from("ab .!?\n北")), st.integers(1, 20))
@settings(deadline=None)
def test_cutting_loses_nothing_but_blank_pieces(text: str, limit: int) -> None:
    assert "".join("".join(cut(text, limit)).split()) == "".join(text.split())


def test_an_item_of_a_list_is_verbatim_without_its_bullet() -> None:
    told = "To buy:\n- milk and rice\n* no bread\n+ tea"
    assert all(verbatim(item, told) for item in ("milk and rice", "no bread", "tea", "- milk and rice"))
    assert not verbatim("bread", told)
    assert not verbatim("rice", told)
