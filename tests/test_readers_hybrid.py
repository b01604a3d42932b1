"""The readers of one call or none."""

from __future__ import annotations

from typing import Any

from cases import each
from garbage import GarbageLLM
from in_memory import LISBON, view_of

from infinimem import tokens
from infinimem.model import Evidence
from infinimem.settings import ReaderSettings
from infinimem.store.sources import only
from infinimem.store.view import View
from infinimem.strategies.readers.collect import collect
from infinimem.testing import ScriptedLLM

SETTINGS = ReaderSettings()
QUIET = view_of(LISBON | {"CURRENT": ""})
QUESTION = "Where did Ana move, and what of the violin?"


SILENT = ScriptedLLM({})
"""Is asked nothing."""


def read(
    reader: str,
    llm: Any,
    view: View,
    settings: ReaderSettings = SETTINGS,
    budget: int = 4096,
    question: str = QUESTION,
) -> Evidence:
    return collect(llm, view, question, reader, settings, budget)


def steps(evidence: Evidence) -> list[tuple[str, list[str], str]]:
    """Stage, what was found and why a reply could not be used; without the last, which is the evidence."""
    return [(step.stage, [one.id for one in step.found], step.failure) for step in evidence.trace[:-1]]


def places(evidence: Evidence) -> list[tuple[str, int, int]]:
    return [(item.doc_id, item.start_line, item.end_line) for item in evidence.items]


def test_hybrid_reads_selected_documents_whole_and_nothing_else() -> None:
    llm = ScriptedLLM({"select": [{"ids": ["topics/home", "made-up", "topics/home"]}]})
    evidence = read("hybrid", llm, QUIET)
    assert places(evidence) == [("topics/home", 5, 12)]
    assert steps(evidence) == [("select", ["topics/home"], "")]
    shown = llm.calls[0].variables
    assert shown["limit"] == "10"
    assert {"id": "topics/home", "summary": "where Ana lives"} in shown["docs"]
    assert not any(doc["id"].startswith(("archive/", "evidence/")) for doc in shown["docs"])


def test_hybrid_without_a_readable_selection_is_bm25() -> None:
    evidence = read("hybrid", ScriptedLLM({"select": ["what?"]}), QUIET)
    assert places(evidence) == places(read("bm25", SILENT, QUIET))
    assert steps(evidence)[0] == ("select", [], "JSON_PARSE_FAIL") and len(steps(evidence)[1][1]) == 4


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
