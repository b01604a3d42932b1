"""Splitting and merging: bounded documents, names that last, people's prose untouched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import (
    Library,
    assigned,
    document,
    entry,
    ids,
    keep_all,
    nothing_outdated,
    one_topic,
    swapped,
)

from infinimem import tokens
from infinimem.model import Finding, Plan
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.split_merge import is_merge_due
from infinimem.strategies.infini.strategy import Infini
from infinimem.testing import ScriptedLLM


def no_groups(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"groups": []}


def groups(*members: list[str]) -> list[dict[str, Any]]:
    return [{"groups": [{"doc_ids": list(ids), "reason": "alike"} for ids in members]}]


def into_things(variables: Mapping[str, Any]) -> dict[str, Any]:
    return assigned(("Things", ids(variables["topics"])))


def consolidate(library: Library, **scripts: Any) -> ScriptedLLM:
    script = {
        "rewrite": one_topic,
        "plan": into_things,
        "compare": nothing_outdated,
        "layout": keep_all,
        "merge": no_groups,
        **scripts,
    }
    llm = ScriptedLLM(script)
    library.buffer("new line")
    library.drive(Infini(llm, library.settings).tick(library.view(), "consolidate"))
    return llm


def long_document(*extra: str) -> str:
    lines: list[str] = []
    for part in range(3):
        lines.append(f"# Part {part}")
        lines += [entry(100 + 10 * part + i, f"{part} and " * 8) for i in range(4 - part)]
    return document(*extra, *lines)


# ── split ───────────────────────────────────────────────────────────────────────────────────────


def test_a_long_document_is_split_and_its_largest_part_keeps_the_name() -> None:
    library = Library({"topics/long": long_document()}, markdown_length=200)
    before = library.lines()
    llm = consolidate(
        library,
        plan=[
            assigned(("Things", [122])),
            assigned(
                ("Small", ["120", "121"]), ("Large", ["100", "101", "102", "103"]), ("Mid", [110, 111, 112])
            ),
        ],
    )
    assert [plan.op for plan in library.plans] == ["consolidate", "split"]
    assert [call.variables["docs"] for call in llm.calls if call.task == "plan"][1] == []
    assert set(before) <= set(library.lines())
    assert sorted(library.documents) == [
        "CURRENT",
        "topics/long",
        "topics/mid",
        "topics/small",
        "topics/things",
    ]
    assert [seq for seq, _ in library.lines("topics/long")] == [100, 101, 102, 103]
    assert [seq for seq, _ in library.lines("topics/mid")] == [110, 111, 112]
    assert {move.why for move in library.plans[1].moves} == {"split"}
    assert list(library.texts("topics/mid")) == ["Part 1"]
    assert "0 and" in library.documents["topics/long"].summary


def test_the_name_stays_with_the_part_that_has_it_for_a_title() -> None:
    library = Library({"topics/long": long_document()}, markdown_length=200)
    parts = assigned(("Large", [100, 101, 102, 103, 110]), ("long!", [111, 112, 120, 121]))
    consolidate(library, plan=[assigned(("Things", [122])), parts])
    assert [seq for seq, _ in library.lines("topics/long")] == [111, 112, 120, 121]


def test_parts_that_are_still_too_long_are_cut_without_the_model() -> None:
    library = Library({"topics/long": long_document()}, markdown_length=90)
    consolidate(library, plan=lambda variables: "no")
    assert library.plans[1].op == "split"
    for doc_id, found in library.documents.items():
        if doc_id.startswith("topics/"):
            assert tokens.count(found.body) <= 110, doc_id


def test_a_planner_that_sees_one_topic_only_still_splits() -> None:
    library = Library({"topics/long": document("# A", *(entry(100 + i, "x") for i in range(10)))})
    swapped(library, markdown_length=tokens.count(library.documents["topics/long"].body) - 1)
    consolidate(library, plan=into_things)
    assert [plan.op for plan in library.plans] == ["consolidate", "split"]
    assert [len(library.lines(doc_id)) for doc_id in ("topics/long", "topics/a")] == [5, 5]


@pytest.mark.parametrize(
    "extra", ["A person's words.", "- an item without signature", "- <seq=x> damaged", entry(100, "twice")]
)
def test_a_document_with_a_persons_words_is_not_split_and_check_says_so(extra: str) -> None:
    library = Library({"topics/long": long_document(extra, "")}, markdown_length=100)
    consolidate(library)
    assert [plan.op for plan in library.plans] == ["consolidate"]
    (finding,) = Infini(ScriptedLLM({}), library.settings).check(library.view())
    assert isinstance(finding, Finding) and finding.where == "topics/long" and finding.level == "note"


def test_a_single_line_is_never_split() -> None:
    library = Library({"topics/long": document(entry(100, "x " * 300))}, markdown_length=100)
    consolidate(library)
    assert [plan.op for plan in library.plans] == ["consolidate"]


def test_a_refused_split_is_left_and_the_next_is_tried() -> None:
    library = Library({"topics/a": long_document()}, markdown_length=200)
    library.write("topics/b", long_document().replace("seq=1", "seq=2"))
    library.refuse = ["", "CONFLICT"]
    consolidate(library)
    assert [plan.op for plan in library.plans] == ["consolidate", "split", "split"]
    assert len(library.lines("topics/a")) == 9
    assert len(library.lines("topics/b")) < 9


# ── merge ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epoch", "small", "due"),
    [
        (10, 2, True),
        (20, 2, True),
        (9, 2, False),
        (9, 51, True),
        (9, 50, False),
        (0, 3, False),
        (10, 1, False),
    ],
)
def test_merging_is_due_by_epoch_or_by_number(epoch: int, small: int, due: bool) -> None:
    assert is_merge_due(epoch, small, InfiniSettings()) is due
    assert not is_merge_due(epoch, 5, InfiniSettings(merge_frequency=0))


def shelf(**settings: Any) -> Library:
    """Small documents a, b, c, d; c is the oldest."""
    return Library(
        {
            f"topics/{name}": document(
                f"# {name.upper()}", entry(seq, f"about {name}"), summary=f"on {name}", created_time=created
            )
            for name, seq, created in [
                ("a", 201, "2024-01-03"),
                ("b", 202, "2024-01-02"),
                ("c", 203, "2024-01-01"),
                ("d", 204, ""),
            ]
        },
        merge_frequency=1,
        **settings,
    )


def test_a_group_moves_into_its_oldest_document() -> None:
    library = shelf()
    llm = consolidate(library, merge=groups(["topics/a", "topics/c", "topics/d"]))
    docs = next(call for call in llm.calls if call.task == "merge").variables["docs"]
    assert docs[0] == {"id": "topics/a", "title": "A", "summary": "on a", "tokens": docs[0]["tokens"]}
    assert [plan.op for plan in library.plans] == ["consolidate", "merge"]
    assert library.texts("topics/c") == {"C": ["about c"], "A": ["about a"], "D": ["about d"]}
    assert "topics/a" not in library.documents
    assert library.documents["topics/c"].header.values["aliases"] == ["a", "d"]
    assert {move.why for move in library.plans[1].moves} == {"merged"}
    assert library.plans[1].derived[0].origin == (201, 203, 204)


def test_the_survivor_of_a_merge_keeps_its_title() -> None:
    library = shelf()
    for name, title in (("a", "All of A"), ("c", "See, C")):
        text = library.documents[f"topics/{name}"].to_bytes().decode()
        library.write(f"topics/{name}", text.replace("---\n", f"---\ntitle: {title}\n", 1))
    consolidate(library, merge=groups(["topics/a", "topics/c"]))
    assert library.documents["topics/c"].title == "See, C"
    assert library.texts("topics/c") == {"C": ["about c"], "A": ["about a"]}


def test_groups_hold_only_as_far_as_they_are_sound() -> None:
    library = shelf(merge_group_max=2)
    library.write("topics/prose", document("Words.", entry(210, "a")))
    library.write("topics/inbox", document(entry(211, "a")))
    library.write("topics/tagged", document(entry(212, "a"), tags="[mine]"))
    llm = consolidate(
        library,
        merge=groups(
            ["topics/b", "topics/b", "topics/none"],
            ["topics/prose", "topics/inbox", "topics/d"],
            ["topics/a", "topics/b", "topics/c"],
            ["topics/b", "topics/d"],
            ["topics/c", "topics/d"],
        ),
    )
    shown = [doc["id"] for doc in next(call for call in llm.calls if call.task == "merge").variables["docs"]]
    assert shown == ["topics/a", "topics/b", "topics/c", "topics/d", "topics/things"]
    (plan,) = (plan for plan in library.plans if plan.op == "merge")
    assert {move.seq: move.to for move in plan.moves} == {201: "topics/b", 204: "topics/c"}
    # No document is in two groups: each line is described once.
    assert {one.doc_id: one.origin for one in plan.derived} == {
        "topics/b": (201, 202),
        "topics/c": (203, 204),
    }


def test_a_group_that_would_be_too_long_is_not_merged() -> None:
    library = shelf(markdown_length=45)
    consolidate(library, merge=groups(["topics/a", "topics/b", "topics/c", "topics/d"]))
    assert [plan.op for plan in library.plans] == ["consolidate"]


def test_an_unreadable_proposal_merges_nothing() -> None:
    library = shelf()
    consolidate(library, merge=["no"])
    assert [plan.op for plan in library.plans] == ["consolidate", "append"]
    assert library.plans[1] == Plan(rejected=library.plans[1].rejected)
    assert [(reply.task, reply.text) for reply in library.plans[1].rejected] == [("merge", "no")]


def test_many_documents_are_proposed_in_lists_that_fit_a_call() -> None:
    library = shelf(plan_split_threshold=60)
    llm = consolidate(library)
    shown = [call.variables["docs"] for call in llm.calls if call.task == "merge"]
    assert len(shown) > 1
    assert len({doc["id"] for docs in shown for doc in docs}) == sum(map(len, shown))


def test_a_refused_merge_leaves_both_and_the_next_is_tried() -> None:
    library = shelf()
    library.refuse = ["", "CONFLICT", "CONFLICT"]
    llm = consolidate(library, merge=groups(["topics/a", "topics/b"], ["topics/c", "topics/d"]))
    assert {"topics/a", "topics/b", "topics/c"} <= library.documents.keys()
    assert "topics/d" not in library.documents
    assert "layout" not in [call.task for call in llm.calls]


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_nonsense_splits_and_merges_without_losing_a_line(seed: int) -> None:
    library = shelf(markdown_length=(60, 150, 5000)[seed % 3])
    library.write("topics/long", long_document())
    library.buffer("new", "newer")
    before = {seq for seq, _ in library.lines()}
    library.drive(Infini(GarbageLLM(seed), library.settings).tick(library.view(), "consolidate"))
    seqs = [seq for seq, _ in library.lines()]
    assert len(seqs) == len(set(seqs))
    assert before <= set(seqs)
