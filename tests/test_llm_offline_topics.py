"""The offline rules for topics: what may stand together, what it is called, where single lines go."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cases import each

from infinimem.importers import read_turns
from infinimem.llm.offline.filing import plan
from infinimem.llm.offline.salience import Corpus
from infinimem.llm.offline.topics import rewrite
from infinimem.memory import open_memory
from infinimem.model import Turn

MAY = "2024-05-14T10:00:00"


def facts(*texts: str, time: str | None = MAY, first: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": str(n), "time": time, "source": "user", "text": text, **more}
        for n, text in enumerate(texts, first)
    ]


def topics(items: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    return {topic["title"]: topic["fact_ids"] for topic in rewrite({"facts": items})["topics"]}


# ── grouping ────────────────────────────────────────────────────────────────────────────────────


# ── titles ──────────────────────────────────────────────────────────────────────────────────────


@each(
    ("said", "title"),
    [
        (["The garage is cold.", "However, the garage has a heater.", "Every garage leaks."], "Garage"),
        (["Earned kudos for the budget. Woohoo!", "The budget earned kudos. Woohoo!"], "Budget"),
        (["Quickly booked the ferry.", "The ferry was quickly booked."], "Ferry"),
        (["A guinea pig eats hay.", "The guinea pig sleeps.", "My guinea pig squeaks."], "Guinea pig"),
        (["My family sails.", "The family of Ines cooks.", "Her family is large."], "Family"),
    ],
)
def test_a_title_is_made_of_nouns_that_lines_share(said: list[str], title: str) -> None:
    assert Corpus(said).thread(range(len(said)))[0].capitalize() == title
    assert list(topics(facts(*said))) == [title]


def test_every_title_of_a_real_conversation_has_a_thread_or_a_day(shared_data: Path) -> None:
    turns = read_turns(shared_data / "locomo_dev.json", only="conv-26").turns
    said = [
        {"id": str(n), "time": turn.time, "source": "user", "text": turn.text, "speaker": turn.speaker}
        for n, turn in enumerate(turns)
    ][:140]
    text_of = {fact["id"]: str(fact["text"]).lower() for fact in said}
    for title, ids in topics(said).items():
        if title.startswith("Notes of "):
            assert len({fact["time"][:10] for fact in said if fact["id"] in ids and fact["time"]}) == 1
            continue
        for word in re.findall(r"[\w-]+", title.split(",")[0].removesuffix(" and").lower()):
            if word != "and" and not word.isdecimal():
                assert sum(word[:4] in text_of[i] for i in ids) > 1, title


# ── routing ─────────────────────────────────────────────────────────────────────────────────────

DOCS = [
    {"id": "topics/garage", "summary": "garage, tyres; The winter tyres are in the garage."},
    {"id": "topics/kyoto-trip", "summary": "Kyoto; The hotel is near the market."},
    {"id": "topics/cello", "summary": "cello; Ann: The cello needs a new bow."},
    {"id": "topics/reading-at-home", "summary": "reading, books; Hanna lends books."},
    {"id": "topics/notes-of-7-may-2024", "summary": "plumber; The plumber comes on Monday."},
]


def routed(title: str, items: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    given = {"docs": DOCS, "planned_titles": [], "markdown_length": 5000}
    assigned = plan({**given, "topics": [{"title": title, "facts": items}]})["assign"]
    return {item["doc_id"] or item["new_title"]: item["fact_ids"] for item in assigned}


def test_lines_go_by_themselves_to_the_documents_about_them() -> None:
    items = facts(
        "The garage door code is now 5822.",
        "Hanna bought tickets for Kyoto.",
        "The bow was repaired by the luthier.",
        "The insurance ends in March.",
    )
    assert routed("Notes of 14 May 2024", items) == {
        "topics/garage": ["1"],
        "topics/kyoto-trip": ["2"],
        "topics/cello": ["3"],
        "Notes of 14 May 2024": ["4"],
    }


def test_unrelated_sources_share_no_document(tmp_path: Path) -> None:
    said = {
        "2024-04-02": ["The Lisbon flight lands at night.", "The Lisbon hotel is near the metro."],
        "2023-11-12": ["The radiator clanks all night.", "The plumber bled the radiator."],
        "2022-01-03": ["The chairperson of Fatah is Mahmoud Abbas.", "The leader of Fatah is Abbas."],
    }
    memory = open_memory(tmp_path / "library", model="offline", create=True)
    for day, lines in said.items():
        memory.observe([Turn(line, session=day, time=f"{day}T10:00:00") for line in lines])
    memory.consolidate()
    found = [
        sorted(place.entry.text for place in memory.view.document(doc_id).entries)
        for doc_id in memory.view.ids()
        if doc_id.startswith("topics/")
    ]
    assert sorted(found) == sorted(sorted(lines) for lines in said.values()), json.dumps(found)
