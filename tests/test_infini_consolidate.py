"""Consolidation from CURRENT to topic documents: triggers, layout, archive, free rewriting, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from infini_library import (
    Library,
    assigned,
    document,
    entry,
    ids,
    keep_all,
    laid,
    one_topic,
    rewritten,
    swapped,
)

from infinimem import tokens
from infinimem.errors import ModelUnavailable, UsageError
from infinimem.model import CURRENT, Move
from infinimem.strategies.infini.strategy import Infini
from infinimem.strategies.infini.topics import INBOX
from infinimem.testing import ScriptedLLM

ROME, OSLO = "Lives in Rome", "Lives in Oslo"


def things(variables: Mapping[str, Any]) -> dict[str, Any]:
    return assigned(("Things", ids(variables["topics"])))


SCRIPT: dict[str, Any] = {"rewrite": one_topic, "plan": things, "layout": keep_all}


def consolidate(library: Library, event: Any = "consolidate", **scripts: Any) -> ScriptedLLM:
    llm = ScriptedLLM({**SCRIPT, **scripts})
    library.drive(Infini(llm, library.settings).tick(library.view(), event))
    return llm


# ── when ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
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


def test_a_buffer_is_due_above_its_threshold_not_at_it() -> None:
    size = tokens.count(Library().buffer("a", "b").buffer.body)
    for threshold, happens in ((size, False), (size - 1, True)):
        library = Library(current_threshold=threshold)
        library.buffer("a", "b")
        consolidate(library, "due")
        assert (library.lines(CURRENT) == []) is happens


def test_an_estimate_counts_the_buffer_three_times_and_what_is_on_offer_once() -> None:
    library = Library({"topics/food": document("# Tea", entry(11, "Drinks tea"), summary="tea and coffee")})
    strategy = Infini(ScriptedLLM({}), library.settings)
    assert strategy.estimate(library.view()) == 0
    size = tokens.count(library.buffer("Drinks coffee").buffer.body)
    topic = tokens.count("tea and coffee") + tokens.count(library.documents["topics/food"].body)
    assert strategy.estimate(library.view()) == 3 * size + topic


def test_an_empty_buffer_is_no_reason_to_do_anything() -> None:
    library = Library()
    assert consolidate(library).calls == []
    assert library.plans == []


# ── how ─────────────────────────────────────────────────────────────────────────────────────────


def test_lines_move_under_headings_and_the_document_gets_a_summary() -> None:
    library = Library()
    library.buffer("Drinks tea", "Plays chess", "Hates milk", "Plays go", "Drinks rum")
    before = library.lines()
    consolidate(
        library,
        layout=[laid({"Games": [2, 4], "Drinks": [3, 1, 5]}, "tea, chess; habits")],
    )
    assert library.lines() == before
    assert library.texts("topics/things") == {
        "Games": ["Plays chess", "Plays go"],
        "Drinks": ["Drinks tea", "Hates milk", "Drinks rum"],
    }
    assert library.documents["topics/things"].summary == "tea, chess; habits"
    assert library.plans[0].derived[0].origin == (1, 2, 3, 4, 5)
    assert library.documents[CURRENT].header.values["current_epoch"] == "1"


def test_a_new_document_has_its_title_as_the_planner_gave_it_and_keeps_it() -> None:
    library = Library()
    library.buffer("Swims on Mondays")
    consolidate(library, plan=lambda asked: assigned(("Ann’s exercise: where & when", ids(asked["topics"]))))
    (doc_id,) = (name for name in library.documents if name.startswith("topics/"))
    assert doc_id == "topics/anns-exercise-where-when"
    assert library.documents[doc_id].lines[1:3] == (f"id: {doc_id}", 'title: "Ann’s exercise: where & when"')
    library.buffer("Rows on Sundays")
    llm = consolidate(library, plan=lambda asked: assigned((doc_id, ids(asked["topics"]))))
    asked = next(call for call in llm.calls if call.task == "layout").variables["doc"]
    assert asked["title"] == library.documents[doc_id].title == "Ann’s exercise: where & when"


def test_a_new_document_of_a_few_facts_is_arranged_without_the_model() -> None:
    library = Library()
    library.buffer("Drinks green tea at noon", "Plays chess on Mondays", "Plays go", "Drinks rum")
    llm = consolidate(library, rewrite=[rewritten({"Tea": [1, 4], "Games": [2, 3]})])
    assert [call.task for call in llm.calls] == ["rewrite", "plan"]
    assert library.texts("topics/things") == {
        "Tea": ["Drinks green tea at noon", "Drinks rum"],
        "Games": ["Plays chess on Mondays", "Plays go"],
    }
    assert "Drinks green tea at noon" in library.documents["topics/things"].summary
    library.buffer("Plays draughts")  # where lines stand, the model may find one outdated
    assert consolidate(library).calls[-1].task == "layout"


def test_sorting_is_told_which_documents_exist_and_how_large_they_are() -> None:
    library = Library(
        {"topics/exercise": document(entry(11, "Runs"), title="Ann’s sport", token_count="300")}
    )
    library.buffer("Swims")
    llm = consolidate(library)
    assert llm.calls[0].task == "rewrite"
    assert llm.calls[0].variables["docs"] == [{"title": "Ann’s sport", "tokens": 300}]


def test_a_document_that_has_no_title_gets_none() -> None:
    library = Library({"topics/things": document("# Home", entry(11, ROME))})
    library.buffer("Plays chess")
    llm = consolidate(library)
    asked = next(call for call in llm.calls if call.task == "layout").variables["doc"]
    assert (asked["title"], library.documents["topics/things"].title) == ("Things", "")


def test_a_document_is_shown_whole_and_its_lines_move_only_to_another_heading() -> None:
    library = Library(
        {"topics/home": document("# Places", entry(11, ROME), entry(12, "Has a garden"), summary="where")}
    )
    library.buffer("Has a cat")
    llm = consolidate(
        library,
        rewrite=[rewritten({"Pets": [13]})],
        plan=[assigned(("topics/home", [13]))],
        layout=[laid({"places": [11], "Outside": [12], "Pets": [13]}, "home; flat")],
    )
    assert llm.calls[-1].variables["doc"] == {
        "id": "topics/home",
        "title": "Home",
        "summary": "where",
        "sections": [
            {
                "heading": "Places",
                "facts": [
                    {"id": "11", "time": None, "source": "user", "text": ROME},
                    {"id": "12", "time": None, "source": "user", "text": "Has a garden"},
                ],
            }
        ],
    }
    assert [topic["title"] for topic in llm.calls[-1].variables["incoming"]] == ["Pets"]
    assert library.plans[0].moves == (
        Move(12, "topics/home", "Outside"),
        Move(13, "topics/home", "Pets"),
    )


def test_superseded_and_doubled_lines_go_to_the_archive_of_their_survivor() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME), entry(12, "Has a cat"))})
    library.buffer("Lives in Pisa", OSLO, "Has a cat")
    before = library.lines()
    consolidate(
        library,
        rewrite=[rewritten({"Home": [14, 15]}, superseded=[(13, 14)])],
        plan=[assigned(("topics/home", [14, 15]))],
        layout=[laid({"Places": [14], "Pets": [15]}, "x", duplicates=[(12, 15)], superseded=[(11, 14)])],
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


def test_a_layout_is_told_why_a_fact_may_not_go() -> None:
    library = Library({"topics/things": document("# Home", entry(11, ROME))})
    library.buffer("Lives in Rome, near the river")
    llm = consolidate(
        library,
        layout=[laid({"Home": [12]}, "x", duplicates=[(11, 12)]), laid({"Home": [11, 12]}, "x")],
    )
    assert llm.calls[-1].variables["problems"] == ["NOT_A_DUPLICATE 11, 12"]
    assert library.plans[0].notes == ()


def test_a_chain_over_two_stages_ends_at_the_line_that_stays() -> None:
    library = Library({"topics/home": document("# Places", entry(20, OSLO, time="2024-01-01"))})
    library.buffer(ROME, ROME, time="2023-01-01")
    consolidate(
        library,
        rewrite=[rewritten({"Home": [22]}, [(21, 22)])],
        plan=[assigned(("topics/home", [22]))],
        layout=[laid({"Places": [20]}, "x", superseded=[(22, 20)])],
    )
    assert [(move.seq, move.why, move.by) for move in library.plans[0].moves] == [
        (22, "superseded", 20),
        (21, "superseded", 20),
    ]
    assert library.lines("topics/") == [(20, entry(20, OSLO, time="2024-01-01"))]


def test_what_the_law_withholds_stays_live_and_the_receipt_says_so() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME, source="human"))})
    library.buffer(OSLO)
    consolidate(
        library,
        plan=[assigned(("topics/home", [12]))],
        layout=[laid({"Places": [12]}, "x", superseded=[(11, 12)])],
    )
    assert library.texts("topics/home") == {"Places": [ROME, OSLO]}
    assert library.plans[0].notes == ("withheld: PROTECTED 11, 12",)


def test_no_run_archives_more_than_its_share() -> None:
    library = Library()
    library.buffer(*(f"Has lived in town {number}" for number in range(20)))
    pairs = [(seq, 20) for seq in range(1, 20)]
    consolidate(library, rewrite=[rewritten({"Home": [20]}, superseded=pairs)])
    assert len(library.lines("archive/")) == 4
    assert sum("TOO_MANY" in note for note in library.plans[0].notes) == 15


def test_a_line_discarded_early_and_withheld_late_goes_where_its_survivor_is() -> None:
    library = Library({"topics/home": document("# Places", entry(11, "Lives in Bonn"))})
    library.buffer("Lives in Pisa", "Lives in Metz", "Lives in Graz", OSLO)
    consolidate(
        library,
        rewrite=[rewritten({"Home": [15]}, superseded=[(12, 15), (13, 15), (14, 15)])],
        plan=[assigned(("topics/home", [15]))],
        layout=[laid({"Places": [15]}, "x", superseded=[(11, 15)])],
    )
    assert library.plans[0].notes == ("withheld: TOO_MANY 14",)
    assert library.texts("topics/home") == {"Places": [OSLO, "Lives in Graz"]}
    assert library.lines(CURRENT) == []


def test_forgotten_lines_keep_their_place_or_go_under_their_topic() -> None:
    library = Library({"topics/things": document("# Old", entry(11, "a"))})
    library.buffer("b", "c")
    llm = consolidate(
        library, layout=lambda variables: laid({"New": [12, 12, 99]}, "", superseded=[(13, 77)])
    )
    assert llm.calls[-1].variables["problems"] == [
        "MISSING 11",
        "REPEATED 12",
        "UNKNOWN: 99",
        "UNKNOWN_SURVIVOR 13: 77",
    ]
    assert library.texts("topics/things") == {"Old": ["a"], "New": ["b"], "Things": ["c"]}
    assert library.documents["topics/things"].summary == "Old, Things"


def test_without_a_readable_layout_the_document_is_as_it_was_with_more_lines() -> None:
    library = Library({"topics/things": document("# things", entry(11, "a"), summary="as it was")})
    library.buffer("b")
    consolidate(library, layout=["no", "no"])
    assert library.texts("topics/things") == {"things": ["a", "b"]}
    assert library.documents["topics/things"].summary == "as it was"


def test_headings_of_a_document_with_prose_are_left_alone() -> None:
    library = Library({"topics/things": document("Some words.", "", "# Old", entry(11, "a"))})
    library.buffer("b")
    consolidate(library, layout=lambda _: laid({"Elsewhere": [11, 12]}, "words"))
    assert library.texts("topics/things") == {"Old": ["a"], "Things": ["b"]}
    assert "Some words." in library.documents["topics/things"].body


def test_of_a_long_document_only_the_headings_are_shown() -> None:
    text = document("# Old", *(entry(100 + i, "long " * 20) for i in range(5)))
    library = Library({"topics/things": text})
    swapped(library, markdown_length=tokens.count(library.documents["topics/things"].body) + 3)
    library.buffer("b")
    llm = consolidate(library, layout=lambda _: laid({"Old": [105]}, "longer"))
    call = next(call for call in llm.calls if call.task == "layout")
    assert call.variables["doc"]["sections"] == [{"heading": "Old", "facts": []}]
    assert library.plans[0].moves == (Move(105, "topics/things", "Old"),)
    assert library.plans[0].derived[0].origin == (100, 101, 102, 103, 104, 105)


def test_more_than_one_call_can_hold_comes_in_parts() -> None:
    library = Library(markdown_length=70, plan_split_threshold=900)
    library.buffer(*(f"fact number {number} of nine" for number in range(9)))
    topics = {"A": [1, 2, 3], "B": [4, 5, 6], "C": [7, 8, 9]}
    llm = consolidate(library, rewrite=[rewritten(topics)])
    calls = [call.variables for call in llm.calls if call.task == "layout"][:3]
    assert [ids(call["incoming"]) for call in calls] == [["1", "2", "3"], ["4", "5", "6"], ["7", "8", "9"]]
    assert [part["heading"] for part in calls[2]["doc"]["sections"]] == ["A", "B"]
    assert [move.heading for move in library.plans[0].moves] == ["A"] * 3 + ["B"] * 3 + ["C"] * 3


def test_a_summary_is_one_line_of_bounded_length() -> None:
    library = Library({"topics/things": document("# X", entry(10, "z"))}, summary_length=5)
    library.buffer("a")
    consolidate(library, layout=lambda _: laid({"X": [10, 11]}, "one two\nthree four five six seven"))
    assert library.documents["topics/things"].summary == "one two three four five"
    library.buffer("b")
    consolidate(library, layout=lambda _: laid({"X": [12]}, "zucchini ristretto macchiato gnocchi latte"))
    assert library.documents["topics/things"].summary == "zucchini"


def test_lines_of_a_doubled_seq_wait_until_someone_says_which_is_which() -> None:
    doubled = f"{entry(11, 'a')}\n{entry(11, 'b')}\n{entry(12, 'c')}\n{entry(13, 'd')}\n"
    library = Library({CURRENT: doubled, "topics/x": document(entry(13, "d"))})
    before = library.lines()
    consolidate(library)
    assert library.lines() == before
    assert [seq for seq, _ in library.lines(CURRENT)] == [11, 11, 13]
    assert consolidate(library).calls == []


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
    assert calls == 2


def test_what_was_discarded_stays_so_where_the_plan_is_refused() -> None:
    library = Library()
    library.buffer(ROME, ROME, OSLO, "Plays chess")
    library.refuse = ["CONFLICT"]
    consolidate(library, rewrite=[rewritten({"Home": [3], "Games": [4]}, [(1, 2)], [(2, 3)])])
    assert [plan.op for plan in library.plans] == ["consolidate", "consolidate"]
    assert sorted(seq for seq, _ in library.lines("archive/")) == [1, 2]
    assert sorted(seq for seq, _ in library.lines("topics/")) == [3, 4]


def test_after_two_refusals_the_buffer_stays() -> None:
    library = Library()
    library.buffer("a")
    library.refuse = ["CONFLICT", "CONFLICT"]
    consolidate(library)
    assert len(library.plans) == 2
    assert library.lines(CURRENT) == [(1, entry(1, "a"))]


@pytest.mark.parametrize("task", ["rewrite", "plan", "layout"])
def test_a_dead_endpoint_leaves_the_buffer(task: str) -> None:
    library = Library()
    library.buffer(*"abcde")
    with pytest.raises(ModelUnavailable):
        consolidate(library, **{task: [ModelUnavailable("no answer")]})
    assert library.plans == []


def test_without_maintenance_each_consolidation_is_a_document() -> None:
    library = Library(maintenance=False)
    library.buffer(ROME, OSLO, "Has a cat")
    llm = consolidate(library, rewrite=[rewritten({"Home": [2], "Pets": [3]}, superseded=[(1, 2)])])
    assert [call.task for call in llm.calls] == ["rewrite"]
    assert library.texts("topics/notes-1") == {"Home": [OSLO], "Pets": ["Has a cat"]}
    assert library.documents["topics/notes-1"].summary == "Home, Pets"
    assert library.lines("archive/notes-1") == [(1, entry(1, ROME))]
    library.buffer("More")
    consolidate(library)
    assert "topics/notes-2" in library.documents


def test_the_same_replies_give_the_same_plan() -> None:
    plans = []
    for _ in range(2):
        library = Library({"topics/food": document(entry(11, "Drinks oat milk"))})
        library.buffer("Milk", "b", "c")
        consolidate(library, plan=["no", "no", "no", "no", "no", "no", "no", "no", "no", "no", "no", "no"])
        plans.append(library.plans)
    assert plans[0] == plans[1]


# ── reading side ────────────────────────────────────────────────────────────────────────────────


def test_retrieve_packs_the_best_entries_and_calls_no_model() -> None:
    library = Library({"topics/food": document(entry(11, "Drinks oat milk"), entry(12, "Plays chess"))})
    strategy = Infini(ScriptedLLM({}), library.settings)
    found = strategy.retrieve(library.view(), "what milk?", 100)
    assert [item.seqs for item in found.items][:1] == [(11,)]
    with pytest.raises(UsageError, match="has no reader 'x'"):
        strategy.read(library.view(), "what milk?", "x", 100)
