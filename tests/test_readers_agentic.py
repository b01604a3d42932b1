"""The agentic reader: its rounds, its stops, and what it makes of whatever a model names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from garbage import GarbageLLM
from in_memory import LISBON, view_of

from infinimem import tokens
from infinimem.answer import answer
from infinimem.errors import ModelUnavailable
from infinimem.llm import tasks
from infinimem.llm.base import Reply
from infinimem.model import Evidence
from infinimem.settings import ReaderSettings
from infinimem.store.sources import only
from infinimem.store.view import View
from infinimem.strategies.readers.collect import collect
from infinimem.testing import ScriptedLLM

SETTINGS = ReaderSettings(min_tokens=0)
QUIET = view_of(LISBON | {"CURRENT": ""})
"""The library with an empty buffer."""


def step(
    *calls: tuple[str, dict[str, Any]],
    done: bool = False,
    snippets: tuple[tuple[str, int, int], ...] = (),
    docs: tuple[str, ...] = (),
) -> dict[str, Any]:
    return {
        "done": done,
        "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        "relevant_snippets": [{"doc_id": d, "start_line": a, "end_line": b} for d, a, b in snippets],
        "relevant_docs": list(docs),
    }


def search(query: str) -> tuple[str, dict[str, Any]]:
    return "search", {"query": query}


def read(llm: Any, view: View = QUIET, settings: ReaderSettings = SETTINGS, budget: int = 4096) -> Evidence:
    return collect(llm, view, "Where did Ana move?", "agent", settings, budget)


def stop(evidence: Evidence) -> str:
    """Why the search ended."""
    return [step.stop for step in evidence.trace if step.stage == "round"][-1]


def found(evidence: Evidence, stage: str) -> list[str]:
    """What a stage found."""
    return [one.id for step in evidence.trace if step.stage == stage for one in step.found]


def places(evidence: Evidence) -> list[tuple[str, int, int]]:
    return [(item.doc_id, item.start_line, item.end_line) for item in evidence.items]


def test_a_named_line_grows_to_its_heading_block() -> None:
    llm = ScriptedLLM({"step": [step(search("Lisbon")), step(done=True, snippets=(("topics/home", 7, 7),))]})
    evidence = read(llm)
    assert places(evidence) == [("topics/home", 5, 8)]
    assert evidence.items[0].seqs == (13, 14)
    assert [(step.stage, step.asked, step.stop) for step in evidence.trace] == [
        ("round", ("search(query='Lisbon')",), ""),
        ("round", (), "done"),
        ("named", (), ""),
        ("fallback", (), ""),
        ("evidence", (), ""),
    ]
    assert found(evidence, "round") == found(evidence, "named") == ["topics/home:5-8"]


def test_lines_named_backwards_are_turned_round() -> None:
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=(("topics/home", 12, 6),))]}))
    assert places(evidence) == [("topics/home", 5, 8), ("topics/home", 10, 12)]


def test_a_catalog_has_the_titles_that_documents_have() -> None:
    llm = ScriptedLLM({"step": [step(done=True)]})
    read(llm, view_of({"notes/a": "---\ntitle: Boats\nsummary: b\n---\n# Ferry\nboats\n"}))
    assert llm.calls[0].variables["catalog"] == [{"id": "notes/a", "title": "Boats", "summary": "b"}]


def test_the_model_is_told_catalog_tools_history_and_rounds() -> None:
    llm = ScriptedLLM({"step": [step(search("Lisbon"), ("grep", {"pattern": "Ana"})), step(done=True)]})
    read(llm)
    first, second = (call.variables for call in llm.calls)
    assert {row["id"] for row in first["catalog"]} == {"CURRENT", "notes/todo", "topics/home"}
    assert {"id": "topics/home", "summary": "where Ana lives"} in first["catalog"]
    assert [row["id"] for row in first["catalog"]] == ["CURRENT", "notes/todo", "topics/home"], "by id"
    assert (first["doc_count"], first["now"]) == ("3", "2023-07-01")
    assert [done["arguments"] for done in first["history"]] == [{"query": "Where did Ana move?", "limit": 5}]
    assert [tool["name"] for tool in first["tools"]][:2] == ["grep", "grep_doc"]
    assert (first["rounds_left"], second["rounds_left"]) == (6, 5)
    assert [done["name"] for done in second["history"]] == ["search", "search", "grep"]
    assert second["history"][0]["result"]["hits"][0]["doc_id"] == "topics/home"


def test_a_reply_that_cannot_be_read_costs_a_round() -> None:
    replies: list[Any] = ["no JSON", Reply(None, "TRUNCATED"), step(done=True, snippets=(("home", 10, 10),))]
    evidence = read(ScriptedLLM({"step": replies}))
    assert places(evidence) == [("topics/home", 10, 12)]
    assert [step.failure for step in evidence.trace[:2]] == ["JSON_PARSE_FAIL", "TRUNCATED"]


def test_a_model_that_never_answers_well_is_asked_seven_times_and_search_takes_over() -> None:
    llm = ScriptedLLM({"step": lambda variables: "nonsense"})
    evidence = read(llm)
    assert len(llm.calls) == 7
    assert stop(evidence) == "rounds"
    assert places(evidence)[0] == ("topics/home", 5, 8), "what the search for the question showed"


def test_exhausted_rounds_give_what_the_tools_matched() -> None:
    queries = iter(["violin", "sister"])
    llm = ScriptedLLM({"step": lambda variables: step(search(next(queries)))})
    evidence = read(llm, settings=replace(SETTINGS, max_iterations=2))
    assert stop(evidence) == "rounds"
    assert not found(evidence, "fallback")
    assert places(evidence)[0] == ("topics/home", 5, 8), "the best of the union comes first"
    waits = "evidence/2023-07-01-s02"  # no entry says yet what it says
    assert {item.doc_id for item in evidence.items} == {"topics/home", "notes/todo", waits}


def test_a_model_that_ends_without_naming_anything_is_believed() -> None:
    """What its tools showed is no evidence then; search finds some."""
    evidence = read(ScriptedLLM({"step": [step(search("violin")), step(done=True)]}))
    assert stop(evidence) == "done"
    assert not found(evidence, "named") and found(evidence, "fallback")


def test_of_many_calls_in_a_round_eight_are_made() -> None:
    calls = [search(f"Lisbon {number}") for number in range(12)]
    llm = ScriptedLLM({"step": [step(*calls), step(done=True)]})
    assert len(read(llm).trace[0].asked) == 8
    assert len(llm.calls[1].variables["history"]) == 1 + 8


def test_no_more_places_are_read_than_the_settings_say() -> None:
    named = (("topics/home", 12, 12), ("topics/home", 7, 7), ("notes/todo", 3, 3))
    reply = step(done=True, snippets=named)
    assert len(places(read(ScriptedLLM({"step": [reply]})))) == 3
    evidence = read(ScriptedLLM({"step": [reply]}), settings=replace(SETTINGS, search_limit=2))
    assert places(evidence) == [("topics/home", 10, 12), ("topics/home", 5, 8)]


def test_what_is_there_is_not_filled_up_with_itself() -> None:
    """The one block that may be added is not the best one, which the model named."""
    reply = step(done=True, snippets=(("topics/home", 7, 7),))
    evidence = read(
        ScriptedLLM({"step": [reply]}), settings=replace(SETTINGS, min_tokens=999, fallback_small=1)
    )
    assert places(evidence)[0] == ("topics/home", 5, 8)
    assert len(places(evidence)) == len(set(places(evidence))) == 2


def test_a_full_buffer_leaves_room_for_what_was_found() -> None:
    lines = "".join(f"- <seq={n},source=user> Ana said {'much ' * 10}{n}\n" for n in range(100, 130))
    view = view_of(LISBON | {"CURRENT": lines})
    reply = step(done=True, snippets=(("topics/home", 7, 7),))
    evidence = read(ScriptedLLM({"step": [reply]}), view, budget=160)
    assert places(evidence)[0] == ("topics/home", 5, 8)
    assert [item.seqs for item in evidence.items[1:3]] == [(129,), (128,)], "the newest of the buffer"
    assert sum(tokens.count(item.text) for item in evidence.items) <= 160


def test_two_rounds_with_nothing_new_end_the_search() -> None:
    llm = ScriptedLLM({"step": lambda variables: step(search("Lisbon"))})
    evidence = read(llm)
    assert len(llm.calls) == 2, "both find what the search for the question found"
    assert stop(evidence) == "nothing new"


def test_no_calls_and_not_done_ends_too() -> None:
    evidence = read(ScriptedLLM({"step": [step(snippets=(("topics/home", 12, 12),))]}))
    assert stop(evidence) == "no calls"
    assert places(evidence) == [("topics/home", 10, 12)]


def test_enough_named_evidence_ends_the_search() -> None:
    llm = ScriptedLLM({"step": lambda variables: step(search("x"), snippets=(("topics/home", 7, 7),))})
    evidence = read(llm, budget=20)
    assert len(llm.calls) == 1
    assert stop(evidence) == "budget"


def test_whole_documents_come_as_one_piece() -> None:
    evidence = read(ScriptedLLM({"step": [step(done=True, docs=("topics/home", "topics/no-such"))]}))
    assert places(evidence) == [("topics/home", 5, 12)]


def test_a_document_too_large_for_the_budget_gives_its_best_blocks() -> None:
    evidence = read(ScriptedLLM({"step": [step(done=True, docs=("topics/home",))]}), budget=90)
    assert places(evidence) == [("topics/home", 5, 8)]


@pytest.mark.parametrize(
    "snippets",
    [
        (("nope", 1, 2),),
        (("topics/home", 10**9, -5),),
        (("topics/home", 2, 3),),
        (("", 0, 0),),
        (("\x00/..", 1, 1),),
    ],
)
def test_places_that_a_model_made_up_do_no_harm(snippets: tuple[tuple[str, int, int], ...]) -> None:
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=snippets)]}))
    assert evidence.items, "search finds what the model did not"
    assert all(1 <= item.start_line <= item.end_line <= 12 for item in evidence.items)


def test_a_place_outside_every_block_comes_with_a_margin() -> None:
    text = "# A\nLisbon\n" + "\n" * 30 + "# B\nPorto\n"
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=(("n", 10, 10),))]}), view_of({"n": text}))
    assert places(evidence) == [("n", 1, 20)]


def test_a_place_in_a_header_stands_for_the_best_block() -> None:
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=(("topics/home", 3, 3),))]}))
    assert places(evidence) == [("topics/home", 5, 8)]


def test_the_fallback_fills_up_what_is_small() -> None:
    done = [step(done=True, snippets=(("notes/todo", 1, 1),))]
    evidence = read(ScriptedLLM({"step": done}), settings=ReaderSettings(fallback_small=1))
    assert places(evidence) == [("notes/todo", 1, 4), ("topics/home", 5, 8)]
    assert (found(evidence, "named"), found(evidence, "fallback")) == (
        ["notes/todo:1-4"],
        ["topics/home:5-8"],
    )


def test_recent_entries_of_the_buffer_are_added_once() -> None:
    view = view_of(LISBON)
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=(("topics/home", 7, 7),))]}), view)
    assert places(evidence) == [("topics/home", 5, 8), ("CURRENT", 6, 6)]
    evidence = read(ScriptedLLM({"step": [step(done=True, docs=("CURRENT",))]}), view)
    assert [item.doc_id for item in evidence.items] == ["CURRENT"]


def test_the_buffer_keeps_its_room_when_there_is_more_than_the_budget() -> None:
    view = view_of(LISBON | {"notes/long": "Lisbon again.\n" * 20})
    llm = ScriptedLLM({"step": [step(done=True, docs=("topics/home", "notes/long"))]})
    filled = sum(tokens.count(view.document(doc_id).body) for doc_id in ("topics/home", "notes/long"))
    assert read(llm, view, budget=filled + 2).items[-1].doc_id == "CURRENT"


def test_the_archive_is_read_when_the_model_asks_for_it() -> None:
    call = ("grep", {"pattern": "Porto", "scope": "archive"})
    llm = ScriptedLLM({"step": [step(call), step(done=True, snippets=(("archive/home", 5, 5),))]})
    assert read(llm).items[0].seqs == (11,)


def test_a_turn_comes_with_those_beside_it_and_not_with_its_session() -> None:
    named = (("evidence/2023-05-08-s01", 6, 6), ("evidence/2023-05-08-s01", 8, 8))
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=named[:1])]}))
    assert evidence.items[0].seqs == (2, 3, 4)
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=named[1:])]}))
    assert evidence.items[0].seqs == (4, 5)
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=named)]}))
    assert [item.seqs for item in evidence.items] == [(2, 3, 4), (4, 5)]
    wider = (("evidence/2023-05-08-s01", 6, 6), ("evidence/2023-05-08-s01", 6, 8))
    evidence = read(ScriptedLLM({"step": [step(done=True, snippets=wider)]}))
    assert {seq for item in evidence.items for seq in item.seqs} == {2, 3, 4, 5}


def test_a_call_that_fails_is_told_and_costs_nothing_else() -> None:
    calls = step(("read_lines", {"doc_id": "nope"}), ("rm", {"rf": "/"}), ("grep", {"pattern": 7}))
    llm = ScriptedLLM({"step": [calls, step(done=True)]})
    read(llm)
    results = [done["result"] for done in llm.calls[1].variables["history"][1:]]
    assert "error" in results[0]
    assert "there is no tool" in results[1]["error"]
    assert "matches" in results[2]


def test_left_out_sources_are_neither_shown_to_the_model_nor_in_the_evidence() -> None:
    calls = step(search("Lisbon trams"), ("grep", {"pattern": "tram"}), ("read_lines", {"doc_id": "home"}))
    llm = ScriptedLLM({"step": [calls, step(done=True, docs=("topics/home",))]})
    evidence = read(llm, only(QUIET, ["user", "human"]))
    assert {seq for item in evidence.items for seq in item.seqs} == {12, 13}
    assert "tram" not in str([item.text for item in evidence.items])
    shown = [done["result"] for done in llm.calls[1].variables["history"]]
    assert "tram" not in str([result.get(key) for result in shown for key in ("hits", "matches", "lines")])


def test_old_results_leave_the_history_when_it_grows_too_long() -> None:
    view = view_of({f"n{at}": ("word " * 90 + "\n") * 200 for at in range(9)})
    at = iter(range(9))

    def next_step(variables: Mapping[str, Any]) -> dict[str, Any]:
        return step(("read_lines", {"doc_id": f"n{next(at)}"}))

    llm = ScriptedLLM({"step": next_step})
    read(llm, view)
    last = llm.calls[-1].variables["history"]
    assert (last[1]["result"], last[1]["told"][1:]) == ({"left_out": True}, ["left out"])
    assert "lines" in last[-1]["result"]
    assert len(str([done["told"] for done in last])) < 60_000


def test_a_model_is_shown_each_line_once_and_how_each_tool_is_called() -> None:
    llm = ScriptedLLM({"step": [step(search("Lisbon"), ("read_lines", {"doc_id": "home"})), step(done=True)]})
    read(llm)
    prompt = tasks.render(tasks.STEP, llm.calls[1].variables).user
    assert prompt.count("I moved to Lisbon last month.") == 1
    assert "\n  7 2023-05-08 Ana: I moved to Lisbon last month." in prompt.replace("    7", "  7")
    assert "<seq=" not in prompt and "summary:" not in prompt
    assert "\ntopics/home: where Ana lives\n" in prompt
    assert "\nread_lines(doc_id, start=1, end): Read lines" in prompt


def test_the_catalog_holds_whole_summaries_of_the_nearest_documents_by_id() -> None:
    files = {f"topics/t{at:02}": f"---\nsummary: {'tea and more ' * 30}{at}\n---\nTea.\n" for at in range(40)}
    llm = ScriptedLLM({"step": [step(done=True)]})
    read(llm, view_of(files | {"topics/zz": "---\nsummary: where Ana moved\n---\nAna moved.\n"}))
    catalog = llm.calls[0].variables["catalog"]
    assert catalog[-1] == {"id": "topics/zz", "summary": "where Ana moved"}
    assert [row["id"] for row in catalog] == sorted(row["id"] for row in catalog)
    assert 5 < len(catalog) < 20 and catalog[0]["summary"].endswith("more 0")
    assert sum(tokens.count(row["summary"]) for row in catalog) <= 1000


def test_the_same_data_and_replies_ask_the_same_bytes() -> None:
    def prompts() -> list[tasks.Prompt]:
        replies = [step(search("Lisbon"), ("grep", {"pattern": "sister"})), step(done=True)]
        llm = ScriptedLLM({"step": replies, "answer": [{"answer": "Lisbon", "cites": []}]})
        items = read(llm, view_of(LISBON)).items
        answer(llm, "Where did Ana move?", items, "2023-07-01", 4096)
        known = {task.name: task for task in tasks.ALL}
        return [tasks.render(known[call.task], call.variables) for call in llm.calls]

    assert len(prompts()) == 3 and prompts() == prompts()


@pytest.mark.parametrize("seed", range(20))
def test_garbage_of_the_right_shape_still_gives_evidence_within_the_budget(seed: int) -> None:
    evidence = read(GarbageLLM(seed), view_of(LISBON), budget=200)
    assert evidence.items
    assert sum(tokens.count(item.text) for item in evidence.items) <= 200


def test_a_dead_endpoint_is_said() -> None:
    with pytest.raises(ModelUnavailable):
        read(ScriptedLLM({"step": [ModelUnavailable("no answer")]}))


def test_an_empty_library() -> None:
    evidence = read(ScriptedLLM({"step": [step(search("x")), step(done=True)]}), view_of({}))
    assert evidence.items == ()
