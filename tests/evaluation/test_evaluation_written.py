"""What is counted of a library without any judge, on one whose lines are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation_data import Small, case, request

from infinimem import open_memory
from infinimem.evaluation.methods import written_of
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import Run
from infinimem.model import Turn
from infinimem.testing import ScriptedLLM


def entry(text: str, origin: str, when: str | None = None) -> dict[str, Any]:
    return {"text": text, "from": [origin], "when": when, "refers": None}


def test_times_and_words_are_counted(tmp_path: Path) -> None:
    said = (
        "I moved to Lisbon last month.",
        "I fly home next Friday.",
        "I was in Rome yesterday.",
        "I paint.",
        "I was in Bonn on 3 May 2023.",
    )
    turns = tuple(
        Turn(text, speaker="Ann", time="2024-05-08", session="s", turn=f"D:{at}")
        for at, text in enumerate(said)
    )
    history = replace(case("one"), turns=turns)
    model = ScriptedLLM(
        {
            "extract": [
                {
                    "entries": [
                        entry("Ann moved to Lisbon last month.", "1", "2024-04"),
                        entry("Ann flies home next Friday.", "2"),
                        entry("Ann was in Rome yesterday.", "3"),
                        entry("I was in Bonn on 3 May 2023.", "5"),
                    ]
                }
            ]
        }
    )
    memory = open_memory(tmp_path / "m", model=model, create=True)
    memory.observe(turns)
    assert written_of(memory, history) == {
        "gold": 4,
        "uncited": ["D:3"],
        "entries": 4,
        "verbatim": 1,
        "discarded": 0,
        "undone": 0,
        "relative": 3,
        "dated": 1,
        "unsettled": 1,
    }


def test_evidence_that_is_shown_though_nothing_cites_it(tmp_path: Path) -> None:
    """A turn of which nothing was accepted is found itself; one of which the model makes nothing is not."""
    liar = ScriptedLLM({"extract": lambda _: {"entries": [entry("Zoe owns 17 yachts.", "3")]}})
    run = Run(request(tmp_path, "infini-retrieve", "bm25", keeper=liar), Small([case("one")]))
    run.start(lambda *_: None, 0)
    told = write_report(tmp_path / "out")["methods"]
    written = told["infini-retrieve"]["written"]
    assert (written["gold"], written["uncited"], written["unshown"]) == (4, 4, 3)
    assert told["bm25"]["written"] == {}, "it writes nothing"
    assert "## What was written" in (tmp_path / "out/report.md").read_text()
