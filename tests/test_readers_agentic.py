"""The agentic reader: an answer, or calls that show more; its rounds, its stops, whatever a model calls."""

from __future__ import annotations

from typing import Any

import pytest
from cases import each
from garbage import GarbageLLM
from in_memory import LISBON, view_of

from infinimem import tokens
from infinimem.answer import Answered, answer
from infinimem.errors import ModelUnavailable
from infinimem.llm import tasks
from infinimem.llm.base import Reply
from infinimem.store.view import View
from infinimem.strategies.readers.agentic import search
from infinimem.strategies.readers.collect import collect
from infinimem.testing import ScriptedLLM

QUIET = view_of(LISBON | {"CURRENT": ""})
"""The library with an empty buffer."""
QUESTION = "Where did Ana move?"

Call = tuple[str, dict[str, Any]]


def more(*calls: Call) -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"answer": "", "cites": [], "calls": made}


def said(text: str = "Lisbon", *cites: str) -> dict[str, Any]:
    return {"answer": text, "cites": list(cites), "calls": []}


def grep(pattern: str, **others: Any) -> Call:
    return "grep", {"pattern": pattern, "context_lines": 0, **others}


def ask(llm: Any, view: View = QUIET, question: str = QUESTION, budget: int = 4096) -> Answered:
    evidence = collect(llm, view, question, "agent", view.settings.reader, budget)
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


def test_of_a_long_line_a_call_shows_the_part_that_matches() -> None:
    talk = "We talked about the river and the weather until late. " * 400
    view = view_of(
        LISBON | {"CURRENT": "", "notes/call": f"# Call\n\n{talk}The pin of Ana's bike is 6631. {talk}\n"}
    )
    llm = ScriptedLLM({"answer": [more(grep("river")), more(grep("bike is")), said("6631", "notes/call:3")]})
    found = ask(llm, view)
    assert "6631" not in prompt(llm, 1) and "The pin of Ana's bike is 6631." in prompt(llm, 2)
    assert "6631" in found.citations[0].text


@each("reply", ["no JSON", Reply(None, "TRUNCATED"), said("  "), {"cites": []}])
def test_after_a_reply_of_no_use_the_model_is_asked_for_an_answer_alone(reply: Any) -> None:
    llm = ScriptedLLM({"answer": [reply, said("Lisbon", "13")]})
    found = ask(llm)
    assert found.text == "Lisbon" and len(llm.calls) == 2
    ((stop, failure),) = rounds(found)
    assert stop == "no calls"
    assert bool(failure) == (reply != said("  "))


def test_a_line_of_several_is_found_by_any_of_them_and_shown_whole() -> None:
    said_long = "- <seq=21,time=2023-08-01,source=user,speaker=Ana> it begins\n  the zeppelin\n  landed\n"
    call = grep("zeppelin|landed", scope="evidence")
    llm = ScriptedLLM({"answer": [more(call), said("x", "21")]})
    found = ask(llm, view_of(LISBON | {"evidence/2023-08-01-s03": said_long}, drawn={21}))
    (cited,) = found.citations
    assert (cited.doc_id, cited.seqs) == ("evidence/2023-08-01-s03", (21,))
    assert prompt(llm, 0).count("zeppelin") == 0 and "[21] 2023-08-01 Ana: it begins the zeppelin landed" in (
        tasks.shown(llm.calls[1].variables["evidence"])
    )


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


def test_a_dead_endpoint_is_said() -> None:
    with pytest.raises(ModelUnavailable):
        ask(ScriptedLLM({"answer": [ModelUnavailable("x")]}))
