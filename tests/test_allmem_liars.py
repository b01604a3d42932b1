"""A model that lies in every field changes nothing that it may not: evidence, ids, caps, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allmem_library import Library
from cases import each
from garbage import GarbageLLM

from infinimem.llm.base import Reply
from infinimem.model import Plan
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.records.record import is_record_id
from infinimem.testing import ScriptedLLM


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
