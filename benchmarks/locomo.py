"""LoCoMo, retrieval only: is the evidence of a question among what `retrieve` gives? No model is called.

    python benchmarks/locomo.py --data locomo10.json
    python benchmarks/locomo.py --data locomo10.json --ablate --embedder static

Each conversation becomes a library of its own: imported, consolidated by the offline rules, asked. An
item is scored by the turns that it cites, in rank order.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem import tokens
from infinimem.bench.datasets.locomo import gold_turns
from infinimem.bench.metrics.retrieval import CUTS, distinct, ndcg, recall
from infinimem.bench.metrics.statistics import mean
from infinimem.importers import read_turns
from infinimem.memory import Memory, open_memory
from infinimem.model import Retrieved

BUDGETS = (512, 1024, 2048)
ALL = 1 << 30
PRIORS = ("people", "dates", "statements", "newest")
"""What `[search]` of the settings switches; and `vectors`."""
ABLATIONS: Mapping[str, Collection[str]] = {
    "all": (),
    **{f"without {name}": (name,) for name in PRIORS},
    "without people, dates": PRIORS[:2],
    "without any prior": PRIORS,
}
VECTORLESS: Mapping[str, Collection[str]] = {"without vectors": ("vectors",)}
"""A row more where an embedder was chosen."""
"""Rows of the table of `--ablate`: what is switched off in each."""
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True)
class Score:
    """What one question got."""

    category: int
    recall: Mapping[int, float]
    ndcg: Mapping[int, float]
    within: Mapping[int, float]
    """Recall within so many tokens of context."""


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


def run(
    conversation: Mapping[str, Any],
    folder: Path,
    data: Path,
    ablations: Mapping[str, Collection[str]],
    embedder: str | None = None,
) -> dict[str, list[Score]]:
    """Import and consolidate one conversation, then ask it once for each ablation.

    Args:
        conversation: an element of the official file.
        folder: of a new library.
        data: the file itself, which the importer reads.
        ablations: for each label what is switched off.
        embedder: by its name; None takes the environment's.
    """
    name = str(conversation["sample_id"])
    began = time.perf_counter()
    memory = open_memory(folder, model="offline", create=True)
    memory.observe(list(read_turns(data, only=name).turns))
    memory.consolidate()
    wrote = time.perf_counter()
    scores = {}
    for label, off in ablations.items():
        rows = ["[search]", *(f"{prior} = false" for prior in off)]
        (folder / "infinimem.toml").write_text("\n".join(rows), encoding="utf-8")
        scores[label] = ask(conversation, open_memory(folder, model="offline", embedder=embedder))
    topics = [doc_id for doc_id in memory.view.ids() if doc_id.startswith("topics/")]
    asked = time.perf_counter()
    first = next(iter(scores.values()))
    print(
        f"{name}: {len(list(memory.view.entries('evidence')))} turns, {len(topics)} topics, "
        f"written in {wrote - began:.1f} s, {len(first)} questions in {asked - wrote:.1f} s, "
        f"R@5 {_percent(first, 'recall', 5)}",
        flush=True,
    )
    return scores


def ask(conversation: Mapping[str, Any], memory: Memory) -> list[Score]:
    """The scores of all questions that have evidence."""
    turn_of = {
        place.entry.seq: place.entry.fields["turn"]
        for place in memory.view.entries("evidence")
        if "turn" in place.entry.fields
    }
    known = frozenset(turn_of.values())
    scores = []
    for question in conversation["qa"]:
        gold = gold_turns(question["evidence"], known)
        if gold:
            items = memory.retrieve(str(question["question"]), budget=ALL).items
            scores.append(score(items, turn_of, gold, int(question["category"])))
    return scores


def _percent(scores: Sequence[Score], measure: str, at: int) -> str:
    return f"{100 * mean([getattr(item, measure)[at] for item in counted(scores)]):.1f}"


COLUMNS = [("recall", 5), ("ndcg", 5), ("recall", 10), ("recall", 50), *(("within", b) for b in BUDGETS)]


def table(groups: Mapping[str, Sequence[Score]], title: str = "category") -> str:
    """A row of means for each group of questions."""
    names = {"recall": "R@{}", "ndcg": "N@{}", "within": "R in {} tokens"}
    lines = [
        f"| {title} | questions | " + " | ".join(names[name].format(at) for name, at in COLUMNS) + " |",
        "| --- | --- |" + " --- |" * len(COLUMNS),
    ]
    for label, group in groups.items():
        values = (f"{100 * mean([getattr(item, name)[at] for item in group]):.1f}" for name, at in COLUMNS)
        lines.append(f"| {label} | {len(group)} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def counted(scores: Sequence[Score]) -> list[Score]:
    """Those of categories 1 to 4, which published tables count."""
    return [item for item in scores if item.category != 5]


def by_category(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """Categories 1 to 4 together and each category."""
    return {
        "1-4 together": counted(scores),
        **{f"{n} {name}": [item for item in scores if item.category == n] for n, name in CATEGORIES.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json, or a part of it")
    parser.add_argument(
        "--only", action="append", help="a conversation's id, such as conv-26; may be repeated"
    )
    parser.add_argument("--ablate", action="store_true", help="compare with each prior switched off")
    parser.add_argument("--embedder", help="what gives texts vectors: lexical, static, minilm, openai")
    options = parser.parse_args()
    ablations = {**ABLATIONS, **(VECTORLESS if options.embedder else {})} if options.ablate else {"all": ()}
    scores: dict[str, list[Score]] = {label: [] for label in ablations}
    for conversation in json.loads(options.data.read_text(encoding="utf-8")):
        if options.only and conversation["sample_id"] not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for label, found in run(
                conversation, Path(folder), options.data, ablations, options.embedder
            ).items():
                scores[label] += found
    print(table(by_category(scores["all"])))
    if options.ablate:
        print()
        print(table({label: counted(found) for label, found in scores.items()}, "categories 1-4"))


if __name__ == "__main__":
    main()
