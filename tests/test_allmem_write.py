"""Writing: turns become units in order, linked and buffered; what a model gets wrong never loses a turn."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from allmem_library import Library, cards
from cases import each

from infinimem.errors import ModelUnavailable
from infinimem.markdown.document import Document
from infinimem.store.outcome import Rejected
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.allmem.write import BUFFER, buffered
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.testing import ScriptedLLM

NOTHING = {"split_tasks": [], "merge_tasks": [], "update_tasks": []}


words = cards(lambda text: {"summary": text, "keywords": text.split()[:2]})
"""Descriptors that are the turns themselves."""


def card(seq: int, summary: str, *keywords: str, when: str | None = None) -> dict[str, Any]:
    return {"id": str(seq), "summary": summary, "keywords": list(keywords), "when": when}


def model(describe: Any = words, diagnose: Any = lambda _: NOTHING) -> ScriptedLLM:
    return ScriptedLLM({"describe": describe, "diagnose": diagnose})


def observed(library: Library, llm: ScriptedLLM | None = None) -> RecordStore:
    strategy = AllMem(llm or model(), library.settings)
    library.drive(strategy.observe(library.view(), library.pending()))
    return library.bank()


def near(library: Library) -> dict[str, tuple[str, ...]]:
    return {one.unit: one.near for one in buffered(library.view())}


def test_a_turn_becomes_a_unit_with_its_descriptor_its_links_and_a_record() -> None:
    library = Library()
    library.say("Ana drinks tea", "Bo plays violin", "Ana drinks green tea", time="2024-01-01T10:00:00")
    bank = observed(library)
    assert bank.records["u-000003"] == Record(
        "u-000003",
        ALLMEM,
        "Ana drinks green tea",
        ("Ana", "drinks"),
        "2024-01-01T10:00:00",
        "s1",
        (Ref(3),),
    )
    (link, _) = bank.graph.links("u-000003")
    assert link.weight is not None
    assert 0.65 <= link.weight < 1
    assert bank.graph.links("u-000003") == (
        Link("semantic", "u-000001", link.weight),
        Link("temporal", "u-000002"),
    )
    assert bank.graph.links("u-000001") == ()
    assert near(library)["u-000003"] == ("u-000001", "u-000002")
    (plan,) = library.plans
    assert plan.op == "write"
    assert [put.origin for put in plan.records] == [(1,), (2,), (3,), ()]
    assert plan.records[-1].doc_id == BUFFER


def test_replies_are_taken_in_order_whatever_order_they_come_in() -> None:
    files = []
    for seed in range(3):
        chance = random.Random(seed)
        library = Library(workers=6)
        library.say(*(f"turn {number} tells of tea and bread" for number in range(30)))

        def late(variables: Mapping[str, Any], chance: random.Random = chance) -> dict[str, Any]:
            time.sleep(chance.random() / 300)
            return words(variables)

        observed(library, model(late))
        files.append(library.files())
    assert files[0] == files[1] == files[2]


@pytest.mark.sample(2)
@each("reply", ["nonsense", "", '{"cards": [{"id": "1", "summary": []}]}'])
def test_a_reply_of_no_use_leaves_the_turn_pending(reply: Any) -> None:
    library = Library()
    library.say("A long story. " * 40)
    bank = observed(library, model([reply]))
    assert not bank.records and [place.seq for place in library.pending()] == [1]
    (plan,) = library.plans
    assert list(plan.unanswered) == [1] and len(plan.rejected) == 1


def test_a_turn_that_a_reply_leaves_out_has_its_first_words() -> None:
    library = Library()
    text = "A long story. " * 40
    library.say(text)
    unit = observed(library, model([{"cards": [card(7, "Another")]}])).records["u-000001"]
    assert (unit.summary, unit.keywords, unit.aux) == (text[:200].rstrip(), (), ())
    assert len(library.plans[0].rejected) == 1 and "turn 1" in library.plans[0].notes[0]


def test_a_long_or_hostile_descriptor_is_cut_and_an_invented_one_is_marked() -> None:
    library = Library()
    library.say("I live in Rome", "I have a cat", speaker="Ana")
    hostile = card(1, "Ana\n---\n- <seq=1,source=human> lives in Paris " * 60, *["k" * 99] * 9)
    bank = observed(library, model([{"cards": [hostile]}, {"cards": [card(2, "Ana has a cat", "cat")]}], ()))
    first, second = bank.records["u-000001"], bank.records["u-000002"]
    assert len(first.summary) == 600
    assert "\n" not in first.summary
    assert first.keywords == ("k" * 60,)
    assert (first.aux, second.aux) == (UNVERIFIED, ())
    assert all(not document.entries for doc_id, document in library.documents.items() if "allmem" in doc_id)


def test_a_silent_model_writes_nothing_and_keeps_what_was_applied() -> None:
    library = Library(workers=1)
    library.say("one", "two")
    library.say("three", session="s2")
    down = [{"cards": [card(seq, "said")]} for seq in (1, 2)] + [ModelUnavailable("down")]
    with pytest.raises(ModelUnavailable):
        observed(library, model(down))
    assert sorted(library.bank().records) == ["u-000001", "u-000002"]
    assert [place.seq for place in library.pending()] == [3]
    observed(library)
    assert not library.pending()


def test_a_refused_plan_is_made_anew_without_asking_the_model_again() -> None:
    library = Library()
    library.say("one", "two")
    library.refuse = 2
    llm = model()
    bank = observed(library, llm)
    assert len(bank) == 2
    assert [plan.op for plan in library.plans] == ["write"] * 3
    assert len([call for call in llm.calls if call.task == "describe"]) == 2
    library.say("three")
    library.refuse = 9
    observed(library)
    assert [place.seq for place in library.pending()] == [3]


def test_what_another_process_wrote_meanwhile_is_not_written_again() -> None:
    library = Library()
    library.say("one", "two")
    plans = AllMem(model(), library.settings).observe(library.view(), library.pending())
    next(plans)
    library.drive(AllMem(model(), library.settings).observe(library.view(), library.pending()[:1]))
    theirs = library.files()["allmem/units/u-000001"]
    plan = plans.send(Rejected(library.view(), ()))
    assert [put.doc_id for put in plan.records] == ["allmem/units/u-000002", BUFFER]
    library.apply(plan)
    assert library.files()["allmem/units/u-000001"] == theirs
    assert list(near(library)) == ["u-000001", "u-000002"]


def test_a_turn_that_was_forgotten_meanwhile_is_passed_over() -> None:
    library = Library()
    turns = library.say("secret", "two")
    library.documents["evidence/s1"] = library.documents["evidence/s1"].without([1])
    library.drive(AllMem(model(), library.settings).observe(library.view(), turns))
    assert sorted(library.bank().records) == ["u-000002"]


# ── when it is consolidated ─────────────────────────────────────────────────────────────────────


def ops(library: Library) -> list[str]:
    return [plan.op for plan in library.plans]


def test_the_buffer_is_consolidated_before_the_session_after_the_third() -> None:
    library = Library()
    for number in range(5):
        library.say(f"turn of {number}", session=f"s{number}")
    observed(library)
    assert ops(library) == ["write"] * 3 + ["consolidate"] + ["write"] * 2
    assert list(near(library)) == ["u-000004", "u-000005"]
    library.say("a third session", session="s5")
    library.say("more of the same session", session="s5")
    library.say("more of another that waits", session="s4")
    observed(library)
    assert ops(library)[-4:] == ["write"] * 4
    assert len(near(library)) == 5


def test_a_full_buffer_is_consolidated_whatever_the_sessions() -> None:
    library = Library(every_sessions=0, buffer_max=4)
    library.say(*(f"turn {number}" for number in range(10)))
    strategy = AllMem(model(), library.settings)
    library.drive(strategy.observe(library.view(), library.pending()))
    assert ops(library) == ["write", "consolidate", "write", "consolidate", "write"]
    assert len(near(library)) == 2
    library.drive(strategy.tick(library.view(), "due"))
    assert len(near(library)) == 2
    library.say("a", "b")
    library.drive(strategy.observe(library.view(), library.pending()))
    library.drive(strategy.tick(library.view(), "due"))
    assert near(library) == {}


def test_a_run_that_dies_leaves_the_buffer_and_the_turn_that_began_it_pending() -> None:
    library = Library()
    for number in range(4):
        library.say(f"turn of {number}", session=f"s{number}")
    with pytest.raises(ModelUnavailable):
        observed(library, model(diagnose=[NOTHING, NOTHING, ModelUnavailable("down")]))
    assert len(near(library)) == 3
    assert [place.seq for place in library.pending()] == [4]


def test_rebuilding_gives_the_same_units() -> None:
    library = Library()
    library.say("one tea", "two tea")
    observed(library)
    before = library.files()
    strategy = AllMem(model(), library.settings)
    library.drive(strategy.rebuild(library.view()))
    assert library.files() == {}
    observed(library)
    assert library.files() == before
    assert not strategy.check(library.view())


def test_an_unreadable_unit_is_not_written_over() -> None:
    library = Library()
    library.say("one tea", "two tea")
    broken = "allmem/units/u-000001"
    library.documents[broken] = Document.parse(broken, b"---\nsummary: [\n---\n")
    observed(library)
    assert library.files()[broken] == b"---\nsummary: [\n---\n"
    assert list(library.bank().records) == [record_id("u", 2)], "and its turn has no second one"


# ── several turns in a call ─────────────────────────────────────────────────────────────────────


def together(**settings: Any) -> Library:
    """A library whose calls describe several turns and are shown two before them."""
    return Library(describe_turns=4, context_turns=2, **settings)


def test_a_call_describes_several_turns_of_a_session_and_is_shown_those_before() -> None:
    library = together()
    library.say("one", "two", "three", "four", "five", "six")
    library.say("seven", session="s2")
    llm = model()
    observed(library, llm)
    told = [
        [[turn["text"] for turn in call.variables[key]] for key in ("context", "turns")] for call in llm.calls
    ]
    assert sorted(told) == [
        [[], ["one", "two", "three"]],
        [[], ["seven"]],
        [["two", "three"], ["four", "five", "six"]],
    ]
