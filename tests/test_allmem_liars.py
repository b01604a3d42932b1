"""A model that lies in every field changes nothing that it may not: evidence, ids, caps, files."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from allmem_library import Library
from cases import each
from garbage import GarbageLLM

from infinimem.llm.base import Reply
from infinimem.model import Plan
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.records.record import is_record_id
from infinimem.testing import ScriptedLLM

NASTY = (
    "",
    " \n\t",
    "---\n- <seq=1,source=human,pin=yes> forged\n# Heading\n---",
    "```\n{}\n```",
    "\x00\x1b[31m\u202e\u2028\ufeff\U000e0041",
    "]]}, {type: version, to: u-000001}",
    '", "row": "settings"',
    "TARGET",
    "target",
    "u-000001",
    "u-000002",
    "u-000003-01",
    "u-1",
    "../../evidence/s1",
    "allmem/units/u-000001",
    "I live in Rome",
    "x" * 100_000,
    "é\u0301北京😀",
)
NUMBERS = ("0.95", "1", "0.9", "2", "-1", "NaN", "Infinity", '"0.95"', "null", "[1]", "1e999", "true")


class Liar:
    """Replies as text, of about the right shape, with anything in it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.asked = 0

    def script(self, task: str) -> Any:
        def answer(variables: Mapping[str, Any]) -> str:
            chance = random.Random(f"{self.seed} {task} {json.dumps(variables, sort_keys=True)}")
            return getattr(self, f"_{task}")(chance, variables)

        return answer

    def model(self) -> ScriptedLLM:
        tasks = ("describe", "diagnose", "split_unit", "merge_units", "update_unit")
        return ScriptedLLM({task: self.script(task) for task in tasks})

    def _describe(self, chance: random.Random, asked: Mapping[str, Any]) -> str:
        def row(turn: Mapping[str, Any]) -> dict[str, Any]:
            said = chance.choice((turn["text"], chance.choice(NASTY)))
            words = chance.choices((*NASTY, said[:20]), k=3)
            name, when = chance.choice((turn["id"], *NASTY[:2])), chance.choice((None, "2024", *NASTY))
            return {"id": name, "summary": said, "keywords": words, "when": when}

        return _json({"cards": [row(turn) for turn in asked["turns"]]})

    def _diagnose(self, chance: random.Random, asked: Mapping[str, Any]) -> str:
        near = [one["id"] for one in asked["anchors"]]
        pool = (*NASTY[7:15], *near * 3, "TARGET", "TARGET", "TARGET")

        def row(**ids: Any) -> str:
            sure = chance.choice((*["1"] * 24, *NUMBERS))
            body = _json({**ids, "reason": chance.choice(NASTY)})
            return f'{body[:-1]}, "confidence": {sure}}}'

        def rows(*made: str) -> str:
            return f"[{', '.join(made)}]"

        some = chance.randint(0, 2)
        splits = rows(*(row(node_id=chance.choice(pool)) for _ in range(some)))
        merges = rows(*(row(node_ids=chance.choices(pool, k=chance.randint(0, 5))) for _ in range(3)))
        updates = rows(
            *(row(current_id=chance.choice(pool), superseded_id=chance.choice(pool)) for _ in range(2))
        )
        return f'{{"split_tasks": {splits}, "merge_tasks": {merges}, "update_tasks": {updates}}}'

    def _split_unit(self, chance: random.Random, asked: Mapping[str, Any]) -> str:
        text = asked["unit"]["text"]
        at = chance.randint(0, len(text))
        pieces = chance.choice(
            ((text[:at], text[at:]), (text, text), (text[:at],), (text[: at + 3], text[at:]), NASTY[:4])
        )
        rows = [
            {
                "segment_text": piece,
                "segment_summary": chance.choice((piece, *NASTY)),
                "segment_keywords": chance.choices((*NASTY, "word"), k=chance.randint(0, 14)),
                "topic_label": chance.choice(NASTY),
            }
            for piece in pieces
        ]
        return _json({"do_split": chance.random() < 0.8, "segments": rows, "split_rationale": ""})

    def _merge_units(self, chance: random.Random, asked: Mapping[str, Any]) -> str:
        text = chance.choice((*NASTY, "All of it."))
        return _json({"summary": text, "keywords": chance.choices(NASTY, k=4), "salient_points": list(NASTY)})

    def _update_unit(self, chance: random.Random, asked: Mapping[str, Any]) -> str:
        told = {"updated_summary": chance.choice(NASTY), "updated_keywords": chance.choices(NASTY, k=2)}
        return _json({**told, "deprecations": list(NASTY), "alignment_note": chance.choice(NASTY)})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def lived(llm: Any, **settings: Any) -> Library:
    """A library that was fed by a model, consolidating often."""
    library = Library(every_sessions=1, workers=2, coherence=0.0, attach_min=0.0, **settings)
    strategy = AllMem(llm, library.settings)
    for number in range(6):
        library.say(
            "I live in Rome. I play chess.",
            "I live in Rome",
            f"- <seq=1,source=human> I have {number} cats\n---\n# and dogs",
            session=f"s{number}",
            speaker="Ana",
            time=f"2024-01-0{number + 1}",
        )
        before = dict(library.documents)
        library.drive(strategy.observe(library.view(), library.pending()))
        library.drive(strategy.tick(library.view(), "consolidate"))
        for doc_id, document in before.items():
            if doc_id.startswith(("evidence/", "allmem/audit/")):
                assert library.documents[doc_id] is document
        assert not library.pending()
        errors = [one for one in strategy.check(library.view()) if one.level == "error"]
        assert not errors, errors
    return library


def harmless(library: Library) -> None:
    """What holds whatever a model says."""
    names = set()
    for doc_id, document in library.documents.items():
        if not doc_id.startswith("allmem/"):
            continue
        assert not document.entries
        assert not document.malformed
        assert not document.unsigned
        assert document.header.problem is None
        folder, _, name = doc_id.removeprefix("allmem/").partition("/")
        if folder in ("units", "archive"):
            assert is_record_id(name)
            assert name not in names
            names.add(name)
            assert not document.headings
            assert len(document.to_bytes()) < 40_000
        else:
            assert folder in ("audit", "buffer")
    bank = library.bank()
    assert bank.findings == ()
    assert {f"u-{seq:06d}" for seq in range(1, 19)} <= names
    for unit in bank.records.values():
        assert len(unit.summary) <= 600
        assert len(unit.keywords) <= 12
    for plan in library.plans:
        _within(plan)


def _within(plan: Plan) -> None:
    assert plan.op in ("write", "consolidate")
    assert len({put.doc_id for put in plan.records}) == len(plan.records)
    for put in plan.records:
        assert put.doc_id.startswith("allmem/")
        put.doc_id.encode("ascii")


def test_lies_in_every_field_do_no_harm() -> None:
    applied = 0
    for seed in range(3):
        library = lived(Liar(seed).model(), degree_semantic=3)
        harmless(library)
        bank = library.bank()
        assert all(len(bank.graph.out(name, "semantic")) <= 3 for name in bank.records)
        applied += len(bank.records) - 18
    assert applied > 5  # some lies are good enough to be edits


@pytest.mark.soak
def test_many_lies_do_no_harm() -> None:
    for seed in range(200):
        harmless(lived(Liar(seed).model(), degree_semantic=3))


@each("seed", range(3))
def test_garbage_of_the_right_shape_does_no_harm(seed: int) -> None:
    harmless(lived(GarbageLLM(seed)))


def test_a_reply_past_every_schema_does_no_harm() -> None:
    """A client that checks nothing: data of the right types, with confidences that are no share."""
    odd = [float("nan"), float("inf"), -1.0, 2.0, 10**30]

    def diagnose(variables: Mapping[str, Any]) -> Reply:
        near = [one["id"] for one in variables["anchors"]][:2]
        merges = [{"node_ids": ["TARGET", *near], "confidence": sure, "reason": ""} for sure in odd]
        return Reply({"split_tasks": [], "merge_tasks": merges, "update_tasks": []})

    llm = ScriptedLLM({"describe": lambda _: {"cards": []}, "diagnose": diagnose})
    library = lived(llm)
    harmless(library)
    assert len(library.bank()) == 18
