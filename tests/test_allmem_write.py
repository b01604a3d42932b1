"""Writing: turns become units in order, linked and buffered; what a model gets wrong never loses a turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from allmem_library import Library, cards
from cases import each

from infinimem import Turn, open_memory
from infinimem.markdown.document import Document
from infinimem.store.view import Rejected
from infinimem.strategies.allmem.consolidate import BUFFER, buffered
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.records.record import UNVERIFIED, Link, Record, Ref, record_id
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
    return {unit: tuple(names) for unit, names in buffered(library.view()).items()}


def test_a_turn_becomes_a_unit_with_its_descriptor_its_links_and_a_record() -> None:
    library = Library()
    library.say("Ana drinks tea", "Bo plays violin", "Ana drinks green tea", time="2024-01-01T10:00:00")
    bank = observed(library)
    assert replace(bank.records["u-000003"], links=()) == Record(
        "u-000003",
        ALLMEM,
        "Ana drinks green tea",
        ("Ana", "drinks"),
        "2024-01-01T10:00:00",
        "s1",
        (Ref(3),),
    )
    (link, _) = bank.links("u-000003")
    assert link.weight is not None
    assert 0.65 <= link.weight < 1
    assert bank.links("u-000003") == (
        Link("semantic", "u-000001", link.weight),
        Link("temporal", "u-000002"),
    )
    assert bank.links("u-000001") == ()
    assert near(library)["u-000003"] == ("u-000001", "u-000002")
    (plan,) = library.plans
    assert plan.op == "write"
    assert [put.origin for put in plan.records] == [(1,), (2,), (3,), ()]
    assert plan.records[-1].doc_id == BUFFER


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


def test_what_waits_is_consolidated_after_some_hours_whatever_the_sessions() -> None:
    library = Library(every_sessions=0, every_hours=24)
    for day, hour in ((1, 10), (1, 20), (2, 9), (2, 10), (2, 11)):
        library.say(f"turn of {day}", session=f"s{day}-{hour}", time=f"2024-01-0{day}T{hour:02}:00:00")
    library.say("nobody knows when", session="s3")
    observed(library)
    assert ops(library) == ["write"] * 3 + ["consolidate"] + ["write"] * 3


def test_an_unreadable_unit_is_not_written_over() -> None:
    library = Library()
    library.say("one tea", "two tea")
    broken = "allmem/units/u-000001"
    library.documents[broken] = Document.parse(broken, b"---\nsummary: [\n---\n")
    observed(library)
    assert library.files()[broken] == b"---\nsummary: [\n---\n"
    assert list(library.bank().records) == [record_id("u", 2)], "and its turn has no second one"


def test_the_papers_form_has_a_name_and_describes_each_turn_alone(tmp_path: Path) -> None:
    (tmp_path / "infinimem.toml").write_text('strategy = "allmem"\npreset = "paper"\n')
    llm = model()
    memory = open_memory(tmp_path, model=llm)
    memory.observe([Turn("Ana drinks tea", session="s1"), Turn("Bo plays violin", session="s1")])
    memory.consolidate()
    tasks = [(call.task, len(call.variables.get("turns", ()))) for call in llm.calls]
    assert tasks == [("describe", 1), ("describe", 1), ("diagnose", 0), ("diagnose", 0)]
