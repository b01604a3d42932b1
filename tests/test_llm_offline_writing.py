"""The offline rules for writing: extraction, topics, duplicates, filing, layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cases import each
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
from infinimem.spec import load
from infinimem.strategies.infini.tasks import COMPARE, EXTRACT, LAYOUT, MERGE, PLAN, REWRITE


def turn(number: int, text: str, speaker: str | None = None, role: str = "user") -> dict[str, Any]:
    return {"id": str(number), "role": role, "speaker": speaker, "time": None, "text": text}


def extract(*turns: Mapping[str, Any], context: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, Any]:
    return by_rules(EXTRACT, turns=list(turns), context=list(context), topics=[], problems=[])


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


@each(
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


@each(
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


@given(st.text() | st.text(alphabet="ab.!?\n -*1)。\u2028\t", max_size=400))
def test_entries_are_pieces_of_the_message_in_its_order(text: str) -> None:
    folded = " ".join(text.split())
    at = 0
    for piece in split(text):
        assert piece and "\n" not in piece
        at = folded.index(piece, at) + len(piece)


@each("unit", ["a", "word ", "Sentence. ", "- item\n", "行", "\n"])
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


def rewrite(items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return by_rules(REWRITE, facts=list(items), docs=[], problems=[])


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


@each(
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


def layout(sections: Sequence[Mapping[str, Any]], incoming: Sequence[Mapping[str, Any]]) -> Any:
    doc = {"id": "topics/pottery", "title": "Pottery", "sections": list(sections)}
    by_rules(LAYOUT, doc=doc, problems=[])
    return load(LAYOUT.rule)({"doc": doc, "incoming": list(incoming), "summary_length": 100})["layout"]


def test_no_contradiction_is_claimed() -> None:
    groups = [{"heading": "1", "facts": facts("Lives in Rome", "Lives in Oslo")}]
    assert by_rules(COMPARE, groups=groups, problems=[]) == {"superseded": []}


@each("limit", [0, 5, 20, 45, 100])
def test_a_summary_is_keywords_and_lines_of_the_facts_within_its_length(limit: int) -> None:
    text = summary(facts(*POTTERY), limit)
    assert tokens.count(text) <= limit
    if limit > 40:
        keywords, rest = text.split("; ", 1)
        assert "pottery class" in keywords
        assert all(line in POTTERY for line in rest.split(" / "))


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
