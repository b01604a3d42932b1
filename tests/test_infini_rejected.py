"""Replies that were not taken as they came travel with the plan, each once, with its reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from infini_library import Library, assigned, ids, keep_all, nothing_outdated, one_topic, outdated

from infinimem.errors import ModelUnavailable
from infinimem.model import RejectedReply
from infinimem.strategies.infini.layout import CROWDED
from infinimem.strategies.infini.strategy import Infini
from infinimem.testing import ScriptedLLM


def extracted(*entries: tuple[str, str]) -> dict[str, Any]:
    items = [{"text": text, "from": [seq], "when": None, "refers": None} for text, seq in entries]
    return {"entries": items}


def observe(library: Library, *replies: Any) -> tuple[RejectedReply, ...]:
    strategy = Infini(ScriptedLLM({"extract": replies}), library.settings)
    library.drive(strategy.observe(library.view(), library.view().uncited()))
    return tuple(reply for plan in library.plans for reply in plan.rejected)


def consolidate(library: Library, **scripts: Any) -> tuple[RejectedReply, ...]:
    honest: dict[str, Any] = {
        "rewrite": one_topic,
        "plan": lambda v: assigned(("Things", ids(v["topics"]))),
        "compare": nothing_outdated,
        "layout": keep_all,
    }
    strategy = Infini(ScriptedLLM({**honest, **scripts}), library.settings)
    library.drive(strategy.tick(library.view(), "consolidate"))
    return tuple(reply for plan in library.plans for reply in plan.rejected)


def test_an_honest_reply_is_not_kept() -> None:
    library = Library()
    library.say("I like tea.")
    assert observe(library, extracted(("I like tea.", "1"))) == ()
    assert consolidate(library) == ()


def test_a_mended_reply_is_kept_with_what_was_wrong() -> None:
    library = Library()
    library.say("I like tea.", "Hello.")
    (reply,) = observe(library, "Sorry, no.", extracted(("I like tea.", "1")))
    assert (reply.task, reply.text) == ("extract", "Sorry, no.")
    assert reply.reasons[0].startswith("JSON_PARSE_FAIL")


def test_both_replies_are_kept_where_neither_can_be_read() -> None:
    library = Library()
    library.say("I like tea.")
    assert [reply.text for reply in observe(library, "one", "two")] == ["one", "two"]


def test_an_unsupported_entry_names_its_turn_and_what_it_claims() -> None:
    library = Library()
    library.say("I like tea.")
    (reply,) = observe(library, extracted(("I like 14 teas.", "1")), extracted(("I like tea.", "1")))
    assert reply.reasons == ("UNSUPPORTED 1: number 14 in: I like 14 teas.",)
    assert json.loads(reply.text)["entries"][0]["text"] == "I like 14 teas."


def test_each_task_of_a_consolidation_tells_its_own() -> None:
    library = Library(plan_retries=1)
    library.buffer("I like tea.", "I like milk.", *(f"Line {number}" for number in range(CROWDED)))
    known = ids([{"id": str(place.entry.seq), "text": ""} for place in library.view().buffer.entries])
    forgets = {"topics": [{"title": "Tea", "fact_ids": known[1:]}]}
    kept = consolidate(
        library,
        rewrite=[forgets, forgets],
        plan=[assigned(("Things", [*known[1:], "99"])), assigned(("Things", known[:1]))],
        compare=["{", "{"],
        layout=["[", "["],
    )
    assert [(reply.task, reply.reasons[0].split()[0].strip(":")) for reply in kept] == [
        ("rewrite", "MISSING"),
        ("plan", "MISSING"),
        ("compare", "JSON_PARSE_FAIL"),
        ("layout", "JSON_PARSE_FAIL"),
    ]
    assert len(library.plans) == 1


def test_what_was_refused_before_the_model_went_away_is_told_all_the_same() -> None:
    library = Library()
    library.buffer("I like tea.")
    with pytest.raises(ModelUnavailable):
        consolidate(library, rewrite=["no", ModelUnavailable("gone")])
    (plan,) = library.plans
    assert [reply.text for reply in plan.rejected] == ["no"]
    assert plan.moves == ()


def test_a_claim_that_names_no_survivor_is_told() -> None:
    library = Library()
    library.buffer("Lives in Rome", "Lives in Oslo")
    first, *_ = consolidate(library, compare=[outdated((2, 77)), outdated()])
    assert "UNKNOWN_SURVIVOR 2: 77" in first.reasons
