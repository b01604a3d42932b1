"""A consolidation: what is executed and what is not, and the operators, worked out by hand."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from allmem_library import Library, banked, cards
from cases import each

from infinimem.index.vectors import Vectors
from infinimem.model import Plan
from infinimem.strategies.allmem.consolidate import BUFFER, Consolidator, Part, Unapplied, split_parts
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.records.asking import Descriptor
from infinimem.strategies.records.record import Link, Ref, fits, record_id
from infinimem.strategies.records.record_store import RecordStore, VectorIndex, puts
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
    assert bank.out(E, "version") == (D,)
    plan = made.plans[-1]
    told = "diagnosed 6; applied split 1 of 1, merge 1 of 2, update 1 of 1; not applied: MISSING_ID 1"
    assert plan.notes == (told,)  # the older one of the merge was never shown the newer
    assert plan.op == "consolidate"
    assert BUFFER not in made.documents
    assert [put.doc_id for put in plan.records if put.text is None] == [
        f"allmem/units/{name}" for name in (A, B, C, D)
    ] + [BUFFER]
    assert not any(put.origin for put in plan.records)


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


def test_what_an_earlier_edit_only_rewired_is_skipped_too() -> None:
    said = (SAID[1], SAID[2], "Ana drinks green tea and water daily", "Ana drinks black tea and water daily")
    tasks = {said[1]: {"merge": [["TARGET", A]]}, said[3]: {"update": [("TARGET", C)]}}
    made = consolidated(model(tasks), *said)
    assert made.bank().out(C, "semantic")[:1] == ("u-000002-01",), "it linked to what was merged"
    assert failures(made) == [("update", "APPLICABLE_FAIL TOUCHED_CONFLICT")]


def test_each_operator_may_have_a_threshold_of_its_own() -> None:
    llm = model(ALL)
    made = consolidated(llm, confidence=0.99, confidence_split=0.9)
    shown = next(call.variables for call in llm.calls if call.task == "diagnose")
    assert shown["confidence"] == "0.9"
    assert made.plans[-1].notes == (
        "diagnosed 6; applied split 1 of 1, merge 0 of 2, update 0 of 1; not applied: LOW_CONF 3",
    )


@pytest.mark.parametrize(
    ("task", "reply", "code", "sub"),
    [
        ("split_unit", "no", "JSON_PARSE_FAIL", None),
        ("split_unit", "{}", "SCHEMA_FAIL", None),
        ("merge_units", "", "EMPTY", None),
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


def test_an_edit_whose_header_would_be_too_long_is_refused_whole() -> None:
    made, strategy = library(model({SAID[4]: {"update": [("TARGET", D)]}}))
    bank = made.bank()
    full = bank.copy()
    full.relink(E, "semantic", ())
    number = 99
    while fits(replace(full.records[E], links=(*full.links(E), Link("version", D)))):
        number += 1
        full.put(replace(bank.records[A], id=record_id("u", number), visible=False, links=()))
        full.link(E, Link("version", record_id("u", number)))
    made.apply(Plan("write", records=puts(bank, full)))
    made.drive(strategy.tick(made.view(), "consolidate"))
    why = "PLAN_VALIDATION_FAIL INVARIANT: its header is longer than what is read"
    assert failures(made) == [("update", why)]
    assert D in made.bank().visible
    assert [put.doc_id for put in made.plans[-1].records] == [BUFFER]


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


# ── the operators, worked out by hand ────────────────────────────────────────────────────────────────


class Plane:
    """Vectors in a plane: a unit's summary is its angle in degrees."""

    name, size, semantic = "plane", 2, True

    def embed(self, texts: Any, kind: str = "passage") -> np.ndarray:
        angles = np.radians([float(text.split("\n")[1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def plane(*angles: float, links: dict[str, tuple[str, ...]] | None = None, **caps: Any) -> Consolidator:
    """Units at these angles, by number, with semantic links."""
    library = Library()
    library.say(*(f"turn {at} and more words" for at in range(len(angles))), time="2024-01-01")
    bank, _ = banked(library, *[("k", str(angle)) for angle in angles])
    for name, targets in (links or {}).items():
        bank.relink(name, "semantic", [Link("semantic", to, 0.5) for to in targets])
    space = VectorIndex(Vectors(None, Plane()))
    space.sync(bank)
    own = AllmemSettings(**{f"degree_{kind}": cap for kind, cap in caps.items()})
    return Consolidator(bank, space, own, ScriptedLLM({}))


def part(start: int, end: int, angle: float, seq: int = 1) -> Part:
    return Part((Ref(seq, (start, end)),), Descriptor(str(angle), ()))


def semantic(bank: RecordStore, name: str) -> dict[str, float | None]:
    return {link.to: link.weight for link in bank.links(name, "semantic")}


def test_a_split_archives_links_redirects_and_joins_its_siblings() -> None:
    editor = plane(0, 10, 80, 45, links={B: (A,), C: (A, D), A: (D,)})
    one, two = editor.split(A, [part(0, 6, 5), part(7, 14, 85)])
    bank = editor.bank
    assert (one, two) == ("u-000001-01", "u-000001-02")
    assert bank.visible == {B, C, D, one, two}
    assert bank.text(one) == "turn 0"
    assert bank.records[two].refs == (Ref(1, (7, 14)),)
    assert bank.records[one].time == "2024-01-01"
    assert bank.out(one, "version") == bank.out(two, "version") == (A,)
    assert bank.out(one, "sibling") == (two,)
    assert bank.out(two, "sibling") == (one,)
    # B at 10 degrees is nearest to the sibling at 5, C at 80 to the one at 85.
    assert semantic(bank, B) == {one: 0.996}
    assert semantic(bank, C) == {two: 0.996, D: 0.5}
    assert semantic(bank, A) == {D: 0.5}
    # A new unit is linked to its neighbours on the surface, best first up to the cap.
    assert semantic(bank, one) == {B: 0.996, C: 0.259, D: 0.766, two: 0.174}


def test_a_merge_stands_for_its_sources() -> None:
    editor = plane(0, 4, 90, 60, 30, links={A: (C,), B: (A, D), D: (A, B, C), E: (B,)}, semantic=2)
    (rep,) = editor.merge((A, B), Descriptor("2", ()))
    assert rep == "u-000002-01"
    bank = editor.bank
    unit = bank.records[rep]
    assert (unit.sources, unit.refs, unit.time, unit.session) == ((A, B), (), "2024-01-01", "s1")
    assert bank.text(rep) == "turn 0 and more words\nturn 1 and more words"
    assert bank.visible == {C, D, E, rep}
    assert bank.out(rep, "version") == (A, B)
    # D led to both and to C: one link to the representative is left beside C, within the cap.
    assert semantic(bank, D) == {rep: 0.53, C: 0.5}
    assert semantic(bank, E) == {rep: 0.883}
    assert semantic(bank, B) == {A: 0.5, D: 0.5}  # what is archived keeps its links
    assert set(semantic(bank, rep)) == {D, E}


def test_an_update_renews_archives_links_and_redirects() -> None:
    editor = plane(0, 10, 20, links={B: (A,), C: (A, B)})
    editor.update(B, A, Descriptor("12", ()))
    bank = editor.bank
    assert bank.records[B].summary == "12"
    assert bank.visible == {B, C}
    assert bank.out(B, "version") == (A,)
    assert semantic(bank, B) == {}  # no link to itself, none twice
    assert semantic(bank, C) == {B: 0.5}
    assert editor.space.cos(B, C) == round(float(np.cos(np.radians(8))), 6)


def test_version_links_keep_within_a_cap_as_far_as_no_unit_is_left_alone() -> None:
    def held(cap: int) -> dict[str, tuple[str, ...]]:
        editor = plane(0, 2, 10, 20, 30, version=cap)
        for name in (A, B, C):
            editor.update(E, name, Descriptor("0", ()))
            editor.update(D, name, Descriptor("20", ()))
        return {name: editor.bank.out(name, "version") for name in (D, E)}

    assert held(0) == {D: (A, B, C), E: (A, B, C)}
    assert held(2) == {D: (B, C), E: (A, C)}, "of what the other holds too the nearest stay"
    assert held(1) == {D: (A,), E: (B, C)}, "one too many, for D holds neither"


# ── plans ───────────────────────────────────────────────────────────────────────────────────────


def segments(*texts: str, do: bool = True, summary: str = "s", keywords: tuple[str, ...] = ("k",)) -> Any:
    rows = [
        {
            "segment_text": text,
            "segment_summary": summary,
            "segment_keywords": list(keywords),
            "topic_label": "t",
        }
        for text in texts
    ]
    return {"do_split": do, "segments": rows, "split_rationale": ""}


TEXT = "I live in Rome. I play chess. I live in Rome."


@pytest.fixture
def bank() -> RecordStore:
    library = Library()
    library.say(TEXT)
    return banked(library, ("k", "s"))[0]


@each(
    ("data", "sub"),
    [
        (segments("I live", do=False), "NOT_WHOLE"),
        (segments(TEXT, TEXT, do=False), "NOT_WHOLE"),
        (segments(do=False), "NOT_WHOLE"),
        (segments(TEXT), "TOO_FEW"),
        (segments(), "TOO_FEW"),
        (segments(*"I live in Rome.".split(), *TEXT.split()[4:9]), "TOO_MANY"),
        (segments("I live in Rome.", "I play checkers."), "NOT_SUBSTRING"),
        (segments("I live in Rome.", "i play chess."), "NOT_SUBSTRING"),
        (segments("I live in Rome.", ""), "EMPTY"),
        (segments("I live in Rome.", " "), "EMPTY"),
        (segments("I live in Rome. I play", "I play chess. I live in Rome."), "OVERLAP"),
        (segments(*["I live in Rome."] * 3), "OVERLAP"),
        (segments("I live in Rome.", "I play"), "COVERAGE"),
        (segments("I live in Rome.", TEXT[16:], summary=" \n"), "EMPTY"),
        (segments("I live in Rome.", TEXT[16:], keywords=("", "  ")), "EMPTY"),
        (segments("I live in Rome.", TEXT[16:], summary="x" * 601), "TOO_LONG"),
        (segments("I live in Rome.", TEXT[16:], keywords=("x" * 61,)), "TOO_LONG"),
        (segments("I live in Rome.", TEXT[16:], keywords=tuple("abcdefghijklm")), "TOO_LONG"),
    ],
)
def test_a_split_that_is_not_of_the_text_is_refused(bank: RecordStore, data: Any, sub: str) -> None:
    with pytest.raises(Unapplied) as refused:
        split_parts(bank, A, data, 0.8)
    assert refused.value.args[1] == sub
