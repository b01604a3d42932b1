"""Questions that ask for several things: the rules that take them apart, what readers make of the parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_memory import LISBON, view_of
from infinimem.tools import Toolbox

from infinimem.errors import ModelUnavailable
from infinimem.llm import tasks
from infinimem.llm.offline import OfflineClient
from infinimem.llm.offline.decompose import parts
from infinimem.model import Retrieved
from infinimem.settings import ReaderSettings
from infinimem.strategies.readers.agentic import read_agentic
from infinimem.strategies.readers.hybrid import read_hybrid
from infinimem.strategies.readers.parts import PARTS, interleaved, parts_of
from infinimem.testing import ScriptedLLM

SPLIT = ReaderSettings(min_tokens=0, decompose=True)
BOTH = "What do Ana and Bea both play?"
VIEW = view_of(LISBON | {"CURRENT": ""})
DONE = {"done": True, "tool_calls": [], "relevant_snippets": [], "relevant_docs": []}

# ── the rules ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What do Jon and Gina both like?", ["What do Jon like?", "What do Gina like?"]),
        ("Did Ann, Bob or Cleo win?", ["Did Ann win?", "Did Bob win?", "Did Cleo win?"]),
        ("Who is older, Ann Hill or Bob?", ["Who is older, Ann Hill?", "Who is older, Bob?"]),
        ("Is Ann older than Bob?", ["Is Ann older?", "Is Bob older?"]),
        (
            "Which came first, the trip to Bath or the new job?",
            ["Which came first the trip to Bath", "Which came first the new job"],
        ),
        (
            "In which country is Ann's house, and who built it?",
            ["In which country is Ann's house", "who built it Ann"],
        ),
        (
            'When did Ann and Bob read "Emma and I"?',
            ['When did Ann read "Emma and I"?', 'When did Bob read "Emma and I"?'],
        ),
    ],
)
def test_a_question_is_taken_apart(question: str, expected: list[str]) -> None:
    assert parts(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "Where does Ann live?",
        'Who wrote "War and Peace"?',
        "What does Ann eat and drink?",
        "and",
        "",
        "Ann and Bob?",
    ],
)
def test_a_question_of_one_part_stays_whole(question: str) -> None:
    assert parts(question) == [question]


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from('Ann Bob and or than , who is ? " : the old'.split())).map(" ".join)
)
def test_any_question_has_a_part_and_not_too_many(question: str) -> None:
    found = parts(question, PARTS)
    assert 1 <= len(found) <= PARTS and len(set(found)) == len(found)
    reply = OfflineClient().complete(tasks.DECOMPOSE, {"question": question, "limit": str(PARTS)})
    assert reply.data == {"parts": found}


def test_a_pasted_book_stays_whole() -> None:
    book = "Hey Ana and Bob, " * 30_000
    assert parts(book) == [book]


# ── asking for them ─────────────────────────────────────────────────────────────────────────────


def test_the_model_is_asked_only_where_there_may_be_parts() -> None:
    llm = ScriptedLLM({"decompose": lambda variables: {"parts": ["a b", "c d"]}})
    assert parts_of(llm, "Where does Ana live?", SPLIT) == []
    assert parts_of(llm, BOTH, ReaderSettings()) == [], "it is off unless asked for"
    assert llm.calls == []
    assert parts_of(llm, BOTH, SPLIT) == ["a b", "c d"]
    assert parts_of(llm, "word " * 40, SPLIT) == ["a b", "c d"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"parts": []}, []),
        ({"parts": [BOTH]}, []),
        ({"parts": [" a\n b ", "a b", ""]}, []),
        ({"parts": [" a\n b ", "c"]}, ["a b", "c"]),
        ({"parts": [str(at) for at in range(20)]}, ["0", "1", "2", "3"]),
        ("no JSON", []),
    ],
)
def test_whatever_the_model_says_there_are_several_parts_or_none(reply: Any, expected: list[str]) -> None:
    assert parts_of(ScriptedLLM({"decompose": [reply]}), BOTH, SPLIT) == expected


def test_a_dead_endpoint_is_said() -> None:
    with pytest.raises(ModelUnavailable):
        parts_of(ScriptedLLM({"decompose": [ModelUnavailable("no answer")]}), BOTH, SPLIT)


# ── readers ─────────────────────────────────────────────────────────────────────────────────────


def piece(doc_id: str, line: int) -> Retrieved:
    block = read_hybrid(ScriptedLLM({"select": [{"ids": []}]}), VIEW, "Lisbon", ReaderSettings(), 4096).items[
        0
    ]
    return replace(block, doc_id=doc_id, start_line=line)


def test_rankings_are_joined_in_turns_each_place_once() -> None:
    a, b, c = piece("a", 1), piece("b", 1), piece("b", 9)
    assert interleaved([[a, b], [b, c]]) == [a, b, c]
    assert interleaved([[c], [b, a], []]) == [c, b, a]
    assert interleaved([]) == []


def test_the_agent_is_shown_what_was_found_for_each_part() -> None:
    llm = ScriptedLLM({"decompose": [{"parts": ["Lisbon move", "sister violin"]}], "step": [DONE]})
    evidence = read_agentic(llm, Toolbox(lambda: VIEW), VIEW, BOTH, SPLIT, 4096)
    assert evidence.trace[0]["parts"] == ["Lisbon move", "sister violin"]
    history = llm.calls[1].variables["history"]
    assert [done["arguments"]["query"] for done in history] == ["Lisbon move", "sister violin"]
    assert all(done["result"]["hits"] for done in history)


def test_the_offline_agent_still_searches_for_the_question_itself() -> None:
    evidence = read_agentic(OfflineClient(), Toolbox(lambda: VIEW), VIEW, BOTH, SPLIT, 4096)
    assert evidence.trace[0]["parts"] == ["What do Ana play?", "What do Bea play?"]
    assert evidence.trace[1]["calls"][0].startswith("search(query='Ana Bea play'")


def test_the_hybrid_reader_takes_the_best_of_each_part() -> None:
    view = view_of(
        {f"d{at}": f"# D{at}\nBea has a harp, harp and harp {at}.\n" for at in range(12)}
        | {"z": "# Z\nAna has an oboe.\n"}
    )
    replies = {
        "select": lambda variables: {"ids": []},
        "decompose": lambda variables: {"parts": ["harp", "oboe"]},
    }
    question = "Which harp or other thing has Bea?"
    settings = replace(SPLIT, search_limit=3)
    found = read_hybrid(ScriptedLLM(replies), view, question, settings, 4096)
    assert "z" in {item.doc_id for item in found.items} and found.trace[0]["parts"] == ["harp", "oboe"]
    without = read_hybrid(ScriptedLLM(replies), view, question, replace(settings, decompose=False), 4096)
    assert "z" not in {item.doc_id for item in without.items} and "parts" not in without.trace[0]
