"""Extraction: every turn ends up cited or empty, and no sentence of a model says more than its origin."""

from __future__ import annotations

from typing import Any

import pytest
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library, document, entry

from infinimem import tokens
from infinimem.errors import ModelUnavailable
from infinimem.model import NewEntry, Plan
from infinimem.settings import Settings
from infinimem.store.spec import STANDING
from infinimem.strategies.infini.asking import cut, unsupported, verbatim
from infinimem.strategies.infini.extract import units
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.strategy import Infini
from infinimem.testing import ScriptedLLM

ALL_SAID = (
    "Ana moved to Lisbon and rents a flat, she rents it. Ana met Dr. Vu with cups, plates, a cat in Lisbon. "
    'Bo stayed in Porto. "I moved to Lisbon. Bo stayed in Porto."'
)


def item(text: str, *origin: object, when: str | None = None, refers: str | None = None) -> dict[str, Any]:
    return {"text": text, "from": [str(seq) for seq in origin], "when": when, "refers": refers}


def reply(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"entries": list(entries)}


def observe(library: Library, *replies: Any) -> tuple[list[Plan], ScriptedLLM]:
    llm = ScriptedLLM({"extract": replies})
    view = library.view()
    library.drive(Infini(llm, library.settings).observe(view, view.uncited()))
    return library.plans, llm


@pytest.mark.parametrize(
    ("text", "joins"),
    [
        ("Ana moved to Lisbon; Bo stayed in Porto", True),
        ("Ana moved to Lisbon. She rents a flat.", True),
        ("Ana moved to Lisbon and rents a flat", False),
        ("Ana met Dr. Vu in Lisbon", False),
        ('Ana said "I moved to Lisbon. Bo stayed in Porto."', False),
        ("Ana moved to Lisbon with cups; plates; a cat", False),
    ],
)
def test_an_entry_of_two_facts_goes_back_once(text: str, joins: bool) -> None:
    library = Library()
    library.say(f"Ana here: {ALL_SAID}", speaker="Ana")
    parted = reply(item("Ana moved to Lisbon", 1), item("Bo stayed in Porto", 1))
    (plan, *_), llm = observe(library, reply(item(text, 1)), parted)
    problems = [call.variables["problems"] for call in llm.calls]
    assert problems == ([[], [f"TWO_FACTS 1: {text}"]] if joins else [[]])
    assert [add.text for add in plan.adds] == (
        ["Ana moved to Lisbon", "Bo stayed in Porto"] if joins else [text]
    )


def test_an_entry_of_two_facts_that_is_not_mended_is_taken_and_a_copied_one_is_never_sent_back() -> None:
    library = Library()
    library.say("I moved to Lisbon. I rent a flat.", speaker="Ana")
    twice = reply(item("Ana moved to Lisbon. Ana rents a flat.", 1))
    (plan, *_), _ = observe(library, twice, twice)
    assert [add.text for add in plan.adds] == ["Ana moved to Lisbon. Ana rents a flat."]
    library.say("You found a cat. You named it Rex.", speaker="Bo")
    _, llm = observe(library, reply(item("You found a cat. You named it Rex.", 3)))
    assert len(llm.calls) == 1


def test_a_phrased_entry_names_its_origin_and_a_copied_one_is_nobodys() -> None:
    library = Library()
    text = "I moved to Lisbon last month. The flat is small."
    library.say(text, "Nice!", speaker="Ana", time="2023-05-08")
    (plan,), llm = observe(
        library,
        reply(
            item("Ana moved to Lisbon last month", 1, when="2023-04", refers="Lisbon, Portugal"),
            item("The flat is small.", 1),
        ),
    )
    phrased, copied = plan.adds
    assert phrased == NewEntry(
        "Ana moved to Lisbon last month", (1,), when="2023-04", by="model", refers="Lisbon, Portugal"
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
        "text": text,
        "told": [f"[1] 2023-05-08 Ana: {text}"],
    }
    assert llm.calls[0].variables["turns"][1]["told"] == ["[2] Ana: Nice!"]


@pytest.mark.parametrize("when", ["2023-04-31", "2022-04", "2023-05-06T10:00", "last month", " "])
def test_a_when_that_the_words_cannot_mean_is_dropped_and_said(when: str) -> None:
    library = Library()
    library.say("I moved to Lisbon last month.", time="2023-05-08")
    (plan,), _ = observe(library, reply(item("I moved to Lisbon last month.", 1, when=when)))
    assert [add.when for add in plan.adds] == [None]
    said = f"extract: IMPLAUSIBLE_WHEN 1: {when}"
    assert plan.notes == ((said,) if when.strip() else ())


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
def test_what_the_origin_does_not_hold_goes_back_once_and_is_then_refused(said: str) -> None:
    library = Library()
    library.say("I live in\nLisbon now", speaker="Ana")
    (plan,), llm = observe(library, reply(item(said, 1)), reply(item(said, 1)))
    assert (plan.adds, plan.empty, plan.refused) == ((), (), (1,))
    assert [call.variables["problems"] for call in llm.calls] == [
        [],
        [plan.notes[0].removeprefix("extract: ")],
    ]
    assert plan.notes[0].startswith("extract: UNSUPPORTED 1")


def test_topics_are_told_and_named_once_for_the_entries_in_a_row() -> None:
    library = Library({"topics/food": document(entry(90, "Drinks tea"), title="Ann’s food")})
    library.buffer("Owns a kayak")
    library.documents["CURRENT"] = (
        library.documents["CURRENT"].without({91}).insert([entry(91, "a")], "Boats")
    )
    library.say("I like figs", "I sail a kayak", "I like rice", speaker="Ann")
    told = reply(
        item("I like figs", 92) | {"topic": "ann’s FOOD"}, item("I like rice", 94), item("I sail a kayak", 93)
    )
    told["entries"][2]["topic"] = "# Boats "
    (plan,), llm = observe(library, told)
    assert llm.calls[0].variables["topics"] == ["Ann’s food", "Boats"]
    assert [(add.text, add.heading) for add in plan.adds] == [
        ("I like figs", "Ann’s food"),
        ("I sail a kayak", "Boats"),
        ("I like rice", "Ann’s food"),
    ]


def test_entries_without_a_topic_do_not_get_that_of_the_lines_above_them() -> None:
    library = Library({"CURRENT": f"# Boats\n{entry(1, 'Owns a kayak')}\n"})
    library.say("I like figs")
    (plan,), _ = observe(library, reply(item("I like figs", 2)))
    assert [add.heading for add in plan.adds] == ["Unsorted 1"]
    library = Library()
    library.say("I like figs")
    (plan,), _ = observe(library, reply(item("I like figs", 1)))
    assert [add.heading for add in plan.adds] == [""]


def test_portions_are_asked_about_side_by_side_once_there_are_topics() -> None:
    library = Library(feed="turn", workers=4)
    library.say("I like figs", "I like rice", "I like tea")
    seen: dict[str, list[str]] = {}

    def answer(variables: Any) -> Any:
        (turn,) = variables["turns"]
        seen[turn["id"]] = variables["topics"]
        return reply(item(turn["text"], turn["id"]) | {"topic": f"Topic {turn['id']}"})

    view = library.view()
    library.drive(Infini(ScriptedLLM({"extract": answer}), library.settings).observe(view, view.uncited()))
    assert seen == {"1": [], "2": ["Topic 1"], "3": ["Topic 1"]}


def test_of_very_many_topics_those_nearest_to_what_is_said_are_told() -> None:
    food = document(entry(90, "Eats figs"), title="Food")
    boats = document(entry(91, "Owns a kayak"), title="Boats")
    library = Library(
        {"topics/a": boats, "topics/b": food, "topics/inbox": document(entry(92, "figs"))}, planner_docs=1
    )
    library.say("I like figs")
    _, llm = observe(library, reply(item("I like figs", 93)))
    assert llm.calls[0].variables["topics"] == ["Food"]


def test_what_is_wrong_goes_back_with_its_turns_and_those_before_and_the_rest_stands() -> None:
    library = Library()
    library.say("I like figs", "I read Dune", "Hm", "It taught me hope", "I sail", speaker="Ann")
    bad = item("Dune taught Ann hope", 4)
    mended = item("Dune taught Ann hope", 2, 4)
    (plan,), llm = observe(library, reply(item("I like figs", 1), bad, item("I sail", 5)), reply(mended))
    assert [turn["id"] for turn in llm.calls[1].variables["turns"]] == ["2", "3", "4"]
    assert llm.calls[1].variables["problems"] == ["UNSUPPORTED 4: name dune in: Dune taught Ann hope"]
    assert [add.text for add in plan.adds] == ["I like figs", "Dune taught Ann hope", "I sail"]
    assert (plan.refused, plan.notes, plan.empty) == ((), (), (3,))


def test_a_model_that_leaves_out_most_is_asked_once_more_and_else_nothing_is_asked() -> None:
    library = Library()
    long = "My grandmother planted {} apple trees behind the old stone mill near the river bridge last spring"
    library.say(*(long.format(number) for number in ("nine", "ten", "six")), "ok", speaker="Ann")
    one = reply(item(long.format("nine"), 1))
    (plan,), llm = observe(library, reply(), one)
    assert llm.calls[1].variables["problems"] == ["LEFT_OUT 1, 2, 3"]
    assert [turn["id"] for turn in llm.calls[1].variables["turns"]] == ["1", "2", "3"]
    assert (plan.empty, plan.refused, len(plan.adds)) == ((2, 3, 4), (), 1)
    library = Library()
    library.say(*(long.format(number) for number in ("nine", "ten", "six")), "ok", speaker="Ann")
    _, llm = observe(library, one)  # the others say no more than the one
    assert len(llm.calls) == 1


def test_what_a_model_mends_is_taken() -> None:
    library = Library()
    library.say("I live in Lisbon now", speaker="Ana")
    (plan,), _ = observe(library, reply(item("Ana met Bruno", 1)), reply(item("Ana lives in Lisbon", 1)))
    assert [add.text for add in plan.adds] == ["Ana lives in Lisbon"]
    assert (plan.refused, plan.notes) == ((), ())


def test_the_people_of_the_conversation_may_be_named() -> None:
    library = Library()
    library.say("Do you paint?", speaker="Bruno")
    library.say("Yes, I do", speaker="Ana")
    (plan,), llm = observe(library, reply(item("Ana told Bruno that yes, she does", 2)))
    assert [add.text for add in plan.adds] == ["Ana told Bruno that yes, she does"]
    assert plan.empty == (1,)
    assert len(llm.calls) == 1


def test_a_turn_that_an_accepted_entry_cites_is_not_refused() -> None:
    library = Library()
    library.say("I live in Lisbon now", "I paint")
    told = reply(item("Lives in Lisbon", 1), item("Has 3 kids", 1), item("Paints 4 hours", 2))
    (plan,), _ = observe(library, told, told)
    assert [add.text for add in plan.adds] == ["Lives in Lisbon"]
    assert plan.refused == (2,)


def test_problems_are_listed_and_what_no_entry_names_is_empty() -> None:
    library = Library()
    library.say("I like tea", "I like figs", "I own a kayak")
    bad = reply(item("likes tea", 1), item("", 2), item("x", 77))
    (plan,), llm = observe(library, bad, reply(item("likes tea", 1)))
    assert llm.calls[1].variables["problems"] == ["UNKNOWN: 77", "EMPTY_TEXT 2", "NO_ORIGIN: x"]
    assert [(add.text, add.origin, add.by) for add in plan.adds] == [("likes tea", (1,), "model")]
    assert plan.empty == (2, 3)


def test_turns_about_which_no_reply_can_be_read_stay_pending_and_are_asked_about_in_halves() -> None:
    library = Library()
    library.say("one\n\n  two", "three")
    bad = ("no JSON", '{"entries": [')
    (plan,), llm = observe(library, *bad, *bad, reply(item("three", 2)))
    assert ([add.text for add in plan.adds], plan.refused, plan.empty) == (["three"], (), ())
    assert dict(plan.unanswered) == {1: "JSON_PARSE_FAIL"}
    assert len(llm.calls) == 5


def test_a_dead_endpoint_leaves_the_turns_pending_and_what_came_before_applied() -> None:
    library = Library(feed="turn")
    library.say("one", "two")
    with pytest.raises(ModelUnavailable):
        observe(library, reply(item("one", 1)), ModelUnavailable("no answer"))
    assert [place.entry.seq for place in library.view().uncited()] == [2]


def test_after_a_refused_plan_its_turns_stand_for_themselves_and_after_another_nothing_is_asked() -> None:
    library = Library(feed="turn")
    library.say("I like tea", "two", "three")
    library.refuse = ["BAD", "", "BAD", "BAD"]
    plans, _ = observe(library, reply(item("likes tea", 1)), reply(item("two", 2)), reply(item("three", 3)))
    assert [([add.text for add in plan.adds], plan.refused) for plan in plans] == [
        (["likes tea"], ()),
        ([], (1,)),
        (["two"], ()),
        ([], (2,)),
    ]
    assert [place.entry.seq for place in library.view().uncited()] == [2, 3]


@pytest.mark.parametrize(
    ("standing", "role", "to", "heading"),
    [
        ("instruction", "user", STANDING, "Instructions"),
        ("preference", "user", STANDING, "Preferences"),
        ("preference", "assistant", "CURRENT", ""),
        ("order", "user", "CURRENT", ""),
        (None, "user", "CURRENT", ""),
    ],
)
def test_what_the_user_asks_for_once_and_for_all_has_a_document_of_its_own(
    standing: str | None, role: str, to: str, heading: str
) -> None:
    library = Library()
    text = "Always answer in metric units."
    library.say(text, role=role)
    (plan,), _ = observe(library, reply(item(text, 1) | {"standing": standing}))
    assert plan.adds == (NewEntry(text, (1,), to, heading),)


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
        return "garbage" if "Day 39" in shown[-1] else reply()

    llm = ScriptedLLM({"extract": answer})
    library.drive(Infini(llm, library.settings).observe(view, view.uncited()))
    assert [(plan.adds, list(plan.unanswered)) for plan in library.plans] == [((), []), ((), [2]), ((), [])]
    assert all(tokens.count(part) <= 60 for part in shown)
    assert "".join(dict.fromkeys(shown[1:-1])).split() == text.split()


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
        assert not cited & {*plan.empty, *plan.refused}
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
