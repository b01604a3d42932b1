"""The readers of one call or none."""

from __future__ import annotations

import pytest
from garbage import GarbageLLM
from in_memory import LISBON, view_of

from infinimem import tokens
from infinimem.errors import ModelUnavailable
from infinimem.model import Evidence
from infinimem.settings import ReaderSettings
from infinimem.store.sources import only
from infinimem.strategies.readers.hybrid import read_bm25, read_hybrid, read_summary
from infinimem.testing import ScriptedLLM

SETTINGS = ReaderSettings()
QUIET = view_of(LISBON | {"CURRENT": ""})
QUESTION = "Where did Ana move, and what of the violin?"


def places(evidence: Evidence) -> list[tuple[str, int, int]]:
    return [(item.doc_id, item.start_line, item.end_line) for item in evidence.items]


def test_hybrid_reads_selected_documents_whole_and_blocks_of_the_others() -> None:
    llm = ScriptedLLM({"select": [{"ids": ["topics/home", "made-up", "topics/home"]}]})
    evidence = read_hybrid(llm, QUIET, QUESTION, SETTINGS, 4096)
    assert places(evidence) == [("topics/home", 5, 12), ("notes/todo", 1, 4)]
    assert evidence.trace == ({"selected": ["topics/home"], "blocks": 1},)
    shown = llm.calls[0].variables
    assert shown["limit"] == "10"
    assert {"id": "topics/home", "summary": "where Ana lives"} in shown["docs"]
    assert not any(doc["id"].startswith(("archive/", "evidence/")) for doc in shown["docs"])


def test_no_more_documents_are_chosen_than_the_settings_say() -> None:
    llm = ScriptedLLM({"select": [{"ids": ["topics/home", "notes/todo"]}]})
    evidence = read_hybrid(llm, QUIET, QUESTION, ReaderSettings(search_limit=1), 4096)
    assert evidence.trace[0]["selected"] == ["topics/home"]


def test_hybrid_without_a_readable_selection_is_bm25() -> None:
    evidence = read_hybrid(ScriptedLLM({"select": ["what?"]}), QUIET, QUESTION, SETTINGS, 4096)
    assert places(evidence) == places(read_bm25(QUIET, QUESTION, SETTINGS, 4096))
    assert evidence.trace == ({"selected": [], "failure": "JSON_PARSE_FAIL", "blocks": 3},)


def test_selected_documents_leave_room_for_the_others() -> None:
    large = "".join(f"# H{n}\n- <seq={n},source=user> Ana said number {n}\n" for n in range(1, 200))
    view = view_of({"topics/large": large, "topics/small": "- <seq=999,source=user> Ana moved to Lisbon\n"})
    llm = ScriptedLLM({"select": [{"ids": ["topics/large"]}]})
    evidence = read_hybrid(llm, view, "Where did Ana move?", SETTINGS, 300)
    assert sum(tokens.count(item.text) for item in evidence.items) <= 300
    assert evidence.items[-1].seqs == (999,)


def test_summary_reads_only_what_was_selected() -> None:
    llm = ScriptedLLM({"select": [{"ids": ["notes/todo"]}]})
    assert places(read_summary(llm, QUIET, QUESTION, SETTINGS, 4096)) == [("notes/todo", 1, 4)]
    llm = ScriptedLLM({"select": [{"ids": []}]})
    assert read_summary(llm, QUIET, QUESTION, SETTINGS, 4096).items == ()


def test_bm25_gives_the_best_blocks_and_the_newest_of_the_buffer() -> None:
    evidence = read_bm25(view_of(LISBON), QUESTION, SETTINGS, 4096)
    assert set(places(evidence)) == {("topics/home", 5, 8), ("notes/todo", 1, 4), ("CURRENT", 5, 6)} | {
        ("topics/home", 10, 12)
    }
    assert len(read_bm25(QUIET, QUESTION, ReaderSettings(search_limit=1), 4096).items) == 1


@pytest.mark.parametrize("budget", [0, 10, 50, 200])
def test_no_reader_passes_its_budget(budget: int) -> None:
    view = view_of(LISBON)
    found = [
        read_hybrid(GarbageLLM(1), view, QUESTION, SETTINGS, budget),
        read_summary(GarbageLLM(2), view, QUESTION, SETTINGS, budget),
        read_bm25(view, QUESTION, SETTINGS, budget),
    ]
    assert all(sum(tokens.count(item.text) for item in evidence.items) <= budget for evidence in found)


def test_sources_are_left_out_line_by_line() -> None:
    evidence = read_bm25(only(QUIET, ["AI"]), "Lisbon trams", SETTINGS, 4096)
    assert [item.seqs for item in evidence.items] == [(14,)]


def test_a_dead_endpoint_is_said() -> None:
    with pytest.raises(ModelUnavailable):
        read_hybrid(ScriptedLLM({"select": [ModelUnavailable("x")]}), QUIET, QUESTION, SETTINGS, 4096)
