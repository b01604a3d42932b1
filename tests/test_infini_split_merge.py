"""Splitting and merging: bounded documents, names that last, people's prose untouched."""

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
)

from infinimem.model import Finding
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


@each("extra", ["A person's words.", "- an item without signature", "- <seq=x> damaged", entry(100, "twice")])
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


# ── merge ───────────────────────────────────────────────────────────────────────────────────────


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
