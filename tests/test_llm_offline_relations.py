"""The rules for topics and their relations: what was said, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from infinimem.grounding.claims import unsupported
from infinimem.llm.base import Task
from infinimem.llm.offline import OfflineClient
from infinimem.strategies.gam.tasks import RELATE, TOPIC

TURNS = [
    ("Ann", "Hi Rob! I moved to Lisbon in March. The flat is near the river Tejo, and it is small."),
    ("Rob", "How lovely! Do you like the flat?"),
    ("Ann", "I painted the kitchen of the flat blue. My landlord Bruno helped me with the ladder."),
    ("Rob", "Thanks!"),
]


def asked(task: Task, **variables: object) -> Mapping[str, Any]:
    data = OfflineClient().complete(task, variables).data
    assert data is not None
    return data


def told(*turns: tuple[str, str]) -> Mapping[str, Any]:
    shown = [
        {"id": str(at), "role": "user", "speaker": speaker, "time": "2025-01-04", "text": text}
        for at, (speaker, text) in enumerate(turns, 1)
    ]
    return asked(TOPIC, turns=shown)


def test_a_topic_is_told_in_the_words_in_which_it_was_said() -> None:
    found = told(*TURNS)
    said = [part for turn in TURNS for part in turn]
    assert not unsupported("\n".join([found["summary"], *found["keywords"]]), said)
    told_by_ann = f"{TURNS[0][1]} {TURNS[2][1]}"
    assert all(line in told_by_ann for line in found["summary"].removeprefix("Ann: ").split(" Ann: "))
    assert not any(word in found["summary"] for word in ("Do you", "Thanks", "Hi Rob"))


def test_where_nothing_is_told_the_first_words_stand() -> None:
    assert told(TURNS[1], TURNS[3])["summary"] == f"Rob: {TURNS[1][1]}"


@pytest.mark.parametrize(
    ("summary", "relation"),
    [
        ("The kitchen of the flat is blue, said the landlord with the ladder.", "semantic"),
        ("A cello lesson took long.", "unrelated"),
    ],
)
def test_topics_with_words_in_common_are_alike_and_others_are_not(summary: str, relation: str) -> None:
    topic = {"id": "gt-000003", "summary": TURNS[2][1], "keywords": ["kitchen", "Bruno"]}
    other = {"id": "1", "summary": summary, "keywords": []}
    (found,) = asked(RELATE, topic=topic, others=[other])["relations"]
    assert (found["id"], found["relation"]) == ("1", relation)
    assert found["confidence"] == (0.5 if relation == "semantic" else 0.0)
