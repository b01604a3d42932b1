"""What happens on two days is two things: nothing dated or measured goes for a duplicate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from scripted import keeping

from infinimem import Turn, open_memory
from infinimem.testing import ScriptedLLM

SYSTEMS = ("infini", "allmem", "recmem", "xmemory", "gam")


def _live(shell: Shell) -> list[str]:
    """The live lines of the library, without their signatures."""
    files = [shell.library / "CURRENT.md", *(shell.library / "topics").glob("*.md")]
    rows = [row for path in files for row in path.read_text().split("\n")]
    return sorted(row.split("> ", 1)[1] for row in rows if row.startswith("- <"))


def _told(shell: Shell, *turns: tuple[str, str]) -> None:
    shell("init", ".")
    for time, text in turns:
        assert shell("add", text, "--time", time).code == 0
    assert shell("consolidate").code == 0


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "text",
    [
        "Paid the rent",
        "The scale said 80 kg",
        "I am tired",
        "We are having soup",
        "My weight is 80 kg",
        "Miete überwiesen",
        "Water the plants",
        "I ran 5 km",
        "Blood pressure was 128 over 83",
    ],
)
def test_the_same_sentence_on_another_day_is_an_event_of_its_own(shell: Shell, text: str) -> None:
    """What is dated, measured or an event stays live as often as it happened."""
    days = ("2025-01-05", "2025-02-05", "2025-03-05")
    _told(shell, *((day, text) for day in days))
    assert _live(shell) == [text] * 3


def test_what_lasts_may_be_said_twice(shell: Shell) -> None:
    """A timeless statement said again is a duplicate of itself."""
    _told(shell, ("2025-01-05", "My bike is red"), ("2025-03-05", "My bike is red"))
    assert _live(shell) == ["My bike is red"]


def test_an_event_said_twice_on_its_day_is_one(shell: Shell) -> None:
    """The same sentence of the same day is a duplicate."""
    _told(shell, ("2025-01-05T08:00:00", "Paid the rent"), ("2025-01-05T20:00:00", "Paid the rent"))
    assert _live(shell) == ["Paid the rent"]


@pytest.mark.sample(5)
@pytest.mark.parametrize("second", ["The scale said 80 kg", "The scale said 82 kg"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_question_about_a_month_finds_that_months_line(tmp_path: Path, system: str, second: str) -> None:
    """Search, retrieve and ask find January's line after a later one of the same words, in every system."""
    with open_memory(tmp_path, model="offline", strategy=system, create=True, embedder="lexical") as memory:
        said = (
            ("2025-01-10", "The scale said 80 kg"),
            ("2025-02-20", "The cat sleeps"),
            ("2025-03-10", second),
        )
        for day, text in said:
            memory.observe([Turn(text, time=f"{day}T08:00:00", session=day)])
        memory.consolidate()
        question = "What did the scale say in January?"
        (first, *_) = memory.retrieve(question).items
        assert "80 kg" in first.text
        times = [place.entry.time or "" for seq in first.seqs if (place := memory.view.entry(seq))]
        assert any(time.startswith("2025-01-10") for time in times), (first, times)
        assert "80 kg" in memory.ask(question).text
        hits = memory.tools.text("search", {"query": question})
        assert hits.count("The scale said") >= 2, hits


def test_what_is_compared_is_shown_from_old_to_new(tmp_path: Path) -> None:
    """Of facts of one day, in whatever order they came, the one that was said later stands lower."""
    asked = list[list[str]]()

    def outdate(variables: Any) -> Any:
        facts = variables["groups"][0]["facts"]
        asked.append([fact["text"] for fact in facts])
        return {"superseded": [{"old": facts[0]["id"], "new": facts[-1]["id"]}]}

    model = ScriptedLLM(keeping("topics/ports") | {"compare": outdate})
    memory = open_memory(tmp_path / "m", model=model, create=True)
    for text, hour in {"Redis listens on port 7002.": 15, "Redis listens on port 7001.": 9}.items():
        memory.observe([Turn(text, session=text, time=f"2026-05-04T{hour:02}:00:00")])
    memory.consolidate()
    assert asked == [["Redis listens on port 7001", "Redis listens on port 7002"]]
    live = [place.text for place in memory.view.entries()]
    assert live == ["Redis listens on port 7002"]
