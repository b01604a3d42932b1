"""The readers: of one call or none, the agentic one, and what is shown beside what was found."""

from __future__ import annotations

from typing import Any

from cases import each
from garbage import GarbageLLM
from in_memory import LISBON, view_of

from infinimem import tokens
from infinimem.answer import Answered, answer
from infinimem.grounding.sentences import asks
from infinimem.llm import tasks
from infinimem.llm.base import Reply
from infinimem.model import Evidence, Retrieved
from infinimem.store.spec import STANDING
from infinimem.store.view import View, only
from infinimem.strategies.infini.documents import may_change
from infinimem.strategies.infini.plan import open_documents
from infinimem.strategies.readers.pipeline import collect, search, standing
from infinimem.testing import ScriptedLLM

QUIET = view_of(LISBON | {"CURRENT": ""})
QUESTION = "Where did Ana move, and what of the violin?"


SILENT = ScriptedLLM({})
"""Is asked nothing."""


def read(
    reader: str,
    llm: Any,
    view: View,
    budget: int = 4096,
    question: str = QUESTION,
) -> Evidence:
    return collect(llm, view, question, reader, budget)


def steps(evidence: Evidence) -> list[tuple[str, list[str], str]]:
    """Stage, what was found and why a reply could not be used; without the last, which is the evidence."""
    return [(step.stage, [one.id for one in step.found], step.failure) for step in evidence.trace[:-1]]


def places(evidence: Evidence) -> list[tuple[str, int, int]]:
    return [(item.doc_id, item.start_line, item.end_line) for item in evidence.items]


def test_hybrid_reads_selected_documents_whole_and_the_best_partitions_of_all_others() -> None:
    llm = ScriptedLLM({"select": [{"ids": ["topics/home", "made-up", "topics/home"]}]})
    evidence = read("hybrid", llm, QUIET)
    assert places(evidence)[:2] == [("topics/home", 5, 12), ("notes/todo", 1, 4)]
    assert steps(evidence) == [
        ("select", ["topics/home"], ""),
        ("partitions", [one.id for one in evidence.trace[-1].found[1:]], ""),
    ]
    shown = llm.calls[0].variables
    assert shown["limit"] == "10"
    assert {"id": "topics/home", "summary": "where Ana lives"} in shown["docs"]
    assert not any(doc["id"].startswith(("archive/", "evidence/")) for doc in shown["docs"])


def test_hybrid_without_a_readable_selection_is_partitions_of_all_documents() -> None:
    evidence = read("hybrid", ScriptedLLM({"select": ["what?"]}), QUIET)
    assert steps(evidence)[0] == ("select", [], "JSON_PARSE_FAIL")
    assert {doc_id for doc_id, _, _ in places(evidence)} >= {"topics/home", "notes/todo"}


def test_summary_reads_only_what_was_selected() -> None:
    llm = ScriptedLLM({"select": [{"ids": ["notes/todo"]}]})
    assert places(read("summary", llm, QUIET)) == [("notes/todo", 1, 4)]
    llm = ScriptedLLM({"select": [{"ids": []}]})
    assert read("summary", llm, QUIET).items == ()


def test_bm25_gives_the_best_entries_and_the_newest_of_the_buffer() -> None:
    evidence = read("bm25", SILENT, view_of(LISBON))
    lines = {("topics/home", line, line) for line in (7, 8, 12)}
    assert set(places(evidence)) == lines | {("notes/todo", 1, 4), ("CURRENT", 6, 6)}
    assert steps(evidence)[0][0] == "entries"


@each("budget", [0, 10, 50, 200])
def test_no_reader_passes_its_budget(budget: int) -> None:
    view = view_of(LISBON)
    found = [
        read("hybrid", GarbageLLM(1), view, budget=budget),
        read("summary", GarbageLLM(2), view, budget=budget),
        read("bm25", SILENT, view, budget=budget),
    ]
    assert all(sum(tokens.count(item.text) for item in evidence.items) <= budget for evidence in found)


def test_sources_are_left_out_line_by_line() -> None:
    evidence = read("bm25", SILENT, only(QUIET, ["AI"]), question="Lisbon trams")
    assert [item.seqs for item in evidence.items] == [(14,)]


# ── the agentic reader ───────────────────────────────────────────────────────────────────────────────


ASKED = "Where did Ana move?"

Call = tuple[str, dict[str, Any]]


def more(*calls: Call) -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"answer": "", "cites": [], "calls": made}


def said(text: str = "Lisbon", *cites: str) -> dict[str, Any]:
    return {"answer": text, "cites": list(cites), "calls": []}


def grep(pattern: str, **others: Any) -> Call:
    return "grep", {"pattern": pattern, "context_lines": 0, **others}


def ask(llm: Any, view: View = QUIET, question: str = ASKED, budget: int = 4096) -> Answered:
    evidence = collect(llm, view, question, "agent", budget)
    return answer(llm, question, evidence, "2024-01-01", budget, search(view, question, "agent"))


def rounds(found: Answered) -> list[tuple[str, str]]:
    """Why each round was the last, and why its reply could not be used."""
    return [(step.stop, step.failure) for step in found.evidence.trace if step.stage == "round"]


def prompt(llm: ScriptedLLM, call: int) -> str:
    return tasks.render(tasks.SEARCHING, llm.calls[call].variables).user


def test_what_calls_show_comes_behind_the_evidence_line_by_line() -> None:
    llm = ScriptedLLM({"answer": [more(grep("violin"), grep("Lisbon")), said("a violin", "notes/todo:3")]})
    found = ask(llm, question="zzz Lisbon?")
    first, second = (call.variables for call in llm.calls)
    assert second["evidence"][: len(first["evidence"])] == first["evidence"]
    (added,) = second["evidence"][len(first["evidence"]) :]
    assert (added["doc_id"], added["span"]) == ("notes/todo", "3-3")
    assert [one.text for one in found.citations] == ["- buy a violin"]
    assert '"violin", "context_lines": 0}: 1 new lines\n' in prompt(llm, 1)
    assert '"Lisbon", "context_lines": 0}: 0 new lines\n' in prompt(llm, 1), "it was shown at first"
    assert found.evidence.trace[-1].found[-1].id == "notes/todo:3-3"


@each("reply", ["no JSON", Reply(None, "TRUNCATED"), said("  "), {"cites": []}])
def test_after_a_reply_of_no_use_the_model_is_asked_for_an_answer_alone(reply: Any) -> None:
    llm = ScriptedLLM({"answer": [reply, said("Lisbon", "13")]})
    found = ask(llm)
    assert found.text == "Lisbon" and len(llm.calls) == 2
    ((stop, failure),) = rounds(found)
    assert stop == "no calls"
    assert bool(failure) == (reply != said("  "))


def test_a_call_that_fails_is_told_and_costs_nothing_else() -> None:
    calls = more(("read_lines", {"doc_id": "nope"}), ("rm", {"rf": "/"}), grep("violin"), ("list_docs", {}))
    llm = ScriptedLLM({"answer": [calls, said()]})
    ask(llm)
    told = prompt(llm, 1).split("CALLS so far:\n")[1].splitlines()
    assert told[0].startswith('read_lines {"doc_id": "nope"}: ') and "nope" in told[0][31:]
    assert told[1].startswith('rm {"rf": "/"}: there is no tool')
    assert told[2].endswith(": 1 new lines")
    assert told[3:7] == [
        "list_docs {}",
        "  CURRENT (0 tokens)",
        "  notes/todo (12 tokens) Todo",
        told[6],
    ]


@each("seed", range(20))
def test_garbage_does_no_harm(seed: int) -> None:
    found = ask(GarbageLLM(seed), view_of(LISBON))
    assert all(citation.doc_id in QUIET for citation in found.citations)
    assert sum(tokens.count(item.text) for item in found.evidence.items) <= 4096


# ── what is shown beside what was found ──────────────────────────────────────────────────────────────


WISHES = LISBON | {
    STANDING: """# Instructions
- <seq=21,time=2023-05-08,source=user,origin=1> Always answer in metric units.
- <seq=22,time=2023-06-01,source=user,origin=2> From now on call me Bo.
# Preferences
- <seq=23,time=2023-05-08,source=user,origin=3> I prefer quiet hotels by the sea.
- <seq=24,time=2023-05-08,source=user,origin=4> I prefer short meetings.
"""
}
WISHED = view_of(WISHES)
HOTEL = "Which hotels would suit me?"


def seqs(items: list[Retrieved]) -> list[int]:
    return [seq for item in items for seq in item.seqs]


def test_instructions_are_known_whatever_is_asked_the_newest_first_and_preferences_by_relevance() -> None:
    assert seqs(standing(WISHED, HOTEL, 1024)) == [22, 21, 23]
    assert seqs(standing(WISHED, "How tall is the tower?", 1024)) == [22, 21]
    assert standing(view_of(LISBON), HOTEL, 1024) == []


def test_nothing_is_filed_there_that_was_not_asked_for_and_nothing_leaves() -> None:
    assert STANDING not in open_documents(WISHED)
    assert not may_change(STANDING, WISHED)


@each(
    ("question", "whole"),
    [
        ("In what order did I mention the trips?", True),
        ("Can you list them chronologically?", True),
        ("List the order in which I brought up the app.", True),
        ("What must I do in order to win?", False),
        ("Can you summarise the project?", True),
        ("How has my plan developed?", True),
        ("How is my progress coming along?", False),
        ("When did Ana move?", False),
    ],
)
def test_whether_a_question_asks_for_the_whole(question: str, whole: bool) -> None:
    assert asks("all", question) is whole


def test_a_question_on_the_past_and_one_on_ones_own_words() -> None:
    assert asks("past", "Where did Ana live before?") and asks("past", "Have I met Bo?")
    assert not asks("past", "Where does Ana live?")
    assert asks("my words", "the order in which I brought up the app")
    assert not asks("my words", "the order in which the app grew")
