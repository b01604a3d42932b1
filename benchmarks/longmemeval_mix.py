"""longmemeval-mix, retrieval only: are the sessions that hold the answer among what `retrieve` gives?

    python benchmarks/longmemeval_mix.py --data mix.jsonl --embedder static

Each question has a library of its own, of turns as they were said: recorded, not yet drawn from. That takes a
second a question; `infinimem bench longmemeval-mix` draws and consolidates entries, which takes minutes. All
questions but abstentions count. An item is scored by the session, and by the turns, that it cites.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infinimem.bench.metrics.retrieval import distinct, ndcg, recall
from infinimem.bench.metrics.statistics import mean
from infinimem.importers import read_turns
from infinimem.memory import Memory, open_memory
from infinimem.model import Retrieved
from infinimem.retrieval.packing import pack
from infinimem.retrieval.searcher import searcher

BUDGETS = (1024, 2048, 4096)
RANKED = 200
"""Items that are looked at."""
COLUMNS = ("R@5", "N@5", "R@10", *(f"turns in {budget:,} tokens" for budget in BUDGETS))


def recorded(question: Mapping[str, Any], folder: Path) -> None:
    """A library of all that was said before the question."""
    data = folder / "question.json"
    data.write_text(json.dumps([question]), encoding="utf-8")
    memory = open_memory(folder / "library", model="offline", create=True)
    memory.library.record(tuple(read_turns(data).turns))


def score(question: Mapping[str, Any], memory: Memory) -> dict[str, float]:
    """The measures of one question; those of turns where a turn of the user is labelled."""
    fields = {place.entry.seq: place.entry.fields for place in memory.view.entries("evidence")}
    items = searcher(memory.view).entries(str(question["question"]), RANKED)
    sessions = distinct(fields[seq]["turn"].rpartition("_")[0] for item in items for seq in item.origin)
    gold = question["answer_session_ids"]
    found = {
        "R@5": recall(sessions, gold, 5),
        "N@5": ndcg(sessions, gold, 5),
        "R@10": recall(sessions, gold, 10),
    }
    labelled = [
        f"{name}_{position}"
        for name, session in zip(question["haystack_session_ids"], question["haystack_sessions"], strict=True)
        for position, turn in enumerate(session, 1)
        if turn.get("has_answer") and turn["role"] == "user"
    ]
    for budget in BUDGETS if labelled else ():
        shown = _turns(pack(items, budget), fields)
        found[f"turns in {budget:,} tokens"] = recall(shown, labelled, len(shown))
    return found


def _turns(items: Sequence[Retrieved], fields: Mapping[int, Mapping[str, str]]) -> list[str]:
    return [fields[seq]["turn"] for item in items for seq in item.origin]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="JSON lines, a question each")
    parser.add_argument("--embedder", action="append", help="what gives texts vectors; may be repeated")
    parser.add_argument("--every", type=int, default=1, help="ask only every so many-th question")
    options = parser.parse_args()
    embedders = options.embedder or ["lexical"]
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in embedders}
    began = time.perf_counter()
    with options.data.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            question = json.loads(line)
            if number % options.every or question["question_id"].endswith("_abs"):
                continue
            with tempfile.TemporaryDirectory() as folder:
                recorded(question, Path(folder))
                for name in embedders:
                    memory = open_memory(Path(folder) / "library", model="offline", embedder=name)
                    scores[name].append(score(question, memory))
    print(f"| embedder | questions | {' | '.join(COLUMNS)} |\n| --- | --- |" + " --- |" * len(COLUMNS))
    for name, found in scores.items():
        means = (100 * mean([one[column] for one in found if column in one]) for column in COLUMNS)
        print(f"| {name} | {len(found)} | " + " | ".join(f"{value:.1f}" for value in means) + " |")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
