"""All-Mem by rules alone, on text: what they propose is consolidated, and still found by way of links."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from infinimem import Turn, open_memory
from infinimem.memory import Memory

FACTS = (
    "The capital of Chad is Abeche.",
    "Lou Reed was born in the city of Brooklyn.",
    "The author of Emma is Jane Austen.",
    "The capital of Chad is N'Djamena.",
    "The author of Emma is Jane Austen.",
)
DATA = Path(os.environ.get("INFINIMEM_DATA", Path(__file__).parents[2] / "shared/data"))


def told(root: Path, *texts: str, session: str = "s1", **about: str) -> Memory:
    memory = open_memory(root, model="offline", strategy="allmem", create=True, embedder="lexical")
    memory.observe([Turn(text, session=session, **about) for text in texts])
    memory.consolidate()
    return memory


def test_a_newer_value_takes_the_place_of_the_older(tmp_path: Path) -> None:
    memory = told(tmp_path, *FACTS)
    counts = memory.status()
    assert counts["archived"] == 1, "the older capital; what was told twice is two things"
    assert "allmem/archive/u-000001" in memory.view and "allmem/units/u-000004" in memory.view
    evidence = memory.read("What is the capital of Chad?")
    found = [item.text for item in evidence.items]
    assert found.index("The capital of Chad is N'Djamena.") < found.index("The capital of Chad is Abeche.")
    (linked,) = (step.found for step in evidence.trace if step.stage == "links")
    assert sum(f"allmem/archive/{unit.id}" in memory.view for unit in linked) == 1
    assert "N'Djamena" in memory.ask("What is the capital of Chad?").text


def test_what_two_people_say_of_themselves_stays_apart(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, model="offline", strategy="allmem", create=True, embedder="lexical")
    for speaker, place in (("Ann", "Lisbon"), ("Rita", "Porto")):
        memory.observe([Turn(f"I live in {place}.", speaker=speaker, session="s1")])
    memory.consolidate()
    assert memory.status()["archived"] == 0


def test_numbered_facts_of_a_benchmark(tmp_path: Path) -> None:
    path = DATA / "factconsolidation_dev.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    lines = next(row["context"] for row in json.loads(path.read_text()) if "6k" in str(row["metadata"]))
    facts = [line.split(". ", 1)[1] for line in lines.splitlines()[1:161]]
    memory = told(tmp_path, *facts)
    counts = memory.status()
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []
