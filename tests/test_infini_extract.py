"""Extraction: every turn ends up cited or empty, and no sentence of a model says more than its origin."""

from __future__ import annotations

from typing import Any

import pytest
from cases import each
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library

from infinimem.model import NewEntry, Plan
from infinimem.settings import Settings
from infinimem.store.spec import STANDING
from infinimem.strategies.infini.strategy import Infini
from infinimem.strategies.infini.topics import unsupported, verbatim
from infinimem.testing import ScriptedLLM


def item(text: str, *origin: object, when: str | None = None, refers: str | None = None) -> dict[str, Any]:
    return {"text": text, "from": [str(seq) for seq in origin], "when": when, "refers": refers}


def reply(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"entries": list(entries)}


def observe(library: Library, *replies: Any) -> tuple[list[Plan], ScriptedLLM]:
    llm = ScriptedLLM({"extract": replies})
    view = library.view()
    library.drive(Infini(llm, library.settings).observe(view, view.uncited()))
    return library.plans, llm


@pytest.mark.sample(2)
@each("when", ["2023-04-31", "2022-04", "2023-05-06T10:00", "last month", " "])
def test_a_when_that_the_words_cannot_mean_is_dropped_and_said(when: str) -> None:
    library = Library()
    library.say("I moved to Lisbon last month.", time="2023-05-08")
    (plan,), _ = observe(library, reply(item("I moved to Lisbon last month.", 1, when=when)))
    assert [add.when for add in plan.adds] == [None]
    said = f"extract: IMPLAUSIBLE_WHEN 1: {when}"
    assert plan.notes == ((said,) if when.strip() else ())


@pytest.mark.sample(2)
@each(
    "said",
    ["Ana paid 14 euros", "Ana met Bruno there", "Ana does not live in Lisbon", "zebra"],
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


def test_a_turn_that_an_accepted_entry_cites_is_not_refused() -> None:
    library = Library()
    library.say("I live in Lisbon now", "I paint")
    told = reply(item("Lives in Lisbon", 1), item("Has 3 kids", 1), item("Paints 4 hours", 2))
    (plan,), _ = observe(library, told, told)
    assert [add.text for add in plan.adds] == ["Lives in Lisbon"]
    assert plan.refused == (2,)


@pytest.mark.sample(2)
@each(
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


# ── feeding ─────────────────────────────────────────────────────────────────────────────────────


@each(
    ("feed", "units"),
    [("chunk", [[1, 2, 3], [4, 5]]), ("turn", [[1], [2], [3], [4], [5]])],
)
def test_a_plan_a_unit_of_turns(feed: str, units: list[list[int]]) -> None:
    library = Library(feed=feed, chunk_tokens=20, workers=1)
    for number, role in enumerate(("user", "assistant", "user", "user", "assistant")):
        library.say(f"I saw {number} ships today", role=role)
    _, llm = observe(library, *[reply()] * 9)
    assert [[int(turn["id"]) for turn in call.variables["turns"]] for call in llm.calls] == units


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_nonsense_of_the_right_shape_loses_no_turn(seed: int) -> None:
    library = Library(feed=("turn", "chunk")[seed % 2], chunk_tokens=30)
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


@each(
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
