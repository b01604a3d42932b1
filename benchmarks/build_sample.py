"""Build sample_library/ from the demo's conversation, as its owner would have: session by session.

    python benchmarks/build_sample.py sample_library

The model's part is played from sample_facts.tsv, answers written by hand to show what a careful model would
say; the program checks them as it checks any model's. The clock stands at the end of each session, so that
every run gives the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from infinimem import Turn, open_memory
from infinimem.cli.demo import CONVERSATION
from infinimem.grounding.sentences import day_of, settled
from infinimem.importers import read_turns
from infinimem.strategies.infini.documents import keep_summaries
from infinimem.testing import ScriptedLLM

CONSOLIDATED = ("s02", "s04", "s06", "s08", "s13")
"""Sessions after which the buffer is sorted; what comes later stays in it."""


@dataclass(frozen=True)
class Fact:
    """A row of the table: what to keep of which turns, where it goes, and what it replaces."""

    turns: tuple[str, ...]
    topic: str
    heading: str
    replaces: str
    text: str


class Author:
    """Answers every task of the write path from the table."""

    def __init__(self, facts: Iterable[Fact], turns: Iterable[Turn]) -> None:
        self.facts = list(facts)
        self.by_text = {fact.text: fact for fact in self.facts}
        self.ids = {turn.text: turn.turn for turn in turns}

    def model(self) -> ScriptedLLM:
        tasks = (self.extract, self.rewrite, self.plan, self.compare, self.layout)
        scripts = {task.__name__: task for task in tasks} | {"merge": _none, "summarize": keep_summaries}
        return ScriptedLLM(scripts, name="written-by-hand")

    def extract(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        seqs = {self.ids[turn["text"]]: turn["id"] for turn in asked["turns"]}
        kept = [fact for fact in self.facts if fact.turns[-1] in seqs]
        days = {turn["id"]: day_of(turn["time"]) for turn in asked["turns"]}
        entries = []
        for fact in kept:
            cited = [seqs[turn] for turn in fact.turns]
            when = settled(fact.text, days[cited[-1]])
            entries.append({"text": fact.text, "from": cited, "when": when, "refers": None})
        return {"entries": entries}

    def rewrite(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        topics: dict[str, list[str]] = {}
        for fact in asked["facts"]:
            topics.setdefault(self.by_text[fact["text"]].topic, []).append(fact["id"])
        return {"topics": [{"title": title, "fact_ids": ids} for title, ids in topics.items()]}

    def plan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        there = {doc["id"] for doc in asked["docs"]}
        assign = []
        for topic in asked["topics"]:
            doc_id = "topics/" + re.sub(r"\W+", "-", topic["title"].lower())
            known = doc_id in there
            ids = [fact["id"] for fact in topic["facts"]]
            assign.append(
                {
                    "doc_id": doc_id if known else None,
                    "new_title": None if known else topic["title"],
                    "fact_ids": ids,
                }
            )
        return {"assign": assign}

    def compare(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "superseded": self._superseded([fact for group in asked["groups"] for fact in group["facts"]])
        }

    def layout(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        headings: dict[str, list[str]] = {}
        for section in asked["doc"]["sections"]:
            for fact in section["facts"]:
                headings.setdefault(self.by_text[fact["text"]].heading, []).append(fact["id"])
        return {"layout": [{"heading": heading, "fact_ids": ids} for heading, ids in headings.items()]}

    def _superseded(self, facts: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
        seqs = {fact["text"]: fact["id"] for fact in facts}
        pairs = ((self.by_text[text].replaces, seq) for text, seq in seqs.items())
        return [{"old": seqs[old], "new": new} for old, new in pairs if old in seqs]


def _none(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"groups": []}


def read_facts(path: Path) -> list[Fact]:
    """The table's rows."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Fact(tuple(row["turns"].split("+")), row["topic"], row["heading"], row["replaces"], row["fact"])
            for row in rows
        ]


def build(folder: Path) -> None:
    """Make the library; one that is in the folder goes."""
    if folder.exists() and not (folder / "infinimem.toml").exists():
        raise SystemExit(f"{folder} is no library; nothing was changed")
    shutil.rmtree(folder, ignore_errors=True)
    said = list(read_turns(CONVERSATION).turns)
    author = Author(read_facts(Path(__file__).with_name("sample_facts.tsv")), said)
    now = datetime(2025, 1, 1, tzinfo=UTC)
    memory = open_memory(folder, model=author.model(), create=True, clock=lambda: now)
    for session, turns in groupby(said, key=lambda turn: turn.session):
        part = list(turns)
        now = datetime.fromisoformat(part[-1].time or "").replace(tzinfo=UTC) + timedelta(minutes=5)
        memory.observe(part)
        if session in CONSOLIDATED:
            memory.consolidate()
    notes = [note for receipt in memory.receipts() for note in receipt.notes]
    if notes:
        raise SystemExit("the program refused some of the answers: " + "; ".join(notes))
    shutil.rmtree(folder / ".infinimem")  # machine state, which is not kept under version control


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)
