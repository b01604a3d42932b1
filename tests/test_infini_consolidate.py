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
    nothing_outdated,
    one_topic,
    outdated,
    rewritten,
)

from infinimem import tokens
from infinimem.errors import ModelUnavailable, UsageError
from infinimem.model import CURRENT, Move
from infinimem.strategies.infini.compare import Claim
from infinimem.strategies.infini.layout import CROWDED, compose, plain, target
from infinimem.strategies.infini.plan import Route
from infinimem.strategies.infini.strategy import Infini
from infinimem.strategies.infini.topics import INBOX, Topic
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


def test_an_estimate_counts_the_buffer_and_the_names_of_what_is_on_offer() -> None:
    library = Library({"topics/food": document("# Tea", entry(11, "Drinks tea"), summary="tea and coffee")})
    strategy = Infini(ScriptedLLM({}), library.settings)
    assert strategy.estimate(library.view()) == 0
    size = tokens.count(library.buffer("Drinks coffee").buffer.body)
    assert strategy.estimate(library.view()) == size + 2 * tokens.count("topics/food")


def test_an_empty_buffer_is_no_reason_to_do_anything() -> None:
    library = Library()
    assert consolidate(library).calls == []
    assert library.plans == []


# ── how ─────────────────────────────────────────────────────────────────────────────────────────


def crowd(library: Library, count: int = CROWDED) -> list[int]:
    """Put so many lines into CURRENT; their seqs."""
    view = library.buffer(*(f"Number {number} of some" for number in range(count)))
    return [place.entry.seq for place in view.buffer.entries]


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


def test_lines_that_were_drawn_under_a_documents_title_go_there_and_no_one_is_asked() -> None:
    text = f"# Food\n{entry(1, 'Drinks oat-milk latte')}\n# Boats\n{entry(2, 'Owns a kayak')}\n"
    library = Library(
        {CURRENT: text, "topics/eating": document("# Food", entry(11, "Eats figs"), title="food")}
    )
    llm = consolidate(library, plan=lambda _: {"assign": []})
    assert [call.task for call in llm.calls] == ["plan"]  # of boats there is no document yet
    assert [topic["title"] for topic in llm.calls[0].variables["topics"]] == ["Boats"]
    assert library.texts("topics/eating") == {"Food": ["Eats figs", "Drinks oat-milk latte"]}
    assert library.texts("topics/boats") == {"Boats": ["Owns a kayak"]}


def test_a_crowded_section_is_parted_once() -> None:
    library = Library({"topics/things": document("# Old", entry(101, "Owns a kayak"), title="Things")})
    seqs = crowd(library)
    parts = {"old": seqs[:2], "Odd": seqs[2::2], "Even": seqs[3::2]}
    llm = consolidate(library, layout=[laid(parts)])
    (asked,) = [call.variables["doc"] for call in llm.calls if call.task == "layout"]
    assert {key: asked[key] for key in ("id", "title")} == {"id": "topics/things", "title": "Things"}
    assert [(part["heading"], ids(part)) for part in asked["sections"]] == [
        ("Things", [str(seq) for seq in seqs]),
        ("Old", []),
    ]
    assert {heading: len(lines) for heading, lines in library.texts("topics/things").items()} == {
        "Old": 3,
        "Odd": 14,
        "Even": 14,
    }
    library.buffer("Once more")
    assert "layout" not in [call.task for call in consolidate(library).calls]


def test_a_section_that_is_one_short_of_crowded_is_left() -> None:
    library = Library()
    crowd(library, CROWDED - 1)
    assert "layout" not in [call.task for call in consolidate(library).calls]


def test_a_new_document_has_its_title_as_the_planner_gave_it_and_keeps_it() -> None:
    library = Library()
    library.buffer("Swims on Mondays")
    consolidate(library, plan=lambda asked: assigned(("Ann’s exercise: where & when", ids(asked["topics"]))))
    (doc_id,) = (name for name in library.documents if name.startswith("topics/"))
    assert doc_id == "topics/anns-exercise-where-when"
    assert library.documents[doc_id].lines[1:3] == (f"id: {doc_id}", 'title: "Ann’s exercise: where & when"')
    library.buffer("Rows on Sundays")
    consolidate(library, plan=lambda asked: assigned((doc_id, ids(asked["topics"]))))
    assert library.documents[doc_id].title == "Ann’s exercise: where & when"


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
    crowd(library)
    llm = consolidate(library)
    asked = next(call for call in llm.calls if call.task == "layout").variables["doc"]
    assert (asked["title"], library.documents["topics/things"].title) == ("Things", "")


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


def test_a_line_of_another_document_goes_to_the_archive_of_its_survivor() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME), entry(12, "Has a cat"))})
    library.buffer("Lives in Rome no more")
    consolidate(library, compare=[outdated((11, 13))])
    assert [seq for seq, _ in library.lines("archive/things")] == [11]
    assert library.texts("topics/home") == {"Places": ["Has a cat"]}


def test_a_line_that_repeats_one_of_another_document_goes_to_its_archive() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME, source="human"))})
    library.buffer(ROME, "Plays chess")
    consolidate(library)
    assert [seq for seq, _ in library.lines("archive/home")] == [12]
    assert [seq for seq, _ in library.lines("topics/things")] == [13]


def test_a_chain_over_two_stages_ends_at_the_line_that_stays() -> None:
    library = Library({"topics/home": document("# Places", entry(20, OSLO, time="2024-01-01"))})
    library.buffer(ROME, ROME, time="2023-01-01")
    consolidate(library, plan=[assigned(("topics/home", [22]))], compare=[outdated((22, 20))])
    assert [(move.seq, move.why, move.by) for move in library.plans[0].moves] == [
        (21, "superseded", 20),
        (22, "superseded", 20),
    ]
    assert library.lines("topics/") == [(20, entry(20, OSLO, time="2024-01-01"))]


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


def test_a_line_whose_archiving_is_withheld_goes_where_the_other_one_goes() -> None:
    library = Library()
    library.buffer(ROME, source="human")
    view = library.buffer(OSLO)
    _, oslo = view.buffer.entries
    home = target(view, Route("topics/home", "Home", (Topic("Places", (oslo.entry,)),)))
    plan = compose("consolidate", [(home, plain(home))], [Claim(1, 2, "superseded")], view)
    assert [item.reason.code for item in plan.withheld] == ["PROTECTED"]
    assert {move.seq: (move.to, move.why) for move in plan.moves} == {
        1: ("topics/home", "moved"),
        2: ("topics/home", "moved"),
    }


def test_a_title_in_other_case_is_the_heading_that_stands() -> None:
    library = Library({"topics/home": document("# Places", entry(11, ROME))})
    view = library.buffer(OSLO)
    (oslo,) = view.buffer.entries
    laid_out = plain(target(view, Route("topics/home", "Home", (Topic("PLACES", (oslo.entry,)),))))
    assert (dict(laid_out.headings), laid_out.summary) == ({12: "Places"}, "Places")


def test_no_run_archives_more_than_its_share() -> None:
    library = Library()
    library.buffer(*(f"Has a small green house by the old river bridge in town {n}" for n in range(20)))
    consolidate(library, compare=[outdated(*((seq, 20) for seq in range(1, 20)))])
    assert len(library.lines("archive/")) == 4
    assert sum("TOO_MANY" in note for note in library.plans[0].notes) == 15


def test_forgotten_lines_keep_the_heading_of_their_topic() -> None:
    library = Library()
    seqs = crowd(library)
    wrong = laid({"New": [*seqs[:3], seqs[0], 999]})
    llm = consolidate(library, layout=lambda _: wrong)
    assert [problem.split()[0] for problem in llm.calls[-1].variables["problems"]] == [
        "MISSING",
        "REPEATED",
        "UNKNOWN:",
    ]
    texts = library.texts("topics/things")
    assert {heading: len(lines) for heading, lines in texts.items()} == {"New": 3, "Things": CROWDED - 3}


def test_without_a_readable_layout_lines_stand_under_their_topic() -> None:
    library = Library({"topics/things": document("# things", entry(101, "a"))})
    crowd(library)
    consolidate(library, layout=["no", "no"])
    assert {heading: len(lines) for heading, lines in library.texts("topics/things").items()} == {
        "things": CROWDED + 1
    }


def test_headings_of_a_document_with_prose_are_left_alone() -> None:
    library = Library({"topics/things": document("Some words.", "", "# Old", entry(101, "a"))})
    crowd(library)
    llm = consolidate(library)
    assert "layout" not in [call.task for call in llm.calls]
    assert list(library.texts("topics/things")) == ["Old", "Things"]
    assert "Some words." in library.documents["topics/things"].body


def test_more_than_one_call_can_hold_comes_in_parts() -> None:
    library = Library(markdown_length=400)
    seqs = [str(seq) for seq in crowd(library)]
    llm = consolidate(library, layout=lambda asked: laid({f"Part {ids(asked)[0]}": ids(asked)}))
    calls = [call.variables["doc"]["sections"] for call in llm.calls if call.task == "layout"]
    assert len(calls) > 1
    assert [seq for sections in calls for seq in ids(sections)][: len(seqs)] == seqs
    assert [part["heading"] for part in calls[1]] == ["Things", "Part 1"]


def test_a_summary_is_of_bounded_length() -> None:
    library = Library(summary_length=12)
    library.buffer("zucchini, ristretto, macchiato, gnocchi and latte are what Ana likes best of all")
    consolidate(library)
    assert 0 < tokens.count(library.documents["topics/things"].summary) <= 12


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
    assert calls == 3  # rewrite, plan, compare


def test_what_was_discarded_stays_so_where_the_plan_is_refused() -> None:
    library = Library()
    library.buffer(ROME, ROME, OSLO, "Plays chess")
    library.refuse = ["CONFLICT"]
    consolidate(library, rewrite=[rewritten({"Home": [2, 3], "Games": [4]})], compare=[outdated((2, 3))])
    assert [plan.op for plan in library.plans] == ["consolidate", "consolidate"]
    assert sorted(seq for seq, _ in library.lines("archive/")) == [1, 2]
    assert sorted(seq for seq, _ in library.lines("topics/")) == [3, 4]


@pytest.mark.parametrize("gone", [1, 2])
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


@pytest.mark.parametrize("task", ["rewrite", "plan", "compare", "layout"])
def test_a_dead_endpoint_leaves_the_buffer(task: str) -> None:
    library = Library()
    library.buffer(ROME, OSLO)
    crowd(library)
    with pytest.raises(ModelUnavailable):
        consolidate(library, **{task: [ModelUnavailable("no answer")]})
    assert library.plans == []


def test_without_maintenance_each_consolidation_is_a_document() -> None:
    library = Library(maintenance=False)
    library.buffer(ROME, OSLO, "Has a cat")
    llm = consolidate(library, rewrite=[rewritten({"Home": [1, 2], "Pets": [3]})], compare=[outdated((1, 2))])
    assert [call.task for call in llm.calls] == ["rewrite", "compare"]
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
