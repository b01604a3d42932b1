"""LoCoMo, retrieval only: is the evidence of a question among what `retrieve` gives? No model is called.

    python benchmarks/locomo.py --data locomo10.json

Each conversation becomes a library of its own: imported, consolidated by the offline rules, asked. An
item is scored by the turns that it cites, in rank order.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metrics import CUTS, distinct, mean, ndcg, recall

from infinimem import tokens
from infinimem.importers import read_turns
from infinimem.memory import Memory, open_memory
from infinimem.model import Retrieved

BUDGETS = (512, 1024, 2048)
ALL = 1 << 30
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True)
class Score:
    """What one question got."""

    category: int
    recall: Mapping[int, float]
    ndcg: Mapping[int, float]
    within: Mapping[int, float]
    """Recall within so many tokens of context."""


def gold_turns(evidence: Iterable[str], known: Collection[str]) -> list[str]:
    """The turn ids of a question: glued ones taken apart ("D8:6; D9:17"), those that name no turn dropped."""
    found = re.findall(r"D(\d+):(\d+)", " ".join(evidence))
    ids = [f"D{int(session)}:{int(turn)}" for session, turn in found]
    return [turn for turn in dict.fromkeys(ids) if turn in known]


def score(
    items: Sequence[Retrieved], turn_of: Mapping[int, str], gold: Collection[str], category: int
) -> Score:
    """The measures of one ranking."""
    ranked = distinct(turn_of[seq] for item in items for seq in item.origin)
    within = {}
    for budget in BUDGETS:
        left, seen = budget, []
        for item in items:
            left -= tokens.count(item.text)
            if left < 0:
                break
            seen += [turn_of[seq] for seq in item.origin]
        within[budget] = recall(distinct(seen), gold, len(seen))
    return Score(
        category,
        {k: recall(ranked, gold, k) for k in CUTS},
        {k: ndcg(ranked, gold, k) for k in CUTS},
        within,
    )


def run(conversation: Mapping[str, Any], memory: Memory, data: Path) -> list[Score]:
    """Import, consolidate and ask one conversation.

    Args:
        conversation: an element of the official file.
        memory: a new library.
        data: the file itself, which the importer reads.
    """
    name = str(conversation["sample_id"])
    began = time.perf_counter()
    memory.observe(list(read_turns(data, only=name).turns))
    memory.consolidate()
    wrote = time.perf_counter()
    places = memory.view.entries("evidence")
    turn_of = {
        place.entry.seq: place.entry.fields["turn"] for place in places if "turn" in place.entry.fields
    }
    known = frozenset(turn_of.values())
    scores = []
    for question in conversation["qa"]:
        gold = gold_turns(question["evidence"], known)
        if gold:
            items = memory.retrieve(str(question["question"]), budget=ALL).items
            scores.append(score(items, turn_of, gold, int(question["category"])))
    topics = [doc_id for doc_id in memory.view.ids() if doc_id.startswith("topics/")]
    asked = time.perf_counter()
    print(
        f"{name}: {len(turn_of)} turns, {len(topics)} topics, written in {wrote - began:.1f} s, "
        f"{len(scores)} questions in {asked - wrote:.1f} s, R@5 {_percent(scores, 'recall', 5)}",
        flush=True,
    )
    return scores


def _percent(scores: Sequence[Score], measure: str, at: int) -> str:
    return f"{100 * mean([getattr(item, measure)[at] for item in scores if item.category != 5]):.1f}"


def table(scores: Sequence[Score]) -> str:
    """One row for categories 1 to 4 together and one for each category."""
    columns = [("recall", 5), ("ndcg", 5), ("recall", 10), ("recall", 50), *(("within", b) for b in BUDGETS)]
    names = {"recall": "R@{}", "ndcg": "N@{}", "within": "R in {} tokens"}
    lines = [
        "| category | questions | " + " | ".join(names[name].format(at) for name, at in columns) + " |",
        "| --- | --- |" + " --- |" * len(columns),
    ]
    rows = [("1-4 together", [item for item in scores if item.category != 5])]
    rows += [
        (f"{n} {name}", [item for item in scores if item.category == n]) for n, name in CATEGORIES.items()
    ]
    for label, group in rows:
        values = (f"{100 * mean([getattr(item, name)[at] for item in group]):.1f}" for name, at in columns)
        lines.append(f"| {label} | {len(group)} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json, or a part of it")
    parser.add_argument(
        "--only", action="append", help="a conversation's id, such as conv-26; may be repeated"
    )
    options = parser.parse_args()
    scores: list[Score] = []
    for conversation in json.loads(options.data.read_text(encoding="utf-8")):
        if options.only and conversation["sample_id"] not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            scores += run(conversation, open_memory(folder, model="offline", create=True), options.data)
    print(table(scores))


if __name__ == "__main__":
    main()
