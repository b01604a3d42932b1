"""Questions that need several facts: the offline rules walk from one to the next and quote the last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_memory import view_of
from infinimem.tools import Toolbox

from infinimem.answer import answer
from infinimem.llm.offline import OfflineClient
from infinimem.llm.offline.chain import LINKS, Statement, stands_alone, walks
from infinimem.llm.offline.statements import first_phrase, last_phrase, lead, names, words
from infinimem.settings import ReaderSettings
from infinimem.store.view import View
from infinimem.strategies.readers.agentic import read_agentic

EMMA = [
    "The author of Emma is Jane Austen.",
    "Jane Austen is married to Paul Crane.",
    "Paul Crane was born in the city of Bath.",
    "The author of Ivanhoe is Walter Scott.",
    "Walter Scott is married to Ann Hill.",
    "Paul Crane plays the violin.",
]
SPOUSE = "What is the birthplace of the spouse of the author of Emma?"


def statements(texts: Sequence[str]) -> list[Statement]:
    return [Statement(at, text, ("", (at, ""))) for at, text in enumerate(texts)]


def best(question: str, texts: Sequence[str]) -> list[int]:
    """The statements of the best walk, by their places."""
    found = walks(question, statements(texts))
    return [link.key for link in found[0].links] if found else []


# ── statements ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("The author of Emma is Jane Austen.", "author", "Jane Austen"),
        ("wide receiver is associated with the sport of rugby union.", "wide receiver", "rugby union"),
        ("Ann was educated at University of Pisa.", "Ann", "University of Pisa"),
        ("Chad is a citizen of United States of America.", "Chad", "United States of America"),
        ("Ann's child is Philippe, Duke of Orléans.", "Ann's child", "Philippe, Duke of Orléans"),
    ],
)
def test_a_statement_begins_and_ends_in_a_phrase(text: str, first: str, last: str) -> None:
    cut = words(text)
    assert cut.surface(first_phrase(cut)) == first
    assert cut.surface(last_phrase(cut)) == last


def test_names_are_whole_and_a_lead_is_what_stands_before_the_last_phrase() -> None:
    cut = words("He saw the Duke of York in New York City.")
    assert next(cut.surface(span) for span in names(cut)).startswith("Duke of York")
    assert lead("Bob: The capital of Chad is Lima.") == "The capital of Chad is"
    assert lead("") == lead("Lima") == ""


# ── walks ───────────────────────────────────────────────────────────────────────────────────────


def test_a_walk_goes_from_fact_to_fact_until_the_question_is_used_up() -> None:
    assert best(SPOUSE, EMMA) == [0, 1, 2]
    assert best("Who is the spouse of the author of Ivanhoe?", EMMA) == [3, 4]
    assert best("Who wrote Emma?", EMMA)[:1] == [0]


def test_of_statements_in_the_same_words_the_newest_is_followed() -> None:
    newer = [*EMMA, "The author of Emma is Walter Scott."]
    assert best("Who is the spouse of the author of Emma?", newer) == [6, 4]
    dated = [Statement(s.key, s.text, (f"2024-01-{20 - s.key:02}", s.age[1])) for s in statements(newer)]
    assert [link.key for link in walks(SPOUSE, dated)[0].links] == [0, 1, 2], "time before number"


def test_a_fact_that_the_question_does_not_mention_may_lie_between() -> None:
    texts = ["Rovers is associated with the sport of hurling.", "hurling was created in the country of Mali."]
    assert best("Which country does Rovers come from?", texts) == [0, 1]


def test_a_part_of_a_longer_name_is_another_thing() -> None:
    texts = ["The author of Emma is York.", "New York was born in Bath.", "York was born in Leeds."]
    assert best("What is the birthplace of the author of Emma?", texts) == [0, 2]


def test_a_question_that_names_nothing_known_has_no_walk() -> None:
    assert walks("What is the spouse of the author of Utopia?", statements(EMMA)) == []
    assert walks("", statements(EMMA)) == walks("What?", []) == []


TEXT = st.text(max_size=60) | st.text(alphabet="ABab of.'-1é北\u0301", max_size=40)


@given(TEXT, st.lists(TEXT, max_size=8))
def test_any_words_give_walks_over_those_lines(question: str, texts: list[str]) -> None:
    for walk in walks(question, statements(texts)):
        assert 1 <= len(walk.links) <= LINKS
        assert len({link.key for link in walk.links}) == len(walk.links)
        assert walks(question, statements(texts))[0].links == walks(question, statements(texts))[0].links


# ── the agent and the answer ────────────────────────────────────────────────────────────────────


def ask(view: View, question: str) -> tuple[str, list[str], list[str]]:
    """The first line of the answer, all that it cites, and the searches that were made."""
    llm = OfflineClient()
    evidence = read_agentic(llm, Toolbox(lambda: view), view, question, ReaderSettings(), 4096)
    text, citations = answer(llm, question, evidence.items, "2024-01-01", 4096)
    calls = [call for row in evidence.trace for call in row.get("calls", ())]
    searches = [call for call in calls if call.startswith("search(")]
    return text.split("\n")[1], [citation.text for citation in citations], searches


def library(texts: Sequence[str]) -> View:
    """One document for each line, so that no search shows the lines beside it."""
    filler = {f"f{at}": f"# F{at}\n- Nobody plays tune {at} on a wet day.\n" for at in range(30)}
    return view_of(
        filler
        | {
            f"n{at:02}": f"# N{at}\n- <seq={at + 1},source=user,origin={at + 1}> {text}\n"
            for at, text in enumerate(texts)
        }
    )


def test_the_agent_follows_the_facts_and_the_answer_quotes_the_last_one() -> None:
    first, cited, searches = ask(library(EMMA), SPOUSE)
    assert first == "- Paul Crane was born in the city of Bath."
    assert cited == [EMMA[2], EMMA[1], EMMA[0]]
    assert 2 <= len(searches) <= 4
    assert any("Jane Austen" in search for search in searches[1:])


def test_the_agent_looks_for_a_newer_statement_of_what_it_follows() -> None:
    rivals = [f"The author of Emma is Writer{at}." for at in range(20)]
    texts = [*rivals, *EMMA[1:3], "The author of Emma is Jane Austen."]
    first, _, _ = ask(library(texts), SPOUSE)
    assert first == "- Paul Crane was born in the city of Bath."


def test_a_plain_question_is_answered_as_before() -> None:
    first, cited, _ = ask(library(EMMA), "Who is Walter Scott married to?")
    assert first == "- Walter Scott is married to Ann Hill." and cited[0] == EMMA[4]


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Ann moved to Bath.", True),
        ("Ann: I moved to Bath.", False),
        ("She moved to Bath.", False),
        ("Ann moved there.", False),
        ("The author of It is Stephen Crane.", True),
        ("Ardashir I was born in Bath.", True),
        ("Who moved to Bath?", False),
        ("Ann moved to Bath. Bob stayed.", False),
        ("# Bath", False),
        ("word " * 40, False),
    ],
)
def test_only_statements_that_stand_alone_are_followed(text: str, stands: bool) -> None:
    assert stands_alone(text) == stands


def test_several_facts_are_chained_among_all_of_them(shared_data: Path) -> None:
    sets: list[dict[str, Any]] = json.loads((shared_data / "factconsolidation_dev.json").read_text())
    [data] = [s for s in sets if s["metadata"]["source"] == "factconsolidation_mh_6k"]
    facts = [line.partition(". ")[2] for line in data["context"].split("\n") if line[:1].isdigit()]
    known = statements(facts)
    right = 0
    for question, golds in zip(data["questions"], data["answers"], strict=True):
        found = walks(question, known)
        right += bool(found) and any(gold.lower() in found[0].links[-1].text.lower() for gold in golds)
    assert right >= 92
