"""Routing: every line to one document, whatever the planner answers; what repeats or is outdated goes."""

from __future__ import annotations

from typing import Any

from cases import each
from infini_library import Library, assigned, document, entry, ids, outdated

from infinimem.model import CURRENT
from infinimem.strategies.infini.plan import Planner, allowed, claim, compare
from infinimem.strategies.infini.topics import (
    INBOX,
    Account,
    Topic,
    entries_of,
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
    planner = Planner(library.view(), Account(llm), offer=offer)
    routes = planner.route(topics(library, *sizes))
    return {found.doc_id: [line.seq for line in entries_of(found.topics)] for found in routes}, llm, planner


def test_lines_go_where_the_planner_says() -> None:
    library = Library({"topics/food": FOOD, "topics/trips": TRIPS})
    library.buffer("Likes figs", "Flew to Oslo", "Plays chess")
    found, *_ = route(
        library, assigned(("topics/food", [103]), ("Board Games!", [105]), ("topics/trips", [104]))
    )
    assert found == {"topics/food": [103], "topics/board-games": [105], "topics/trips": [104]}


def test_missing_and_doubled_lines_are_asked_about_once_more() -> None:
    library = Library()
    library.buffer("a", "b", "c", "d")
    found, llm, _ = route(
        library,
        assigned(("X", [1, 2]), ("Y", [2])),
        assigned(("X", [1]), ("Y", [2, 3]), ("Z", [4, 1])),
        sizes=(1, 3),
    )
    again = llm.calls[1].variables
    assert again["problems"] == ["MISSING 3, 4", "REPEATED 2"]
    assert ids(again["topics"]) == ["1", "2", "3", "4"]
    assert found == {"topics/x": [1], "topics/y": [2, 3], "topics/z": [4]}


def test_what_no_reply_places_goes_to_the_nearest_document_or_the_inbox() -> None:
    library = Library({"topics/food": FOOD, "topics/trips": TRIPS})
    library.buffer("Milk from oats", "Saw Rome again", "Plays chess")
    found, llm, planner = route(library, assigned(("X", [])), assigned(("X", [])))
    assert found == {"topics/food": [103], "topics/trips": [104], INBOX: [105]}
    assert len(llm.calls) == 2
    assert "plan: MISSING 103, 104, 105" in planner.asker.notes


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


# ── what repeats and what is outdated ────────────────────────────────────────────────────────────────


def compared(library: Library, *replies: Any) -> tuple[Any, Any, ScriptedLLM]:
    """The buffer compared with itself and with all that stands."""
    view = library.view()
    llm = ScriptedLLM({"compare": replies})
    fresh = [place.entry for place in view.buffer.entries]
    stands = {place.seq: place.entry for place in view.entries()}
    account = Account(llm)
    claims = compare(fresh, stands, view, account)
    return claims, tuple(account.notes), llm


@each(
    ("lines", "marks"),
    [
        (("Plays chess on Mondays", "Drinks green tea"), {}),
        (("I have a dog called Rex", "I have a dog called Taro"), {"speaker": True}),
        (("Went to Rome by train", "Went to Rome by night"), {"origin": "1"}),
    ],
)
def test_what_cannot_be_outdated_is_not_shown(lines: tuple[str, str], marks: dict[str, Any]) -> None:
    library = Library()
    told = ""
    for number, line in enumerate(lines):
        fields = {"speaker": "AB"[number]} if "speaker" in marks else {}
        origin = ",origin=1" if "origin" in marks else ""
        told += entry(number + 2, line, **fields).replace(",source=user", f",source=user{origin}") + "\n"
    library.write(CURRENT, told)
    assert len(library.view().buffer.entries) == 2
    claims, _, llm = compared(library)
    assert (claims, llm.calls) == ((), [])


def test_a_value_that_changes_twice_is_shown_whole_and_what_is_nearer_to_others_is_not() -> None:
    library = Library()
    library.buffer(
        "The capital of Ruritania is Strelsau",
        "The capital of Ruritania is Zenda",
        "The capital of Ruritania is Hentzau",
        "Rode from Zenda to Oslo by horse in May",
        "Sews curtains",
        "Sews curtains for the kitchen",
    )
    *_, llm = compared(library, outdated())
    (call,) = llm.calls
    assert [ids([group]) for group in call.variables["groups"]] == [["1", "2", "3"], ["5", "6"]]
    assert [len(group["told"]) for group in call.variables["groups"]] == [3, 2]


@each(("sizes", "lines"), [((3, 3, 3, 3), "1 2 4 5 7 8 10 11"), ((6, 6), "1 2 3 4 5 6 7 8 9 10 11 12")])
def test_a_document_is_parted_by_the_first_facts_of_its_topics_unless_they_are_few(
    sizes: tuple[int, ...], lines: str
) -> None:
    library = Library()
    library.buffer(*(f"Fact {number}" for number in range(12)))
    others = [f"T{number}" for number in range(2, len(sizes) + 1)]
    reply = assigned(("X", ["T1"]), ("Y", others))
    found, llm, _ = route(library, reply, sizes=sizes, offer=False)
    told = [line for topic in llm.calls[0].variables["topics"] for line in topic["told"][1:]]
    assert [line.partition("]")[0][1:] for line in told] == lines.split()
    assert found == {"topics/x": [*range(1, sizes[0] + 1)], "topics/y": [*range(sizes[0] + 1, 13)]}


def test_a_claim_that_names_what_was_not_shown_goes_back_once() -> None:
    library = Library()
    library.buffer("Has 2 cats and a dog", "Has 3 cats and a dog")
    wrong = outdated((1, 77), (9, 2), (2, 2))
    claims, notes, llm = compared(library, wrong, outdated((1, 2)))
    assert llm.calls[1].variables["problems"] == [
        "UNKNOWN_SURVIVOR 1: 77",
        "UNKNOWN: 9",
        "UNKNOWN_SURVIVOR 2: 2",
    ]
    assert (claims, notes) == ((claim(1, 2, "superseded"),), ())


def test_a_model_is_told_why_a_line_may_not_go_and_what_it_insists_on_is_withheld() -> None:
    library = Library()
    library.buffer("Has 2 cats and a dog", "Has 3 cats and a dog")
    claims, notes, llm = compared(library, outdated((2, 1)), outdated((2, 1)))
    assert llm.calls[1].variables["problems"] == ["NOT_NEWER 2, 1"]
    assert (claims, notes) == ((), ("withheld: NOT_NEWER 2, 1",))


def test_what_a_person_may_overrule_is_withheld_and_not_asked_again() -> None:
    library = Library({"topics/home": document(entry(11, "Has 2 cats and a dog", source="human"))})
    library.buffer("Has 3 cats and a dog")
    claims, notes, llm = compared(library, outdated((11, 12)))
    assert len(llm.calls) == 1
    assert (claims, notes) == ((), ("withheld: PROTECTED 11, 12",))


@each(
    ("lines", "claims", "held"),
    [
        (["Has 2 cats", "Has 3 cats"], [(1, 2, "duplicate")], ()),
        (["old", "new"], [(2, 1, "superseded")], ()),
        (["Has a cat", "Has a cat", "Has no cat"], [(1, 2, "duplicate"), (2, 3, "superseded")], (1, 2)),
        (["Has two cats", "Has two cats", "Has six cats"], [(1, 2, "duplicate"), (2, 3, "duplicate")], (1,)),
        (["same", "same"], [(1, 2, "duplicate"), (2, 1, "duplicate")], ()),
        (["same", "same", "same"], [(1, 2, "duplicate"), (2, 3, "duplicate"), (3, 2, "duplicate")], ()),
    ],
)
def test_claims_hold_only_where_the_law_lets_them(
    lines: list[str], claims: list[tuple[int, int, Any]], held: tuple[int, ...]
) -> None:
    view = Library().buffer(*lines)
    found, _ = allowed([claim(*one) for one in claims], range(1, len(lines) + 1), view)
    assert tuple(move.seq for move in found) == held
    assert all(move.by not in held for move in found)
