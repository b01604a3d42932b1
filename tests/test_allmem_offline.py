"""All-Mem by rules alone, on text: what they propose is consolidated, and still found by way of links."""

from __future__ import annotations

from pathlib import Path

from infinimem import Turn, open_memory
from infinimem.memory import Memory

FACTS = (
    "The capital of Chad is Abeche.",
    "Lou Reed was born in the city of Brooklyn.",
    "The author of Emma is Jane Austen.",
    "The capital of Chad is N'Djamena.",
    "The author of Emma is Jane Austen.",
)


def told(root: Path, *texts: str, session: str = "s1", **about: str) -> Memory:
    memory = open_memory(root, model="offline", strategy="allmem", create=True, embedder="lexical")
    memory.observe([Turn(text, session=session, **about) for text in texts])
    memory.consolidate()
    return memory


def test_rules_archive_nothing(tmp_path: Path) -> None:
    memory = told(tmp_path, *FACTS)
    counts = memory.status()
    assert counts["archived"] == 0
    assert "N'Djamena" in memory.ask("What is the capital of Chad?").text


def test_what_two_people_say_of_themselves_stays_apart(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, model="offline", strategy="allmem", create=True, embedder="lexical")
    for speaker, place in (("Ann", "Lisbon"), ("Rita", "Porto")):
        memory.observe([Turn(f"I live in {place}.", speaker=speaker, session="s1")])
    memory.consolidate()
    assert memory.status()["archived"] == 0
