"""Routing: every line to exactly one document, whatever the planner answers."""

from __future__ import annotations

from typing import Any

import pytest
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library, assigned, document, entry, ids

from infinimem.llm.base import Reply
from infinimem.markdown.document import Document
from infinimem.settings import Settings
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Asker
from infinimem.strategies.infini.plan import GIVE_UP, Planner, open_documents
from infinimem.strategies.infini.topics import (
    INBOX,
    Slugs,
    Topic,
    clean_title,
    entries_of,
    halves,
    sections,
    slugify,
)
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


def test_a_topic_is_told_by_its_first_facts_and_its_name_stands_for_those_named_nowhere() -> None:
    library = Library()
    library.buffer("Likes figs", "Flew to Oslo", "Plays chess", "Plays go", speaker="Ana")
    found, llm, _ = route(library, assigned(("Trips", [2]), ("Games", ["T2", "T1"])), sizes=(3, 1))
    assert [topic["told"] for topic in llm.calls[0].variables["topics"]] == [
        ["[T1] A, 3", "[1] Ana: Likes figs", "[2] Ana: Flew to Oslo"],
        ["[T2] B, 1", "[4] Ana: Plays go"],
    ]
    assert found == {"topics/trips": [2], "topics/games": [1, 3, 4]}
    _, llm, _ = route(library, assigned(("X", ["T1", "T2"])), sizes=(3, 1), offer=False)
    assert len(llm.calls[0].variables["topics"][0]["told"]) == 4  # what is to be parted is told whole


def test_the_title_of_a_document_is_offered_and_leads_to_it() -> None:
    library = Library({"topics/exercise": document(entry(101, "Runs"), title="Ann’s sport", summary="runs")})
    library.buffer("Swims", "Rows", "Lifts")
    found, llm, _ = route(library, assigned(("Ann’s  SPORT", [102]), ("Exercise", [103]), ("Weights", [104])))
    assert llm.calls[0].variables["docs"][0]["title"] == "Ann’s sport"
    assert found == {"topics/exercise": [102, 103], "topics/weights": [104]}


def test_only_open_topic_documents_are_offered() -> None:
    library = Library(
        {
            "topics/food": FOOD,
            "topics/broken": "---\nsummary: [a\n---\n",
            "topics/long": document(*(entry(300 + i, "long " * 30) for i in range(9))),
            INBOX: document(entry(104, "Likes figs")),
            "notes/own": "# Figs\nfigs figs",
            "archive/food": document(entry(105, "figs")),
        },
        markdown_length=200,
    )
    library.buffer("Likes figs")
    seq = library.view().buffer.entries[0].entry.seq
    _, llm, _ = route(library, assigned(("Figs", [seq])))
    assert [doc["id"] for doc in llm.calls[0].variables["docs"]] == ["topics/food"]


def test_which_are_open_is_known_of_the_snapshot_before() -> None:
    files = {name: f"# {name[-1]}\n\n{document(entry(1, 'figs'))}" for name in ("topics/a", "topics/b")}
    before = _snapshot(files)
    assert open_documents(before) == {"topics/a": "a", "topics/b": "b"}
    later = {"topics/a": "---\ntoken_count: 99999\n---\n", "topics/c": "# C\n"}
    now = _snapshot(later, (before, {"topics/a", "topics/b", "topics/c"}))
    assert open_documents(now) == open_documents(_snapshot(later)) == {"topics/c": "c"}
    assert open_documents(_snapshot({**later, "topics/0": ""}, (now, {"topics/0"}))) == {
        "topics/0": "0",
        "topics/c": "c",
    }


def _snapshot(files: dict[str, str], before: tuple[View, set[str]] | None = None) -> View:
    documents = {name: Document.parse(name, text.encode()) for name, text in files.items()}
    return View(tuple(sorted(documents)), documents.__getitem__, Settings(), before=before)


def test_of_many_documents_the_nearest_are_offered() -> None:
    words = "apple birch cedar daisy elder fern grape hazel iris jasmine".split()
    library = Library(
        {f"topics/{word}": document(entry(100 + i, f"about {word}")) for i, word in enumerate(words)},
        planner_docs=2,
    )
    library.buffer("a hazel hedge beside the fern")
    seq = library.view().buffer.entries[0].entry.seq
    _, llm, _ = route(library, assigned(("X", [seq])))
    assert {doc["id"] for doc in llm.calls[0].variables["docs"]} == {"topics/fern", "topics/hazel"}


def test_an_invented_id_is_a_new_document() -> None:
    library = Library({"topics/food": FOOD})
    library.buffer("Plays chess", "Plays go")
    reply = {
        "assign": [
            {"doc_id": "topics/board-games", "new_title": None, "fact_ids": ["102"]},
            {"doc_id": "../../etc/passwd", "new_title": "Board games", "fact_ids": ["103"]},
        ]
    }
    assert route(library, reply)[0] == {"topics/board-games": [102, 103]}


def test_equal_titles_are_one_document_and_a_name_that_exists_is_taken() -> None:
    library = Library({"topics/food": FOOD})
    library.buffer("a", "b", "c")
    found, _, _ = route(library, assigned(("Chess", [102]), ("chess.", [103]), ("Food", [104])))
    assert found == {"topics/chess": [102, 103], "topics/food": [104]}


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


def test_content_over_the_threshold_is_planned_in_whole_topics() -> None:
    library = Library(plan_split_threshold=60, markdown_length=60)
    library.buffer(*(f"fact number {number} of nine" for number in range(9)))

    def answer(variables: Any) -> Any:
        return assigned((variables["topics"][0]["title"], ids(variables["topics"])))

    found, llm, _ = route(library, answer, sizes=(3, 3, 3))
    assert [ids(call.variables["topics"]) for call in llm.calls] == [
        ["1", "2", "3"],
        ["4", "5", "6"],
        ["7", "8", "9"],
    ]
    assert [call.variables["planned_titles"] for call in llm.calls] == [[], ["A"], ["A", "B"]]
    assert found == {"topics/a": [1, 2, 3], "topics/b": [4, 5, 6], "topics/c": [7, 8, 9]}


def test_one_oversized_topic_is_halved() -> None:
    library = Library(plan_split_threshold=60, markdown_length=60)
    library.buffer(*(f"fact number {number} of six" for number in range(6)))
    found, llm, _ = route(library, lambda v: assigned(("X", ids(v["topics"]))), offer=False)
    assert [ids(call.variables["topics"]) for call in llm.calls] == [["1", "2", "3"], ["4", "5", "6"]]
    assert found == {"topics/x": [1, 2, 3, 4, 5, 6]}


def test_an_unreadable_reply_is_asked_for_three_times_then_the_content_is_halved() -> None:
    library = Library()
    library.buffer("a", "b", "c", "d")

    def answer(variables: Any) -> Any:
        known = ids(variables["topics"])
        return "no" if len(known) > 2 else assigned((f"T{known[0]}", known))

    found, llm, _ = route(library, answer, sizes=(3, 1))
    asked = [ids(call.variables["topics"]) for call in llm.calls]
    assert asked == [["1", "2", "3", "4"]] * 3 + [["1", "2", "3"]] * 3 + [["1"], ["2", "3"], ["4"]]
    assert [call.variables["planned_titles"] for call in llm.calls[-3:]] == [[], ["T1"], ["T1", "T2"]]
    assert found == {"topics/t1": [1], "topics/t2": [2, 3], "topics/t4": [4]}


def test_a_reply_cut_off_is_not_asked_for_again_but_halved() -> None:
    library = Library()
    library.buffer("a", "b")
    _, llm, _ = route(library, Reply(None, "TRUNCATED"), assigned(("X", [1])), assigned(("X", [2])))
    assert [ids(call.variables["topics"]) for call in llm.calls] == [["1", "2"], ["1"], ["2"]]


def test_a_model_that_never_answers_is_given_up() -> None:
    library = Library({"topics/food": FOOD})
    library.buffer(*(f"line {number}" for number in range(100)))
    found, llm, _ = route(library, lambda _: "no")
    assert len(llm.calls) == GIVE_UP
    assert [seq for seqs in found.values() for seq in seqs] == list(range(102, 202))


def test_a_model_that_answers_now_and_then_is_not_given_up() -> None:
    library = Library(plan_split_threshold=20, markdown_length=20)
    library.buffer(*(f"line number {number}" for number in range(2 * GIVE_UP)))
    turns: list[Any] = []

    def answer(variables: Any) -> Any:
        turns.append(variables)
        return "no" if len(turns) % 2 else assigned(("Things", ids(variables["topics"])))

    found, _, _ = route(library, answer)
    assert found == {"topics/things": list(range(1, 2 * GIVE_UP + 1))}
    assert len(turns) > 2 * GIVE_UP


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


@pytest.mark.parametrize(
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


def test_slugs_are_unique_among_documents_archives_and_aliases() -> None:
    library = Library(
        {
            "topics/Food": FOOD,
            "archive/trips": "",
            "topics/x": document(entry(1, "a"), aliases="[games]"),
            "notes/own": "",
        }
    )
    slugs = Slugs(library.view())
    found = [slugs.new(title) for title in ("food", "Trips", "Games", "own", "Current", "new", "new", "new")]
    assert found == [
        "topics/food-2",
        "topics/trips-2",
        "topics/games-2",
        "topics/own-2",
        "topics/current-2",
        "topics/new",
        "topics/new-2",
        "topics/new-3",
    ]


@given(st.text())
def test_titles_read_back_as_they_were_written(text: str) -> None:
    title = clean_title(text)
    library = Library({"topics/x": f"# {title}\n{entry(1, 'a')}\n"})
    assert [topic.title for topic in sections(library.documents["topics/x"].entries)] == [title]
    assert clean_title(title) == title


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_halves_keep_every_line_in_order(sizes: list[int]) -> None:
    library = Library()
    library.buffer(*(["x"] * sum(sizes)))
    whole = topics(library, *sizes)
    left, right = halves(whole)
    assert [*entries_of(left), *entries_of(right)] == [*entries_of(whole)]
    if sum(sizes) > 1:
        assert left and right
