"""Routing: gate, normal form in its order, coherence, queues; each dropped proposal has exactly one code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from allmem_library import Library, banked

from infinimem.llm import reading
from infinimem.strategies.allmem import tasks
from infinimem.strategies.allmem.buffer import Buffered
from infinimem.strategies.allmem.diagnose import Context, Op, Proposal, contexts, read
from infinimem.strategies.allmem.route import Routed, route
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex

A, B, C, D, E, OLD = (f"u-00000{number}" for number in range(1, 7))
ALL = (A, B, C, D, E, OLD)


@pytest.fixture
def place() -> tuple[RecordStore, VectorIndex]:
    """Four units that say nearly the same, one of another kind, and one in the archive."""
    library = Library()
    library.say(*"abcdef")
    tea = [("tea", f"Ana drinks green tea {word}") for word in ("daily", "daily", "daily", "now")]
    bank, space = banked(library, *tea, ("violin", "Bo plays violin"), ("tea", "Ana drinks green tea daily"))
    bank.archive(OLD)
    space.sync(bank)
    return bank, space


def said(op: Op, *ids: str, confidence: float = 0.95, shown: Sequence[str] = ALL) -> Proposal:
    return Proposal(op, ids, confidence, "because", Context(A, tuple(shown)))


def routed(place: tuple[RecordStore, VectorIndex], *proposals: Proposal, **settings: Any) -> Routed:
    return route(*place, proposals, AllmemSettings(**settings))


def codes(found: Routed) -> list[tuple[str, str]]:
    return [(one.code, one.sub) for one in found.dropped]


def kept(found: Routed, op: Op) -> list[tuple[str, ...]]:
    return [item.ids for item in found.queues[op]]


@pytest.mark.parametrize(
    ("proposal", "code", "sub"),
    [
        (said("split", A, confidence=0.89), "LOW_CONF", ""),
        (said("split", A, confidence=-1), "LOW_CONF", ""),
        (said("split", A, confidence=2), "LOW_CONF", ""),
        (said("split", A, confidence=float("nan")), "LOW_CONF", ""),
        (said("split", "u-000099"), "NORM_FILTER", "MISSING_ID"),
        (said("split", "../../etc"), "NORM_FILTER", "MISSING_ID"),
        (said("split", B, shown=(A, C)), "NORM_FILTER", "MISSING_ID"),
        (said("split", OLD), "NORM_FILTER", "VISIBILITY_FAIL"),
        (said("merge", A, "u-000099"), "NORM_FILTER", "MISSING_ID"),
        (said("merge", A, OLD), "NORM_FILTER", "VISIBILITY_FAIL"),
        (said("merge", OLD), "NORM_FILTER", "VISIBILITY_FAIL"),
        (said("merge", A, A), "NORM_FILTER", "ARITY_FAIL"),
        (said("merge"), "NORM_FILTER", "ARITY_FAIL"),
        (said("merge", A, B, C, D, E), "NORM_FILTER", "ARITY_FAIL"),
        (said("update", A, "u-000099"), "NORM_FILTER", "MISSING_ID"),
        (said("update", "u-000099", A), "NORM_FILTER", "MISSING_ID"),
        (said("update", OLD, A), "NORM_FILTER", "VISIBILITY_FAIL"),
        (said("update", B, B), "NORM_FILTER", "ARITY_FAIL"),
        (said("update", A, B), "NORM_FILTER", "ORDER_FAIL"),
        (said("merge", A, E), "COH_FAIL", None),
    ],
)
def test_each_code_is_reached(
    place: tuple[RecordStore, VectorIndex], proposal: Proposal, code: str, sub: str
) -> None:
    found = routed(place, proposal)
    assert [(one.code, one.sub if sub is not None else None) for one in found.dropped] == [(code, sub)]
    assert not any(found.queues.values())


def test_confidence_is_looked_at_before_ids_and_visibility_before_number(
    place: tuple[RecordStore, VectorIndex],
) -> None:
    assert codes(routed(place, said("merge", "u-000099", confidence=0.1))) == [("LOW_CONF", "")]
    five = said("merge", A, B, C, D, E)
    assert codes(routed(place, five)) == [("NORM_FILTER", "ARITY_FAIL")]
    with_old = said("merge", A, B, C, D, OLD)
    assert codes(routed(place, with_old)) == [("NORM_FILTER", "VISIBILITY_FAIL")]
    assert kept(routed(place, said("merge", A, B, C, D, "u-000099")), "merge") == [(A, B, C, D)]


def test_ids_are_sorted_once_each_and_an_update_keeps_its_order(
    place: tuple[RecordStore, VectorIndex],
) -> None:
    found = routed(place, said("merge", C, A, C, "u-000077", B), said("update", D, B), said("split", B, B))
    assert kept(found, "merge") == [(A, B, C)]
    assert kept(found, "update") == [(D, B)]
    assert kept(found, "split") == [(B,)]
    assert found.dropped == ()


def test_what_supersedes_may_be_archived_what_is_current_not(place: tuple[RecordStore, VectorIndex]) -> None:
    bank, space = place
    bank.archive(A)
    space.sync(bank)
    assert kept(routed(place, said("update", D, A)), "update") == [(D, A)]


def test_coherence_is_pairwise_and_has_a_threshold(place: tuple[RecordStore, VectorIndex]) -> None:
    _, space = place
    near = space.coherence((A, D))
    assert kept(routed(place, said("merge", A, D), coherence=near), "merge") == [(A, D)]
    assert codes(routed(place, said("merge", A, D), coherence=near + 1e-6))[0][0] == "COH_FAIL"


@pytest.mark.parametrize("op", ["split", "merge", "update"])
def test_each_operator_may_be_off(place: tuple[RecordStore, VectorIndex], op: Op) -> None:
    ids = {"split": (A,), "merge": (A, B), "update": (B, A)}
    proposals = [said(one, *ids[one]) for one in ids]
    found = routed(place, *proposals, **{op: False})
    assert codes(found) == [("NORM_FILTER", "OFF")]
    assert found.dropped[0].proposal.op == op
    assert sum(map(len, found.queues.values())) == 2


def test_of_equal_targets_the_surest_stays_and_of_these_the_first(
    place: tuple[RecordStore, VectorIndex],
) -> None:
    first, sure, again = said("split", A, confidence=0.9), said("split", A), said("split", A)
    found = routed(place, first, sure, again)
    assert [item.proposal is sure for item in found.queues["split"]] == [True]
    assert [one.proposal is other for one, other in zip(found.dropped, (first, again), strict=True)]
    assert codes(found) == [("NORM_FILTER", "DUPLICATE")] * 2
    both = routed(place, said("update", B, A), said("update", C, A), said("update", B, A))
    assert kept(both, "update") == [(B, A), (C, A)]


def test_of_overlapping_merges_the_larger_then_the_surer_then_the_first_by_ids(
    place: tuple[RecordStore, VectorIndex],
) -> None:
    large, small = said("merge", A, B, C), said("merge", C, D, confidence=1.0)
    found = routed(place, small, large)
    assert kept(found, "merge") == [(A, B, C)]
    assert codes(found) == [("NORM_FILTER", "OVERLAP")]
    sure = routed(place, said("merge", A, B, confidence=0.92), said("merge", B, C, confidence=0.97))
    assert kept(sure, "merge") == [(B, C)]
    equal = routed(place, said("merge", B, C), said("merge", A, B))
    assert kept(equal, "merge") == [(A, B)]
    # A discarded merge discards no other: (B, C) goes for (A, B), and (C, D) stays.
    chain = routed(place, said("merge", A, B, confidence=1.0), said("merge", B, C), said("merge", C, D))
    assert kept(chain, "merge") == [(A, B), (C, D)]


def test_queues_stand_by_ids_whatever_the_order_of_proposals(place: tuple[RecordStore, VectorIndex]) -> None:
    one = routed(place, said("split", D), said("split", B), said("split", A))
    assert kept(one, "split") == [(A,), (B,), (D,)]


def test_conflicts_between_operators_are_left_to_execution(place: tuple[RecordStore, VectorIndex]) -> None:
    found = routed(place, said("split", A), said("merge", A, B), said("update", B, A))
    assert [kept(found, "split"), kept(found, "merge"), kept(found, "update")] == [[(A,)], [(A, B)], [(B, A)]]


# ── what a reply says ───────────────────────────────────────────────────────────────────────────


def reply(text: str) -> Any:
    return read(Context(D, (A, B)), reading.read(text, tasks.DIAGNOSE.schema))


def test_the_word_target_stands_for_the_unit() -> None:
    found = reply(
        '{"split_tasks": [{"node_id": " TARGET ", "confidence": 1, "reason": ""}],'
        '"merge_tasks": [{"node_ids": ["TARGET", "u-000001"], "confidence": 0.9, "reason": "same"}],'
        '"update_tasks": [{"current_id": "TARGET", "superseded_id": "TARGETS", "confidence": 0,'
        '"reason": ""}]}'
    )
    assert [(one.op, one.ids) for one in found.proposals] == [
        ("split", (D,)),
        ("merge", (D, A)),
        ("update", (D, "TARGETS")),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "JSON_PARSE_FAIL"),
        ("no idea", "JSON_PARSE_FAIL"),
        ('{"split_tasks": [', "JSON_PARSE_FAIL"),
        ('{"split_tasks": []}', "SCHEMA_FAIL"),
        ('{"split_tasks": [{"node_id": "TARGET", "confidence": NaN, "reason": ""}]}', "JSON_PARSE_FAIL"),
        (
            '{"split_tasks": [{"node_id": "TARGET", "confidence": "0.95", "reason": ""}],'
            '"merge_tasks": [], "update_tasks": []}',
            "SCHEMA_FAIL",
        ),
        (
            '{"split_tasks": [{"node_id": "TARGET", "confidence": 2, "reason": ""}],'
            '"merge_tasks": [], "update_tasks": []}',
            "SCHEMA_FAIL",
        ),
        ('{"split_tasks": "all", "merge_tasks": [], "update_tasks": []}', "SCHEMA_FAIL"),
        ("x" * 2_000_000, "JSON_PARSE_FAIL"),
    ],
)
def test_a_reply_that_cannot_be_read_proposes_nothing_and_says_why(text: str, code: str) -> None:
    found = reply(text)
    assert found.code == code
    assert found.proposals == ()


def test_a_context_holds_what_is_still_there_up_to_the_limit(place: tuple[RecordStore, VectorIndex]) -> None:
    bank, space = place
    waiting = [Buffered(A, (B, "u-000099", A, OLD, C, D)), Buffered(B, ())]
    own = AllmemSettings(likeness=0, online_anchors=3)
    assert contexts(bank, space, waiting, own) == [Context(A, (B, OLD, C)), Context(B, ())]


def test_a_unit_is_looked_at_beside_older_ones_that_are_like_it() -> None:
    library = Library()
    library.say(*"abcde")
    texts = ("Ana moved to Porto", "Ana likes jazz", "Ana left Porto for Rome", "", "Ana met Bo")
    bank, space = banked(library, *(("", text) for text in texts))
    waiting = [Buffered(name, (A, B, C)) for name in (E, D, C, B, A)]
    own = AllmemSettings(likeness=0.3)
    assert contexts(bank, space, waiting, own) == [Context(C, (A,))], (
        "a name that all share counts for little"
    )
    assert contexts(bank, space, waiting, AllmemSettings(likeness=0.99)) == []


def test_a_long_text_is_looked_at_though_nothing_is_like_it() -> None:
    library = Library()
    library.say("tea", "word " * 300)
    bank, space = banked(library, ("", "Ana drinks tea"), ("", "Bo recites"))
    waiting = [Buffered(name, ()) for name in (A, B)]
    assert contexts(bank, space, waiting, AllmemSettings()) == [Context(B, ())]
