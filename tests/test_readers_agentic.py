"""The agentic reader: an answer, or calls that show more; its rounds, its stops, whatever a model calls."""

from __future__ import annotations

from typing import Any

import pytest
from garbage import GarbageLLM
from in_memory import LISBON, view_of
from infinimem.tools import Toolbox

from infinimem import tokens
from infinimem.answer import NOTHING, Answered, answer
from infinimem.errors import ModelUnavailable
from infinimem.llm import tasks
from infinimem.llm.base import Reply
from infinimem.settings import ReaderSettings, Settings
from infinimem.store.sources import only
from infinimem.store.view import View
from infinimem.strategies.readers.agentic import ROUND, search
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


def test_a_question_that_the_first_lines_answer_costs_one_call() -> None:
    llm = ScriptedLLM({"answer": [said("Lisbon", "13")]})
    found = ask(llm)
    assert (found.text, [one.seqs for one in found.citations]) == ("Lisbon", [(13,)])
    assert [step.stage for step in found.evidence.trace] == ["entries", "evidence"]
    assert len(llm.calls) == 1


def test_the_rules_of_the_answer_are_those_of_the_other_readers() -> None:
    plain, searching = (
        tasks.render(task, dict.fromkeys(task.variables, "x")).system.splitlines()
        for task in (tasks.ANSWER, tasks.SEARCHING)
    )
    assert {line for line in plain if not line.startswith("{")} <= set(searching)
    assert not any("calls" in line for line in plain)


def test_the_calls_that_a_prompt_names_are_tools_with_these_arguments() -> None:
    system = tasks.render(tasks.SEARCHING, dict.fromkeys(tasks.SEARCHING.variables, "")).system
    for tool in Toolbox(lambda: QUIET):
        assert f"{tool.name}(" in system
        named = system.split(f"{tool.name}(", 1)[1].split(")", 1)[0].split(", ")
        assert set(named) <= set(tool.parameters["properties"])
        assert set(tool.parameters["required"]) <= set(named)


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


def test_a_model_is_told_documents_evidence_and_rounds() -> None:
    llm = ScriptedLLM({"answer": [more(grep("violin")), said()]})
    ask(llm)
    assert prompt(llm, 0).startswith("DOCUMENTS nearest to the question:\nCURRENT\nnotes/todo\ntopics/home\n")
    assert "\ntopics/home 7-12\n[13] 2023-05-08 Ana: I moved to Lisbon last month.\n" in prompt(llm, 0)
    assert "\n[14] Bot (AI): Lisbon has trams.\n" in prompt(llm, 0), "the day of the line above"
    assert "<seq=" not in prompt(llm, 0) and "summary:" not in prompt(llm, 0)
    assert [call.variables["rounds_left"] for call in llm.calls] == ["6", "5"]


def test_documents_are_told_with_their_titles() -> None:
    llm = ScriptedLLM({"answer": [said()]})
    ask(llm, view_of({"notes/a": "---\ntitle: Boats\n---\n# Ferry\nAna moved boats\n"}))
    assert prompt(llm, 0).startswith("DOCUMENTS nearest to the question:\nnotes/a Boats\n")


def test_a_round_that_brings_nothing_new_is_the_last() -> None:
    llm = ScriptedLLM({"answer": [more(grep("nowhere")), said("Lisbon", "13")]})
    found = ask(llm)
    assert rounds(found) == [("nothing new", "")]
    assert "calls" not in llm.calls[1].variables, "it can only answer now"
    assert found.text == "Lisbon"


def test_a_list_of_documents_is_news() -> None:
    llm = ScriptedLLM({"answer": [more(("list_docs", {})), more(grep("violin")), said()]})
    assert rounds(ask(llm)) == [("", ""), ("", "")]


def test_rounds_end_where_the_settings_say() -> None:
    words = iter(["violin", "plumber", "easel", "latte"])
    llm = ScriptedLLM({"answer": lambda told: more(grep(next(words))) if "calls" in told else said()})
    view = view_of(LISBON, Settings(reader=ReaderSettings(max_iterations=3)))
    ask(llm, view, "Lisbon?")
    assert ["calls" in call.variables for call in llm.calls] == [True, True, False]


@pytest.mark.parametrize("reply", ["no JSON", Reply(None, "TRUNCATED"), said("  "), {"cites": []}])
def test_after_a_reply_of_no_use_the_model_is_asked_for_an_answer_alone(reply: Any) -> None:
    llm = ScriptedLLM({"answer": [reply, said("Lisbon", "13")]})
    found = ask(llm)
    assert found.text == "Lisbon" and len(llm.calls) == 2
    ((stop, failure),) = rounds(found)
    assert stop == "no calls"
    assert bool(failure) == (reply != said("  "))


def test_a_model_that_never_answers_well_is_asked_twice_and_the_best_line_quoted() -> None:
    llm = ScriptedLLM({"answer": lambda _: "nonsense"})
    found = ask(llm)
    assert len(llm.calls) == 2
    assert found.text.endswith("Ana: I moved to Lisbon last month.")


def test_an_answer_with_calls_is_an_answer() -> None:
    llm = ScriptedLLM({"answer": [{**more(grep("violin")), "answer": "Lisbon"}]})
    assert ask(llm).text == "Lisbon" and len(llm.calls) == 1


def test_of_many_calls_in_a_round_eight_are_made() -> None:
    calls = [grep("violin|plumber"), *(grep(f"Lisbon {number}") for number in range(11))]
    llm = ScriptedLLM({"answer": [more(*calls), said()]})
    assert len(ask(llm).evidence.trace[1].asked) == 8
    assert len(llm.calls[1].variables["calls"]) == 8


@pytest.mark.parametrize(("budget", "most"), [(4096, ROUND), (60, 60)])
def test_no_round_adds_more_than_its_share_of_the_budget(budget: int, most: int) -> None:
    long = {
        f"notes/n{at}": "".join(f"{at} {line} word {'more ' * 20}\n" for line in range(90)) for at in (1, 2)
    }
    calls = more(*(("read_lines", {"doc_id": name}) for name in long))
    llm = ScriptedLLM({"answer": [calls, said()]})
    found = ask(llm, view_of(LISBON | long), budget=budget)
    items = found.evidence.items
    assert sum(tokens.count(item.text) for item in items) <= budget
    assert sum(tokens.count(item.text) for item in items if item.doc_id in long) <= most
    if budget > ROUND:
        assert {item.doc_id for item in items} >= set(long), "each call has its share"


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


def test_the_archive_is_read_when_the_model_asks_for_it() -> None:
    llm = ScriptedLLM({"answer": [more(grep("Porto", scope="archive")), said("Porto", "11")]})
    assert ask(llm).citations[0].seqs == (11,)


def test_headings_are_shown_and_cannot_be_cited() -> None:
    llm = ScriptedLLM({"answer": [more(("read_lines", {"doc_id": "home"})), said("x", "topics/home:5")]})
    found = ask(llm, question="trams?")
    assert "# Moves" in tasks.shown(llm.calls[1].variables["evidence"])
    assert all(one.seqs for one in found.citations)


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


def test_left_out_sources_are_neither_shown_to_the_model_nor_in_the_evidence() -> None:
    calls = more(grep("tram"), ("search", {"query": "Lisbon trams"}), ("read_lines", {"doc_id": "home"}))
    llm = ScriptedLLM({"answer": [calls, said()]})
    found = ask(llm, only(QUIET, ["user", "human"]))
    assert {13, 12} <= {seq for item in found.evidence.items for seq in item.seqs}
    assert "trams" not in str([call.variables["evidence"] for call in llm.calls])
    assert "Lisbon has" not in str([item.text for item in found.evidence.items])


def test_the_newest_of_the_buffer_is_shown_at_first() -> None:
    llm = ScriptedLLM({"answer": [said()]})
    found = ask(llm, view_of(LISBON), "zzz Lisbon?")
    assert found.evidence.items[-1].doc_id == "CURRENT"


def test_where_nothing_is_found_the_model_may_still_look() -> None:
    llm = ScriptedLLM({"answer": [more(grep("violin")), said("x", "notes/todo:3")]})
    assert ask(llm, question="zzz").citations[0].doc_id == "notes/todo"
    llm = ScriptedLLM({"answer": [more(grep("nowhere"))]})
    assert ask(llm, question="zzz").text == NOTHING and len(llm.calls) == 1


def test_the_same_replies_are_asked_for_with_the_same_bytes() -> None:
    def run() -> list[str]:
        llm = ScriptedLLM({"answer": [more(grep("violin"), ("search", {"query": "sister"})), said()]})
        ask(llm, view_of(LISBON))
        return [tasks.render(tasks.SEARCHING, call.variables).user for call in llm.calls]

    assert run() == run()


@pytest.mark.parametrize("seed", range(20))
def test_garbage_does_no_harm(seed: int) -> None:
    found = ask(GarbageLLM(seed), view_of(LISBON))
    assert all(citation.doc_id in QUIET for citation in found.citations)
    assert sum(tokens.count(item.text) for item in found.evidence.items) <= 4096


def test_a_dead_endpoint_is_said() -> None:
    with pytest.raises(ModelUnavailable):
        ask(ScriptedLLM({"answer": [ModelUnavailable("x")]}))
