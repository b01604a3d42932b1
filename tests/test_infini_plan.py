"""Routing: every line to exactly one document, whatever the planner answers."""

from __future__ import annotations

from typing import Any

from cases import each
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library, assigned, document, entry, ids

from infinimem.strategies.infini.plan import Planner
from infinimem.strategies.infini.topics import (
    INBOX,
    Topic,
    entries_of,
    slugify,
)
from infinimem.strategies.records.asking import Asker
from infinimem.testing import ScriptedLLM

FOOD = document("# Drinks", entry(101, "Drinks oat milk"), summary="food and drinks")
TRIPS = document("# Trips", entry(102, "Went to Rome"), summary="journeys")


def topics(library: Library, *sizes: int) -> list[Topic]:
    """The buffer's lines as topics A, B, … of these sizes; all as A if none are given."""
    lines = [place.entry for place in library.view().buffer.entries]
    found, at = [], 0
    for number, size in enumerate(sizes or (len(lines),)):
        found.append(Topic("ABCDEFGH"[number], tuple(lines[at : at + size])))
        at += size
    return found


def route(
    library: Library, *replies: Any, sizes: tuple[int, ...] = (), offer: bool = True
) -> tuple[dict[str, list[int]], Any, Planner]:
    llm = ScriptedLLM({"plan": replies[0] if callable(replies[0]) else replies})
    planner = Planner(library.view(), Asker(llm), offer=offer)
    routes = planner.route(topics(library, *sizes))
    return {found.doc_id: [line.seq for line in entries_of(found.topics)] for found in routes}, llm, planner


def test_lines_go_where_the_planner_says() -> None:
    library = Library({"topics/food": FOOD, "topics/trips": TRIPS})
    library.buffer("Likes figs", "Flew to Oslo", "Plays chess")
    found, llm, _ = route(
        library, assigned(("topics/food", [103]), ("Board Games!", [105]), ("topics/trips", [104]))
    )
    assert found == {"topics/food": [103], "topics/board-games": [105], "topics/trips": [104]}
    variables = llm.calls[0].variables
    assert variables["docs"] == [
        {
            "id": "topics/food",
            "title": "Food",
            "summary": "food and drinks",
            "tokens": 15,
            "told": ["topics/food: Food, 15"],
        },
        {
            "id": "topics/trips",
            "title": "Trips",
            "summary": "journeys",
            "tokens": 16,
            "told": ["topics/trips: Trips, 16"],
        },
    ]
    assert variables["markdown_length"] == "5000"


def test_missing_and_doubled_lines_are_asked_about_once_more() -> None:
    library = Library()
    library.buffer("a", "b", "c", "d")
    found, llm, _ = route(
        library,
        assigned(("X", [1, 2]), ("Y", [2])),
        assigned(("Y", [2, 3]), ("Z", [4, 1])),
        sizes=(1, 3),
    )
    again = llm.calls[1].variables
    assert again["problems"] == ["MISSING 3, 4", "REPEATED 2"]
    assert ids(again["topics"]) == ["2", "3", "4"]
    assert again["planned_titles"] == ["X", "Y"]
    assert found == {"topics/x": [1], "topics/y": [2, 3], "topics/z": [4]}


def test_what_no_reply_places_goes_to_the_nearest_document_or_the_inbox() -> None:
    library = Library({"topics/food": FOOD, "topics/trips": TRIPS})
    library.buffer("Milk from oats", "Saw Rome again", "Plays chess")
    found, llm, planner = route(library, assigned(("X", [])), assigned(("X", [])))
    assert found == {"topics/food": [103], "topics/trips": [104], INBOX: [105]}
    assert len(llm.calls) == 2
    assert "plan: MISSING 103, 104, 105" in planner.notes


@given(st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_nonsense_routes_every_line_once(seed: int) -> None:
    length = (40, 5000)[seed % 2]
    library = Library(
        {"topics/food": FOOD, "notes/a": "figs"}, plan_split_threshold=length, markdown_length=length
    )
    library.buffer("Likes figs", "Flew to Oslo", "Plays chess", "Drinks tea", "b")
    planner = Planner(library.view(), Asker(GarbageLLM(seed)), offer=seed % 3 > 0)
    routes = planner.route(topics(library, 2, 2, 1))
    assert sorted(line.seq for found in routes for line in entries_of(found.topics)) == list(range(102, 107))
    assert len({found.doc_id for found in routes}) == len(routes)
    for found in routes:
        assert found.doc_id == "topics/food" or found.doc_id == f"topics/{slugify(found.doc_id[7:])}"


# ── titles, slugs, halves ───────────────────────────────────────────────────────────────────────


@each(
    ("title", "slug"),
    [
        ("Food & Drinks", "food-drinks"),
        ("  Café — crème ", "cafe-creme"),
        ("北京", "topic"),
        ("../../etc/passwd", "etc-passwd"),
        ("", "topic"),
        ("word " * 30, "word-" * 11 + "word"),
        ("x" * 99, "x" * 60),
        ("Con", "con-topic"),
    ],
)
def test_slugs_are_plain_and_short(title: str, slug: str) -> None:
    assert slugify(title) == slug
    assert len(slug) <= 60
