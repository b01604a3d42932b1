"""The offline rules for writing: extraction, topics, duplicates, filing, layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import by_rules

from infinimem import tokens
from infinimem.grounding.claims import find_duplicates
from infinimem.llm.offline.extract import split
from infinimem.llm.offline.lexicon import is_filler
from infinimem.llm.offline.salience import summary
from infinimem.llm.tasks import SELECT
from infinimem.model import Entry
from infinimem.plugins import load
from infinimem.strategies.infini.tasks import COMPARE, EXTRACT, LAYOUT, MERGE, PLAN, REWRITE


def turn(number: int, text: str, speaker: str | None = None, role: str = "user") -> dict[str, Any]:
    return {"id": str(number), "role": role, "speaker": speaker, "time": None, "text": text}


def extract(*turns: Mapping[str, Any], context: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, Any]:
    return by_rules(EXTRACT, turns=list(turns), context=list(context), topics=[], problems=[])


def test_an_assistants_echo_is_no_fact() -> None:
    echoes = ("Noted: you are allergic to nuts.", "Got it, Lisbon it is.", "I've added them: nuts, cashews.")
    for text in echoes:
        assert extract(turn(1, text, role="assistant"))["entries"] == []
        assert extract(turn(1, text))["entries"]  # a person's words are kept
    assert extract(turn(1, "A vaccination takes 21 days.", role="assistant"))["entries"]


def facts(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": str(n), "time": None, "source": "user", "text": text, **more}
        for n, text in enumerate(texts, 1)
    ]


def said(seq: int, text: str, **more: Any) -> Entry:
    return Entry(seq, text, text, **more)


def named(data: dict[str, Any]) -> set[str]:
    """The turns that entries come from."""
    return {name for entry in data["entries"] for name in entry["from"]}


# ── extraction ──────────────────────────────────────────────────────────────────────────────────


def test_a_short_message_is_an_entry_with_white_space_folded() -> None:
    data = extract(turn(7, "  I moved\nto  Lisbon. "))
    assert data == {
        "entries": [{"text": "I moved to Lisbon.", "from": ["7"], "when": None, "refers": None}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "Hey Mel! Good to see you! How have you been?",
        "Thanks, Melanie! Your kind words mean a lot.",
        "Hey John! Long time no see! What's up?",
        "Sure, see ya. Bye!",
        "Ok, got it. Thank you so much!",
        "Thanks so much, Mel 😊",
        "👍",
        "...",
        "",
    ],
)
def test_of_fillers_nothing_is_kept(text: str) -> None:
    data = extract(turn(1, text, "Caroline"), context=[turn(0, "x", "Melanie"), turn(0, "x", "John")])
    assert data == {"entries": []}


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, Bob!",
        "Hi, I'm vegan.",
        "Good morning from Lisbon!",
        "Ok, 14:30.",
        "See you on Friday.",
        "No, thank you, I'm allergic.",
        "Thanks for the book!",
        "谢谢，我住在北京",
        "How are you, and how is the baby?",
    ],
)
def test_a_content_word_a_number_or_a_name_keeps_a_message(text: str) -> None:
    assert not is_filler(text, ["Melanie"])


def test_a_yes_that_answers_a_question_is_kept() -> None:
    assert named(extract(turn(1, "Are you allergic to nuts?"), turn(2, "Yes!"))) == {"1", "2"}
    assert named(extract(turn(2, "Yes!"), context=[turn(1, "Are you vegan?")])) == {"2"}
    assert named(extract(turn(2, "Yes!"), context=[turn(1, "I am vegan.")])) == set()


def test_a_list_gives_an_entry_an_item_and_paragraphs_an_entry_each() -> None:
    text = "Here is the list:\n- oat milk\n- rye bread,\n  the dark one\n- eggs\n\n"
    text += "My dentist is Dr. Rossi. She is in Via Roma.\n\n1) Call her"
    assert list(split(text)) == [
        "oat milk",
        "rye bread, the dark one",
        "eggs",
        "My dentist is Dr. Rossi. She is in Via Roma.",
        "1) Call her",
    ]


def test_a_lead_in_that_says_something_is_kept() -> None:
    assert (
        next(split("Ingredients of lasagna:\n- flour\n- eggs\n- milk\n- cheese")) == "Ingredients of lasagna:"
    )


def test_long_prose_is_cut_between_sentences() -> None:
    text = " ".join(f"Sentence number {n} is about Dr. Smith and his {n}.5 dogs." for n in range(40))
    pieces = list(split(text))
    assert " ".join(pieces) == text
    assert all(piece.startswith("Sentence") and piece.endswith("dogs.") for piece in pieces)
    assert 5 <= len(pieces) <= 12


def test_an_abbreviation_ends_no_sentence() -> None:
    first = "word " * 58 + "Dr. Smith came home today."
    assert list(split(f"{first} He slept.")) == [first, "He slept."]


def test_four_hundred_numbered_facts_give_four_hundred_entries() -> None:
    text = "Here is a list of facts:\n" + "\n".join(
        f"{n}. The capital of C{n} is the city of T{n}." for n in range(400)
    )
    data = extract(turn(1, text))
    assert [entry["text"] for entry in data["entries"]] == text.split("\n")[1:]


@given(st.text() | st.text(alphabet="ab.!?\n -*1)。\u2028\t", max_size=400))
def test_entries_are_pieces_of_the_message_in_its_order(text: str) -> None:
    folded = " ".join(text.split())
    at = 0
    for piece in split(text):
        assert piece and "\n" not in piece
        at = folded.index(piece, at) + len(piece)


@pytest.mark.parametrize("unit", ["a", "word ", "Sentence. ", "- item\n", "行", "\n"])
def test_a_megabyte_is_cut_into_entries(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    pieces = list(split(text))
    assert max(map(len, pieces), default=0) <= 1000
    assert sum(map(len, pieces)) >= 0.5 * len(text.replace("\n", "").replace("- ", ""))


def test_real_conversations_lose_only_greetings(shared_data: Path) -> None:
    conversation = json.loads((shared_data / "locomo_dev.json").read_text())[0]["conversation"]
    turns = [
        turn(number, said["text"], said["speaker"])
        for number, said in enumerate(
            said for key, session in conversation.items() if isinstance(session, list) for said in session
        )
    ]
    data = extract(*turns)
    assert len(turns) > 400
    assert len(named(data)) > len(turns) - 10


# ── topics and duplicates ───────────────────────────────────────────────────────────────────────

POTTERY = [
    "I signed up for a pottery class yesterday.",
    "The pottery class has a kiln and six wheels.",
    "My first bowl came out of the kiln today.",
    "The teacher of the pottery class glazed my bowl.",
    "I put the bowl on the shelf above the wheels.",
    "Next pottery class we glaze a teapot.",
]
DENTIST = [
    "The dentist found a cavity in a molar.",
    "The dentist fills the cavity next week.",
    "My insurance pays half of the dentist's bill.",
    "The molar hurts when I drink something cold.",
    "The insurance wants the bill of the dentist by mail.",
    "The dentist said that the molar needs a crown.",
]


def rewrite(items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return by_rules(REWRITE, facts=list(items), docs=[], problems=[])


def test_what_was_said_in_a_row_about_one_thing_becomes_a_topic_with_its_name() -> None:
    data = rewrite(facts(*POTTERY, *DENTIST))
    assert [topic["fact_ids"] for topic in data["topics"]] == [
        [str(n) for n in range(1, 7)],
        [str(n) for n in range(7, 13)],
    ]
    first, second = (topic["title"].lower() for topic in data["topics"])
    assert "pottery class" in first and "dentist" in second


def test_every_fact_is_in_one_topic_and_titles_differ(shared_data: Path) -> None:
    conversation = json.loads((shared_data / "locomo_dev.json").read_text())[1]["conversation"]
    said = [t["text"] for key, session in conversation.items() if isinstance(session, list) for t in session][
        :150
    ]
    data = rewrite(facts(*said))
    ids = [i for topic in data["topics"] for i in topic["fact_ids"]]
    assert sorted(ids, key=int) == [str(n) for n in range(1, 151)]
    titles = [topic["title"] for topic in data["topics"]]
    assert len(set(titles)) == len(titles) >= 5
    assert not {"Jon", "Gina"} & set(titles)
    assert all(len(topic["fact_ids"]) <= 25 for topic in data["topics"])


def test_people_who_are_called_by_name_title_no_topic() -> None:
    said = [f"{text} Thanks, Caroline!" for text in POTTERY] + [f"Wow, Caroline! {text}" for text in DENTIST]
    assert not any("caroline" in topic["title"].lower() for topic in rewrite(facts(*said))["topics"])


def test_statements_that_follow_no_thread_are_grouped_by_what_they_share() -> None:
    said = [
        "I work as a nurse at the hospital.",
        "My dog Rex is a beagle.",
        "I drink oat-milk latte.",
        "My shift at the hospital is long.",
        "Rex saw the vet.",
        "The latte is from the bar.",
        "My sister plays chess.",
    ]
    groups = [topic["fact_ids"] for topic in rewrite(facts(*said))["topics"]]
    assert groups == [["1", "4"], ["2", "5"], ["3", "6"], ["7"]]


def test_a_long_list_is_grouped_by_the_terms_that_most_share() -> None:
    said = [f"{n}. X{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10]} is a citizen of Chad." for n in range(30)]
    said += [f"{n}. The author of Y{'abcdefghij'[n % 10]}v is Zoe." for n in range(30, 60)]
    said = said[::2] + said[1::2]
    topics = rewrite(facts(*said))["topics"]
    assert all(5 <= len(topic["fact_ids"]) <= 25 for topic in topics)
    for topic in topics:
        assert len({"citizen" in said[int(i) - 1] for i in topic["fact_ids"]}) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Drinks oat-milk latte", "Drinks oat-milk latte.", True),
        ("I really like the old harbour of Porto.", "I really like the old harbour of Porto!", True),
        ("Anna beat Bob at chess", "Bob beat Anna at chess", False),
        ("Drinks 2 cups of tea a day", "Drinks 3 cups of tea a day", False),
        ("She likes tea", "She does not like tea", False),
        ("👍", "🎉", False),
        ("🎉", "🎉", False),  # what has no English verb may be an event
        ("The capital of Chad is Paris", "The capital of Chad is Lima", False),
        (
            "Ann keeps nine red bees in a small wooden shed",
            "Ann keeps nine red bees in small wooden shed",
            True,
        ),
    ],
)
def test_only_what_says_the_same_is_a_duplicate(one: str, other: str, same: bool) -> None:
    assert find_duplicates([said(1, one), said(2, other)]) == ([(1, 2)] if same else [])


def test_a_users_word_is_kept_over_the_assistants_and_a_later_one_over_an_earlier() -> None:
    lines = [said(1, "Likes tea"), said(2, "Likes tea"), said(3, "Likes tea", source="AI")]
    assert find_duplicates(lines) == [(3, 2), (1, 2)]


def test_the_same_words_on_another_day_or_of_another_person_are_no_duplicate() -> None:
    days = ("2023-05-01", "2023-05-02")
    assert find_duplicates(said(n, "I ran five miles today", time=day) for n, day in enumerate(days)) == []
    people = ("Ann", "Bob")
    assert (
        find_duplicates(said(n, "I love tea", fields={"speaker": who}) for n, who in enumerate(people)) == []
    )


# ── filing and layout ───────────────────────────────────────────────────────────────────────────

DOCS = [
    {"id": "topics/pottery-class", "summary": "pottery, kiln; The pottery class has a kiln."},
    {"id": "topics/garden", "summary": "roses, tomatoes; Roses need water in June."},
]


def plan(
    topics: Sequence[Mapping[str, Any]], docs: Sequence[Mapping[str, Any]] = DOCS, **more: Any
) -> list[Any]:
    given = {"planned_titles": [], "markdown_length": 5000, "problems": [], **more}
    return list(by_rules(PLAN, topics=list(topics), docs=list(docs), **given)["assign"])


def test_a_topic_goes_to_the_document_about_it_or_founds_one() -> None:
    dentist = [{**fact, "id": f"d{fact['id']}"} for fact in facts(*DENTIST)]
    topics = [{"title": "Pottery class", "facts": facts(*POTTERY)}, {"title": "Dentist", "facts": dentist}]
    assert plan(topics) == [
        {"doc_id": "topics/pottery-class", "new_title": None, "fact_ids": [str(n) for n in range(1, 7)]},
        {"doc_id": None, "new_title": "Dentist", "fact_ids": [f"d{n}" for n in range(1, 7)]},
    ]
    assert plan([]) == []


def test_planned_titles_are_taken_up_word_for_word() -> None:
    topics = [{"title": "bills of dentists", "facts": facts(*DENTIST)}]
    [assigned] = plan(topics, [], planned_titles=["Pottery", "Dentists of bills"])
    assert assigned["new_title"] == "Dentists of bills"


def test_a_topic_too_long_for_a_document_is_cut() -> None:
    topics = [{"title": "Life", "facts": facts(*POTTERY, *DENTIST)}]
    assigned = plan(topics, [], markdown_length=250)
    assert [i for part in assigned for i in part["fact_ids"]] == [str(n) for n in range(1, 13)]
    assert len({part["new_title"] for part in assigned}) == len(assigned) == 2


def layout(sections: Sequence[Mapping[str, Any]], incoming: Sequence[Mapping[str, Any]]) -> Any:
    doc = {"id": "topics/pottery", "title": "Pottery", "sections": list(sections)}
    by_rules(LAYOUT, doc=doc, problems=[])
    return load(LAYOUT.rule)({"doc": doc, "incoming": list(incoming), "summary_length": 100})["layout"]


def test_sections_stay_and_what_comes_in_joins_its_heading_or_makes_one() -> None:
    old = {"heading": "Pottery class and kiln", "facts": facts(*POTTERY)[:2]}
    new = [
        {"title": "Pottery class", "facts": facts(*POTTERY)[2:]},
        {"title": "Dentist", "facts": [{**fact, "id": f"d{fact['id']}"} for fact in facts(*DENTIST)]},
    ]
    assert [(row["heading"], len(row["fact_ids"])) for row in layout([old], new)] == [
        ("Pottery class and kiln", 6),
        ("Dentist", 6),
    ]


def test_no_contradiction_is_claimed() -> None:
    groups = [{"heading": "1", "facts": facts("Lives in Rome", "Lives in Oslo")}]
    assert by_rules(COMPARE, groups=groups, problems=[]) == {"superseded": []}


@pytest.mark.parametrize("limit", [0, 5, 20, 45, 100])
def test_a_summary_is_keywords_and_lines_of_the_facts_within_its_length(limit: int) -> None:
    text = summary(facts(*POTTERY), limit)
    assert tokens.count(text) <= limit
    if limit > 40:
        keywords, rest = text.split("; ", 1)
        assert "pottery class" in keywords
        assert all(line in POTTERY for line in rest.split(" / "))


def test_small_documents_about_one_thing_are_grouped_and_groups_are_disjoint() -> None:
    docs = [
        {
            "id": f"topics/pottery-{n}",
            "summary": f"pottery, kiln, glaze; The kiln of class {n}.",
            "tokens": 90,
        }
        for n in range(6)
    ]
    docs.append({"id": "topics/dentist", "summary": "dentist, molar; The molar hurts.", "tokens": 50})
    groups = [group["doc_ids"] for group in by_rules(MERGE, docs=docs)["groups"]]
    assert groups and all(2 <= len(group) <= 4 for group in groups)
    named = [doc for group in groups for doc in group]
    assert len(set(named)) == len(named) and "topics/dentist" not in named
    assert by_rules(MERGE, docs=[])["groups"] == []


def test_documents_are_selected_by_the_question() -> None:
    assert by_rules(SELECT, question="When is the kiln hot?", docs=DOCS, limit=5)["ids"] == [
        "topics/pottery-class"
    ]
    assert by_rules(SELECT, question="Who won the match?", docs=DOCS, limit=5)["ids"] == []
    assert by_rules(SELECT, question="roses or kiln or tomatoes", docs=DOCS, limit=1)["ids"] == [
        "topics/garden"
    ]


WORDS = st.text(max_size=60) | st.text(alphabet="ab AB.,!?'-1é北\u0301👍", max_size=30)


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=4), st.integers(0, 60))
def test_any_text_is_placed_once_and_nothing_raises(texts: list[str], others: list[str], limit: int) -> None:
    data = rewrite(facts(*texts))
    known = {fact["id"]: fact for fact in facts(*texts)}
    placed = [i for topic in data["topics"] for i in topic["fact_ids"]]
    assert sorted(placed) == sorted(known)
    topics = [
        {"title": topic["title"], "facts": [known[i] for i in topic["fact_ids"]]} for topic in data["topics"]
    ]
    docs = [{"id": f"topics/{n}", "summary": text, "tokens": 9} for n, text in enumerate(others)]
    assigned = plan(topics, docs, markdown_length=limit)
    assert sorted(i for part in assigned for i in part["fact_ids"]) == sorted(placed)
    assert all((part["doc_id"] is None) != (part["new_title"] is None) for part in assigned)
    assert sorted(i for row in layout([], topics) for i in row["fact_ids"]) == sorted(placed)
    assert tokens.count(summary(facts(*texts), limit)) <= limit
    by_rules(MERGE, docs=docs)
    by_rules(SELECT, question=" ".join(texts), docs=docs, limit=3)


# ── determinism ─────────────────────────────────────────────────────────────────────────────────

_SORT = """
import json, sys
from infinimem.llm.offline.filing import plan
from infinimem.llm.offline.salience import summary
from infinimem.llm.offline.topics import titled_groups
texts = json.load(sys.stdin)
groups = titled_groups(texts)
topics = [{"title": t, "facts": [{"id": str(i), "text": texts[i]} for i in g]} for t, g in groups]
docs = [{"id": t, "summary": summary([{"text": texts[i]} for i in g], 60)} for t, g in groups]
given = {"topics": topics, "docs": docs, "planned_titles": [], "markdown_length": 5000}
json.dump([groups, docs, plan(given)], sys.stdout)
"""


def test_hash_seeds_change_nothing(shared_data: Path) -> None:
    conversation = json.loads((shared_data / "locomo_dev.json").read_text())[0]["conversation"]
    said = [t["text"] for key, session in conversation.items() if isinstance(session, list) for t in session]
    results = set()
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-c", _SORT],
            input=json.dumps(said[:240]),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        results.add(done.stdout)
    assert len(results) == 1 and len(json.loads(results.pop())[0]) > 5
