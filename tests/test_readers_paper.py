"""The paper's readers: partitions beside what was selected; one model that searches, another that answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import each
from garbage import GarbageLLM
from in_memory import LISBON, view_of

from infinimem import Memory, open_memory, tokens
from infinimem.llm.base import Reply
from infinimem.settings import parse_settings
from infinimem.strategies.readers.pipeline import best_partitions, collect, digest
from infinimem.testing import ScriptedLLM

NOTES = {
    "garden": "# Beds\n\nThe beans stand by the wall.\n\n# Tools\n\nThe spade is in the shed.\n",
    "house": "# Heating\n\nThe boiler was serviced in May.\n\n# Network\n\nThe router is in the attic.\n",
    "trips": "# Alps\n\nNora climbed the Eiger in June.\n\n# Sea\n\nThe boat leaves from Bari.\n",
}
ASKED = "Which peak did Nora climb, and where is the router?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        (tmp_path / f"{name}.md").write_text(text)
    (tmp_path / "infinimem.toml").write_text('[reader]\nagent = "paper"\nmin_retrieval_tokens = 0\n')
    return tmp_path


def memory_of(folder: Path, **scripts: Any) -> tuple[Memory, ScriptedLLM]:
    llm = ScriptedLLM(scripts)
    return open_memory(folder, model=llm, trust=True), llm


def texts(memory: Memory, reader: str, budget: int | None = None) -> list[str]:
    return [item.text for item in memory.read(ASKED, reader, budget).items]


def sought(*calls: tuple[str, dict[str, Any]], snippets: Any = (), docs: Any = ()) -> dict[str, Any]:
    return {
        "done": not calls,
        "calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        "relevant_snippets": [
            {"doc_id": doc_id, "start_line": start, "end_line": end} for doc_id, start, end in snippets
        ],
        "relevant_docs": list(docs),
    }


def said(text: str = "The Eiger") -> dict[str, Any]:
    return {"answer": text, "cites": ["trips:3"]}


GREP = ("grep", {"pattern": "Eiger"})


def test_what_was_selected_is_not_all_that_hybrid_shows(folder: Path) -> None:
    selected = {"ids": ["trips"]}
    memory, _ = memory_of(folder, select=[selected, selected])
    both, alone = texts(memory, "hybrid"), texts(memory, "summary")
    assert alone == [NOTES["trips"].rstrip()]
    assert both[0] == alone[0] and "router" in both[1] and len(both) > len(alone)


def test_a_document_that_says_nothing_is_not_offered(folder: Path) -> None:
    (folder / "CURRENT.md").write_text("---\nid: CURRENT\n---\n")
    memory, llm = memory_of(folder, select=[{"ids": ["CURRENT"]}])
    assert "---" not in texts(memory, "summary")
    assert "CURRENT" not in {row["id"] for row in llm.calls[0].variables["docs"]}


def test_what_was_selected_takes_two_thirds_of_the_budget_at_most(folder: Path) -> None:
    (folder / "trips.md").write_text("# Alps\n\n" + "".join(f"- Nora at peak {n}.\n\n" for n in range(900)))
    memory, _ = memory_of(folder, select=[{"ids": ["trips"]}])
    evidence = memory.read(ASKED, "hybrid", 900).items
    shares = [
        sum(tokens.count(i.text) for i in evidence if (i.doc_id == "trips") is own) for own in (True, False)
    ]
    assert 0 < shares[0] <= 600 and shares[1] > 0
    assert any("router" in item.text for item in evidence)


def test_one_model_names_what_another_answers_from(folder: Path) -> None:
    memory, llm = memory_of(
        folder, seek=[sought(GREP), sought(snippets=[("trips", 3, 3)], docs=["house.md"])], answer=[said()]
    )
    answer = memory.ask(ASKED)
    assert answer.text == "The Eiger" and answer.citations[0].text == "Nora climbed the Eiger in June."
    first, second, last = llm.calls
    assert [call.task for call in llm.calls] == ["seek", "seek", "answer"]
    assert [doc["id"] for doc in first.variables["catalog"]] == sorted(NOTES)
    assert (first.variables["calls"], first.variables["rounds_left"]) == ([], "7")
    told = second.variables["calls"]
    assert told[1]["id"] == "trips:3-3" and "Eiger" in told[1]["text"]
    assert "catalog" not in last.variables, "the answerer does not search"
    shown = [line for doc in last.variables["evidence"] for line in doc["lines"]]
    assert {"heading": "Alps"} in shown, "lines are shown with the heading block around them"
    assert not any("Bari" in line.get("text", "") for line in shown)
    assert any("boiler" in line.get("text", "") for line in shown), "a document is shown whole"
    assert [step.stage for step in answer.trace] == ["round", "named", "evidence"]


@each("little", [{"fallback_topk": 1, "docs": ()}, {"fallback_topk": 1, "docs": ("garden",)}])
def test_where_little_is_named_the_best_partitions_are_shown_too(folder: Path, little: Any) -> None:
    (folder / "infinimem.toml").write_text('[reader]\nagent = "paper"\nfallback_topk = 1\n')
    memory, _ = memory_of(folder, seek=[sought(docs=little["docs"])])
    found = memory.read("Where is the router?", "agent")
    assert [item.doc_id for item in found.items] == [*little["docs"], "house"]
    assert found.trace[-2].stage == "partitions"


def test_a_search_that_finds_nothing_new_is_asked_once_more_and_rounds_have_an_end(folder: Path) -> None:
    memory, llm = memory_of(folder, seek=[sought(GREP), sought(GREP), sought(GREP)])
    memory.read(ASKED, "agent")
    assert [call.variables["rounds_left"] for call in llm.calls] == ["7", "6", "1"]
    starts = iter(range(9))
    memory, llm = memory_of(
        folder, seek=lambda _: sought(("list_docs", {"offset": 0}), ("grep", {"pattern": f"{next(starts)}"}))
    )
    memory.read("Which documents are there?", "agent")
    assert len(llm.calls) == 7


@each("reply", ["no JSON", Reply(None, "TRUNCATED"), sought(snippets=[("nope", 1, 2), ("trips", -9, 10**9)])])
def test_whatever_a_model_answers_something_is_read(folder: Path, reply: Any) -> None:
    memory, _ = memory_of(folder, seek=[reply, sought()])
    assert memory.read(ASKED, "agent").items or isinstance(reply, str | Reply)


@each("seed", range(10))
def test_garbage_does_no_harm(folder: Path, seed: int) -> None:
    memory = open_memory(folder, model=GarbageLLM(seed), trust=True)
    evidence = memory.read(ASKED, "agent", 60)
    assert sum(tokens.count(item.text) for item in evidence.items) <= 60


def test_partitions_are_ranked_by_words_and_left_out_by_document() -> None:
    view = view_of(NOTES)
    ranked = [(item.doc_id, item.start_line) for item in best_partitions(view, ASKED, 10)]
    assert set(ranked) == {("trips", 1), ("house", 5)}
    assert [item.doc_id for item in best_partitions(view, ASKED, 10, ["trips"])] == ["house"]
    assert best_partitions(view, "zzz", 10) == best_partitions(view_of({}), ASKED, 10) == []


def test_a_text_of_a_document_is_shown_in_its_place_while_it_is_current() -> None:
    topic = view_of(LISBON).document("topics/home")
    text = f"---\ndigest: {digest(topic)}\n---\n# Moving\n\n- Ana now lives in Lisbon. {{13}}\n"
    free = parse_settings(b'[infini]\nshows = "free"\n')
    view = view_of(LISBON | {"topics.free/home": text}, free)
    selected = ScriptedLLM({"select": lambda _: {"ids": ["topics/home"]}})
    (whole,) = collect(selected, view, "zzz", "summary", 4096).items[:1]
    (part,) = best_partitions(view, "Who lives in Lisbon?", 1)
    for item in (whole, part):
        assert (item.doc_id, item.text) == ("topics.free/home", "# Moving\n\n- Ana now lives in Lisbon.")
        assert item.origin == (4,), "the turn behind the line that the sentence names"
    stale = view_of(LISBON | {"topics.free/home": text.replace("digest: ", "digest: 0")}, free)
    assert collect(selected, stale, "zzz", "summary", 4096).items[0].doc_id == "topics/home"
    assert (
        best_partitions(view_of(LISBON | {"topics.free/home": text}), "Lisbon", 1)[0].doc_id == "topics/home"
    )
