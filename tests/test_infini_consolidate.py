"""Consolidation from CURRENT to topic documents: triggers, layout, archive, free rewriting, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases import each
from infini_library import (
    Library,
    assigned,
    document,
    entry,
    ids,
    keep_all,
    nothing_outdated,
    one_topic,
    outdated,
    rewritten,
)

from infinimem.model import CURRENT, Finding, Move
from infinimem.strategies.infini.strategy import Infini
from infinimem.strategies.infini.topics import INBOX
from infinimem.testing import ScriptedLLM

ROME, OSLO = "Lives in Rome", "Lives in Oslo"


def things(variables: Mapping[str, Any]) -> dict[str, Any]:
    return assigned(("Things", ids(variables["topics"])))


SCRIPT: dict[str, Any] = {
    "rewrite": one_topic,
    "plan": things,
    "compare": nothing_outdated,
    "layout": keep_all,
}


def consolidate(library: Library, event: Any = "consolidate", **scripts: Any) -> ScriptedLLM:
    llm = ScriptedLLM({**SCRIPT, **scripts})
    library.drive(Infini(llm, library.settings).tick(library.view(), event))
    return llm


# ── when ────────────────────────────────────────────────────────────────────────────────────────


@each(
    ("event", "tokens_over", "age", "happens"),
    [
        ("due", False, 0, False),
        ("due", True, 0, True),
        ("due", False, 9999, False),
        ("append", False, 9999, True),
        ("append", True, 0, True),
        ("append", False, 10, False),
        ("consolidate", False, 0, True),
    ],
)
def test_the_buffer_is_emptied_when_it_is_large_or_stale_or_on_request(
    event: str, tokens_over: bool, age: float, happens: bool
) -> None:
    library = Library(current_threshold=10 if tokens_over else 5000)
    library.buffer("a", "b")
    library.age = age
    consolidate(library, event)
    assert (library.lines(CURRENT) == []) is happens


# ── how ─────────────────────────────────────────────────────────────────────────────────────────


def test_lines_move_under_their_topics_and_the_document_gets_a_summary() -> None:
    library = Library()
    library.buffer("Drinks green tea at noon", "Plays chess on Mondays", "Won at go", "Hates rum")
    before = library.lines()
    llm = consolidate(library, rewrite=[rewritten({"Tea": [1, 4], "Games": [2, 3]})])
    assert library.lines() == before
    assert [call.task for call in llm.calls] == ["rewrite", "plan"]
    assert library.texts("topics/things") == {
        "Tea": ["Drinks green tea at noon", "Hates rum"],
        "Games": ["Plays chess on Mondays", "Won at go"],
    }
    assert "Drinks green tea at noon" in library.documents["topics/things"].summary
    assert library.plans[0].derived[0].origin == (1, 2, 3, 4)
    assert library.documents[CURRENT].header.values["current_epoch"] == "1"


def test_superseded_and_doubled_lines_go_to_the_archive_of_their_survivor() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME), entry(12, "Has a cat"))})
    library.buffer("Lives in Pisa", OSLO, "Has a cat")
    before = library.lines()
    consolidate(
        library,
        rewrite=[rewritten({"Places": [13, 14], "Pets": [15]})],
        plan=[assigned(("topics/home", [13, 14, 15]))],
        compare=[outdated((13, 14), (11, 14))],
    )
    assert library.lines() == before
    assert library.texts("topics/home") == {"Places": [OSLO], "Pets": ["Has a cat"]}
    assert library.plans[0].derived[0].origin == (14, 15)
    archived = {place.entry.seq: place.headings[-1] for place in library.documents["archive/home"].entries}
    assert {seq: heading.split(" (")[0] for seq, heading in archived.items()} == {
        11: "Superseded by 14",
        12: "Duplicate of 15",
        13: "Superseded by 14",
    }


def test_what_the_law_withholds_stays_live_and_the_receipt_says_so() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME, source="human"))})
    library.buffer(OSLO)
    consolidate(
        library,
        rewrite=[rewritten({"Places": [12]})],
        plan=[assigned(("topics/home", [12]))],
        compare=[outdated((11, 12))],
    )
    assert library.texts("topics/home") == {"Places": [ROME, OSLO]}
    assert library.plans[0].notes == ("withheld: PROTECTED 11, 12",)
    assert [item.move.seq for item in library.plans[0].withheld] == [11]


# ── refusals and failures ───────────────────────────────────────────────────────────────────────


def test_a_refused_plan_is_followed_by_one_that_asks_no_model() -> None:
    library = Library({"topics/food": document("# Drinks", entry(11, "Drinks oat milk"), summary="food")})
    library.buffer("Milk from almonds", "Plays chess")
    before = library.lines()
    library.refuse = ["CONFLICT"]
    llm = consolidate(library)
    calls = len(llm.calls)
    assert [plan.op for plan in library.plans] == ["consolidate", "consolidate"]
    assert library.plans[1].moves == (
        Move(12, "topics/food", "Unsorted 1"),
        Move(13, INBOX, "Unsorted 1"),
    )
    assert library.plans[1].notes == ("refused: CONFLICT; lines went to the nearest documents",)
    assert library.lines() == before
    assert calls == 3  # rewrite, plan, compare


@each("gone", [1, 2])
def test_a_line_that_somebody_takes_out_meanwhile_stands_for_none_and_is_not_missed(gone: int) -> None:
    library = Library()
    library.buffer(ROME, ROME, "Plays chess")

    def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
        library.documents[CURRENT] = library.documents[CURRENT].without({gone})
        return things(variables)

    consolidate(library, plan=plan)
    assert [seq for seq, _ in library.lines("topics/")] == sorted({1, 2, 3} - {gone})
    assert library.plans[1].notes[0].startswith("refused: UNKNOWN_SEQ")


def test_after_two_refusals_the_buffer_stays() -> None:
    library = Library()
    library.buffer("a")
    library.refuse = ["CONFLICT", "CONFLICT"]
    consolidate(library)
    assert len(library.plans) == 2
    assert library.lines(CURRENT) == [(1, entry(1, "a"))]


# ── splitting and merging ────────────────────────────────────────────────────────────────────────────


def no_groups(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"groups": []}


def groups(*members: list[str]) -> list[dict[str, Any]]:
    return [{"groups": [{"doc_ids": list(ids), "reason": "alike"} for ids in members]}]


def into_things(variables: Mapping[str, Any]) -> dict[str, Any]:
    return assigned(("Things", ids(variables["topics"])))


def reshaped(library: Library, **scripts: Any) -> ScriptedLLM:
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
    llm = reshaped(
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


@each("extra", ["A person's words.", "- an item without signature", "- <seq=x> damaged", entry(100, "twice")])
def test_a_document_with_a_persons_words_is_not_split_and_check_says_so(extra: str) -> None:
    library = Library({"topics/long": long_document(extra, "")}, markdown_length=100)
    reshaped(library)
    assert [plan.op for plan in library.plans] == ["consolidate"]
    (finding,) = Infini(ScriptedLLM({}), library.settings).check(library.view())
    assert isinstance(finding, Finding) and finding.where == "topics/long" and finding.level == "note"


def test_a_single_line_is_never_split() -> None:
    library = Library({"topics/long": document(entry(100, "x " * 300))}, markdown_length=100)
    reshaped(library)
    assert [plan.op for plan in library.plans] == ["consolidate"]


# ── merge ───────────────────────────────────────────────────────────────────────────────────────


def shelf(**settings: Any) -> Library:
    """Small documents a, b, c, d; c is the oldest."""
    return Library(
        {
            f"topics/{name}": document(
                f"# {name.upper()}",
                entry(seq, f"about {name}"),
                summary=f"gardens, {name}",
                created_time=created,
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
    llm = reshaped(library, merge=groups(["topics/a", "topics/c", "topics/d"]))
    docs = next(call for call in llm.calls if call.task == "merge").variables["docs"]
    assert docs[0] == {"id": "topics/a", "title": "A", "summary": "gardens, a", "tokens": docs[0]["tokens"]}
    assert [plan.op for plan in library.plans] == ["consolidate", "merge"]
    assert library.texts("topics/c") == {"C": ["about c"], "A": ["about a"], "D": ["about d"]}
    assert "topics/a" not in library.documents
    assert library.documents["topics/c"].header.values["aliases"] == ["a", "d"]
    assert {move.why for move in library.plans[1].moves} == {"merged"}
    assert library.plans[1].derived[0].origin == (201, 203, 204)
