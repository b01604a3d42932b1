"""A consolidation: what is executed and what is not, its audit, and the same run again without a model."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from allmem_library import Library, cards
from cases import each

from infinimem.errors import UsageError
from infinimem.markdown.document import Document
from infinimem.strategies.allmem.audit import replay
from infinimem.strategies.allmem.buffer import BUFFER
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.records.ledger import rows_of
from infinimem.testing import ScriptedLLM

A, B, C, D, E, F = (f"u-00000{number}" for number in range(1, 7))
RUN = "allmem/audit/run-0001"
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


def proposals(made: Library) -> list[dict[str, Any]]:
    return [row for row in rows_of(made.documents[RUN]) if row["row"] == "proposal"]


def outcomes(made: Library) -> list[tuple[str, str, str]]:
    return [(row["op"], row["came"], row.get("sub", "")) for row in proposals(made)]


def test_all_three_operators_in_one_run() -> None:
    made = consolidated(model(ALL))
    bank = made.bank()
    assert bank.visible == {"u-000001-01", "u-000001-02", "u-000003-01", E, F}
    assert bank.text("u-000001-02") == "The train to Oslo was late."
    assert bank.records["u-000003-01"].sources == (B, C)
    assert bank.records[E].summary == "As it is now: Ana now works at Bolt"
    assert bank.graph.out(E, "version") == (D,)
    assert outcomes(made) == [
        ("split", "applied", ""),
        ("merge", "routing", "MISSING_ID"),  # of the older one, which was never shown the newer
        ("merge", "applied", ""),
        ("update", "applied", ""),
    ]
    plan = made.plans[-1]
    assert plan.op == "consolidate"
    assert BUFFER not in made.documents
    assert [put.doc_id for put in plan.records if put.text is None] == [
        f"allmem/units/{name}" for name in (A, B, C, D)
    ] + [BUFFER]
    assert not any(put.origin for put in plan.records)


def test_the_audit_tells_people_and_programs_what_was_done() -> None:
    text = consolidated(model(ALL)).documents[RUN].to_bytes().decode()
    assert text.startswith(f"---\nid: {RUN}\nkind: audit\nembedder: lexical 512\n---\n# Consolidation 1\n")
    assert "| merge | 2 | 1 | 1 |" in text
    assert "Rome. The train" not in text.split("```json")[1].split('"diagnosis"')[-1]
    metrics = next(row for row in rows_of(Document.parse(RUN, text.encode())) if row["row"] == "metrics")
    assert metrics["proposed"] == {"split": 1, "merge": 2, "update": 1}
    assert metrics["dropped"] == {"NORM_FILTER": 1}
    assert (metrics["created"], metrics["archived"], metrics["visible"]) == (3, 4, [6, 5])
    split = next(row for row in proposals(consolidated(model(ALL))) if row["op"] == "split")
    assert split["plan"][0]["refs"] == [[1, 0, 18]]
    assert split["edits"]["created"] == ["u-000001-01", "u-000001-02"]
    assert "segment_text" not in split["reply"]["segments"][0]


@each("scale", ["plain", "random"])
def test_a_replay_gives_the_same_bytes(scale: str) -> None:
    for seed in range(1 if scale == "plain" else 6):
        chance = random.Random(seed)
        made, strategy = library(model(ALL))
        if scale == "random":
            made, strategy = library(wild(seed), *wild_turns(seed), degree_semantic=chance.randint(1, 8))
        for _ in range(2):
            before = made.view()
            made.drive(strategy.tick(before, "consolidate"))
            plan = made.plans[-1]
            audit = plan.records[-1]
            assert "/audit/" in audit.doc_id
            assert replay(before, made.documents[audit.doc_id]) == plan.records[:-1], seed
            made.say("Ana drinks green tea daily", "Ana lives in Oslo. The cat is grey.", session="s2")
            made.drive(strategy.observe(made.view(), made.pending()))


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


def test_a_replay_refuses_another_embedder_and_a_damaged_audit() -> None:
    made, strategy = library(model(ALL))
    before = made.view()
    made.drive(strategy.tick(before, "consolidate"))
    text = made.documents[RUN].to_bytes()
    other = Document.parse(RUN, text.replace(b"lexical 512", b"minilm"))
    with pytest.raises(UsageError, match="minilm"):
        replay(before, other)
    for old, new in ((b'"plan": [', b'"plan": [1, '), (b'"row": "settings"', b'"row": "x"')):
        with pytest.raises(UsageError, match="damaged"):
            replay(before, Document.parse(RUN, text.replace(old, new)))


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


@each(
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
    (failed,) = [row for row in proposals(made) if row["came"] == "execution"]
    assert failed["op"] == task.split("_")[0]
    if sub:
        assert (failed["code"], failed["sub"]) == ("PLAN_VALIDATION_FAIL", sub)
    elif code:
        assert failed["code"] == code
    assert "edits" not in failed
    assert sum(row["came"] == "applied" for row in proposals(made)) == 2
    assert len([call for call in llm.calls if call.task == task]) == 1
    assert any(failed["op"] in note for note in made.plans[-1].notes)
    assert len(made.documents[RUN].to_bytes()) < 40_000


def test_a_refused_run_leaves_everything_as_it_was() -> None:
    made, strategy = library(model(ALL))
    before = made.files()
    made.refuse = 1
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert made.files() == before
    made.drive(strategy.tick(made.view(), "consolidate"))
    assert made.files() == consolidated(model(ALL)).files()
