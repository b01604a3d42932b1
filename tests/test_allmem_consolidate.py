"""A consolidation: what is executed and what is not, its audit, and the same run again without a model."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from allmem_library import Library, cards

from infinimem.model import Plan
from infinimem.strategies.allmem.diagnose import Proposal
from infinimem.strategies.allmem.operators import Executor
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.allmem.write import BUFFER, SURFACE
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.codec import fits
from infinimem.strategies.records.record import record_id
from infinimem.strategies.records.record_store import puts
from infinimem.strategies.vector_index import Loaded
from infinimem.testing import ScriptedLLM

A, B, C, D, E, F = (f"u-00000{number}" for number in range(1, 7))
SAID = (
    "Ana lives in Rome. The train to Oslo was late.",  # 1, of two kinds
    "Ana drinks green tea daily",  # 2 and 3 say the same
    "Ana drinks green tea daily!",
    "Ana works at Acme",  # 4, no longer true after 5
    "Ana now works at Bolt",
    "Bo plays violin",
)


describe = cards(lambda text: {"summary": text, "keywords": text.split()[:3]})


def diagnosis(**tasks: Any) -> dict[str, Any]:
    """A reply; splits are ids, merges lists of ids, updates pairs; all sure."""
    sure = {"confidence": 0.95, "reason": "because"}
    return {
        "split_tasks": [{"node_id": one, **sure} for one in tasks.get("split", ())],
        "merge_tasks": [{"node_ids": list(ids), **sure} for ids in tasks.get("merge", ())],
        "update_tasks": [
            {"current_id": new, "superseded_id": old, **sure} for new, old in tasks.get("update", ())
        ],
    }


def cut(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A split after the first sentence."""
    text = variables["unit"]["text"]
    at = text.find(". ") + 1
    parts = [text[:at], text[at + 1 :]] if at else [text]
    rows = [
        {
            "segment_text": part,
            "segment_summary": part,
            "segment_keywords": part.split()[:2],
            "topic_label": "t",
        }
        for part in parts
    ]
    return {"do_split": bool(at), "segments": rows, "split_rationale": "two topics"}


def joined(variables: Mapping[str, Any]) -> dict[str, Any]:
    unit = variables["units"][-1]
    return {"summary": unit["summary"], "keywords": unit["keywords"], "salient_points": []}


def renewed(variables: Mapping[str, Any]) -> dict[str, Any]:
    current = variables["current"]
    return {
        "updated_summary": "As it is now: " + current["summary"],
        "updated_keywords": current["keywords"],
        "deprecations": [variables["superseded"]["summary"]],
        "alignment_note": "",
    }


def model(tasks: Mapping[str, Any] = {}, **scripts: Any) -> ScriptedLLM:
    """Says of the target with a text what `tasks` has for it."""

    def diagnose(variables: Mapping[str, Any]) -> dict[str, Any]:
        return diagnosis(**tasks.get(variables["target"]["text"], {}))

    usual = {"describe": describe, "diagnose": diagnose, "split_unit": cut}
    return ScriptedLLM({**usual, "merge_units": joined, "update_unit": renewed, **scripts})


ALL = {
    SAID[0]: {"split": ["TARGET"]},
    SAID[1]: {"merge": [["TARGET", C]]},
    SAID[2]: {"merge": [["TARGET", B]]},
    SAID[4]: {"update": [("TARGET", D)]},
}


def library(llm: ScriptedLLM, *said: str, **settings: Any) -> tuple[Library, AllMem]:
    """One with a unit a turn, all of them in the buffer."""
    made = Library(**settings)
    for number, text in enumerate(said or SAID):
        made.say(text, speaker="Ana", time=f"2024-01-01T10:00:0{number % 10}")
    strategy = AllMem(llm, made.settings)
    made.drive(strategy.observe(made.view(), made.pending()))
    return made, strategy


def consolidated(llm: ScriptedLLM, *said: str, **settings: Any) -> Library:
    made, strategy = library(llm, *said, **settings)
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert strategy.check(made.view()) == []
    return made


def failures(made: Library) -> list[tuple[str, str]]:
    """Operator and reason of what the receipt of the last run says was not applied."""
    notes = (re.fullmatch(r"(\w+) of .* was not applied: (.*)", note) for note in made.plans[-1].notes)
    return [(found[1], found[2]) for found in notes if found]


def test_all_three_operators_in_one_run() -> None:
    made = consolidated(model(ALL))
    bank = made.bank()
    assert bank.visible == {"u-000001-01", "u-000001-02", "u-000003-01", E, F}
    assert bank.text("u-000001-02") == "The train to Oslo was late."
    assert bank.records["u-000003-01"].sources == (B, C)
    assert bank.records[E].summary == "As it is now: Ana now works at Bolt"
    assert bank.graph.out(E, "version") == (D,)
    plan = made.plans[-1]
    told = "diagnosed 6; applied split 1 of 1, merge 1 of 2, update 1 of 1; not applied: MISSING_ID 1"
    assert plan.notes == (told,)  # the older one of the merge was never shown the newer
    assert plan.op == "consolidate"
    assert BUFFER not in made.documents
    assert [put.doc_id for put in plan.records if put.text is None] == [
        f"allmem/units/{name}" for name in (A, B, C, D)
    ] + [BUFFER]
    assert not any(put.origin for put in plan.records)


def test_a_run_without_proposals_empties_the_buffer() -> None:
    made = consolidated(model())
    assert [put.doc_id for put in made.plans[-1].records] == [BUFFER]


def wild_turns(seed: int) -> list[str]:
    chance = random.Random(seed)
    things = ("tea", "bread", "Rome", "Oslo", "chess", "violin")
    return [f"Ana likes {chance.choice(things)}. Bo has {chance.choice(things)}." for _ in range(12)]


def wild(seed: int) -> ScriptedLLM:
    """Proposes something of everything, mostly valid."""

    def diagnose(variables: Mapping[str, Any]) -> dict[str, Any]:
        chance = random.Random(f"{seed} {variables['target'].get('time')}")
        near = [one["id"] for one in variables["anchors"]]
        return diagnosis(
            split=["TARGET"] if chance.random() < 0.3 else [],
            merge=[["TARGET", *chance.sample(near, min(len(near), 2))]] if chance.random() < 0.5 else [],
            update=[("TARGET", chance.choice(near))] if near and chance.random() < 0.4 else [],
        )

    return model(diagnose=diagnose)


def test_two_runs_with_the_same_replies_give_the_same_bytes_whatever_thread_ends_first() -> None:
    files = []
    for seed in range(3):
        chance = random.Random(seed)
        honest = model(ALL)

        def late(task: Any, variables: Any, honest: Any = honest, chance: Any = chance) -> Any:
            time.sleep(chance.random() / 200)
            return ScriptedLLM.complete(honest, task, variables)

        honest.complete = late  # type: ignore[method-assign]
        files.append(consolidated(honest, workers=4).files())
    assert files[0] == files[1] == files[2]


# ── what is not executed ────────────────────────────────────────────────────────────────────────


def test_what_an_earlier_edit_touched_is_skipped() -> None:
    tasks = {
        SAID[0]: {"split": ["TARGET"]},
        SAID[2]: {"merge": [["TARGET", B, A]], "update": [("TARGET", A), ("TARGET", B)]},
    }
    made = consolidated(model(tasks), coherence=0.0)
    assert failures(made) == [
        ("merge", "APPLICABLE_FAIL TOUCHED_CONFLICT"),
        ("update", "APPLICABLE_FAIL TOUCHED_CONFLICT"),
    ]


def test_a_merge_that_is_not_coherent_any_more_is_skipped() -> None:
    made, strategy = library(model(ALL))
    with Loaded().at(made.view()) as (bank, space):
        merge = Proposal("merge", (B, F), 1.0, "", frozenset((B, F)))
        gone = Proposal("split", ("u-000099",), 1.0, "", frozenset((B,)))
        trial = bank.copy()
        trial.archive(D)
        trial.graph.add(E, Link("version", D))
        old = Proposal("split", (D,), 1.0, "", frozenset((D,)))
        executor = Executor(trial, space, made.settings.of(AllmemSettings), strategy.llm)
        done = executor.run([gone, old, merge])
    assert [(one.code, one.sub) for one in done] == [
        ("APPLICABLE_FAIL", "MISSING_ID"),
        ("APPLICABLE_FAIL", "VISIBILITY"),
        ("APPLICABLE_FAIL", "COHERENCE"),
    ]


@pytest.mark.parametrize(
    ("task", "reply", "code", "sub"),
    [
        ("split_unit", "no", "JSON_PARSE_FAIL", None),
        ("split_unit", "{}", "SCHEMA_FAIL", None),
        ("merge_units", "", "JSON_PARSE_FAIL", None),
        ("split_unit", {"do_split": True, "segments": [], "split_rationale": ""}, None, "TOO_FEW"),
        ("merge_units", {"summary": "", "keywords": ["k"], "salient_points": []}, None, "EMPTY"),
        (
            "update_unit",
            {
                "updated_summary": "x" * 10**6,
                "updated_keywords": ["k"],
                "deprecations": [],
                "alignment_note": "",
            },
            None,
            None,
        ),
    ],
)
def test_a_plan_that_fails_changes_nothing_and_is_asked_for_once(
    task: str, reply: Any, code: str | None, sub: str | None
) -> None:
    llm = model(ALL, **{task: [reply]})
    made = consolidated(llm)
    ((op, why),) = failures(made)
    assert op == task.split("_")[0]
    if sub:
        assert why == f"PLAN_VALIDATION_FAIL {sub}"
    elif code:
        assert why.startswith(code)
    assert len([call for call in llm.calls if call.task == task]) == 1
    assert len(made.plans[-1].notes[0]) < 2000


def test_an_endless_diagnosis_is_none_and_a_long_one_fills_no_disk() -> None:
    endless = diagnosis(merge=[["TARGET", B]] * 1000)
    long = diagnosis(merge=[["x" * 900] * 900])
    made = consolidated(model(diagnose=[endless, long, *[diagnosis()] * 4]))
    assert [put.doc_id for put in made.plans[-1].records] == [BUFFER]
    told = "merge 0 of 1, update 0 of 0; not applied: MISSING_ID 1, SCHEMA_FAIL 1"
    assert made.plans[-1].notes == (f"diagnosed 6; applied split 0 of 0, {told}",)


def test_a_unit_that_the_model_leaves_whole_stays() -> None:
    whole = {"do_split": False, "split_rationale": ""}
    rows = [{"segment_text": SAID[0], "segment_summary": "", "segment_keywords": [], "topic_label": ""}]
    made = consolidated(model({SAID[0]: {"split": ["TARGET"]}}, split_unit=[{**whole, "segments": rows}]))
    assert made.plans[-1].notes[0].endswith("; not applied: declined 1")
    assert A in made.bank().visible


def test_an_edit_whose_header_would_be_too_long_is_refused_whole() -> None:
    made, strategy = library(model({SAID[4]: {"update": [("TARGET", D)]}}))
    bank = made.bank()
    full = bank.copy()
    full.graph.put(E, "semantic", ())
    number = 99
    while fits(full.records[E], (*full.links(E), Link("version", D))):
        number += 1
        full.put(replace(bank.records[A], id=record_id("u", number), visible=False))
        full.graph.add(E, Link("version", record_id("u", number)))
    made.apply(Plan("write", records=puts(bank, full)))
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert [why.split()[-1] for _, why in failures(made)] == ["HEADER_FULL"]
    assert D in made.bank().visible
    assert [put.doc_id for put in made.plans[-1].records] == [BUFFER]
    assert D in made.bank().visible
    with Loaded().at(made.view()) as (bank, space):
        update = Proposal("update", (E, D), 1.0, "", frozenset((E, D)))
        Executor(bank, space, made.settings.of(AllmemSettings), strategy.llm).run([update])
        assert D in [name for name, _ in space.nearest(space.row(D), 3, SURFACE)]  # on the surface, as before


def test_a_fault_that_was_there_before_is_in_no_edits_way() -> None:
    """A person moved a unit into the archive, and no link leads to it."""
    made, strategy = library(model(ALL))
    bank = made.bank()
    orphaned = bank.copy()
    orphaned.archive(F)
    made.apply(Plan("write", records=puts(bank, orphaned)))
    assert len(strategy.check(made.view())) == 1
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert failures(made) == failures(consolidated(model(ALL)))


def test_a_refused_run_leaves_everything_as_it_was() -> None:
    made, strategy = library(model(ALL))
    before = made.files()
    made.refuse = 1
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert made.files() == before
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert made.files() == consolidated(model(ALL)).files()


@pytest.mark.parametrize("off", ["split", "merge", "update"])
def test_an_operator_that_is_off_is_never_planned(off: str) -> None:
    llm = model(ALL)
    consolidated(llm, **{off: False})
    assert not [call for call in llm.calls if call.task == f"{off}_unit"]


def test_later_runs_build_on_earlier_ones() -> None:
    made, strategy = library(model(ALL))
    made.drive(strategy.tick(made.view(), "consolidate"))
    made.say(SAID[1], speaker="Ana", time="2024-02-02")
    strategy.llm = model({SAID[1]: {"merge": [["TARGET", "u-000003-01"]]}})
    made.drive(strategy.observe(made.view(), made.pending()))
    made.drive(strategy.tick(made.view(), "consolidate"))
    bank = made.bank()
    assert bank.records["u-000007-01"].sources == ("u-000003-01", "u-000007")
    assert [said.ref.seq for said in bank.quotes("u-000007-01")] == [2, 3, 7]
    assert strategy.check(made.view()) == []
