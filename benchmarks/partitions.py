"""How the paper's partitions by Okapi BM25 agree with the index, and what the shared readers show.

    python benchmarks/partitions.py DATA/locomo_dev.json [--cases N] [--budget 4096]

Libraries are made by rules. Of each question with known evidence: how many of the first ten partitions are
among the index's first ten; what share of its turns `hybrid`, `summary` and `bm25` show; and in how many
questions the first two differ.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from itertools import islice
from pathlib import Path

from infinimem import open_memory
from infinimem.evaluation.datasets import benchmark
from infinimem.index.search import searcher
from infinimem.model import Retrieved
from infinimem.strategies.readers.pipeline import best_partitions

READERS = ("hybrid", "summary", "bm25")
FIRST = 10


def places(items: list[Retrieved]) -> set[tuple[str, int]]:
    return {(item.doc_id, item.start_line) for item in items}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--budget", type=int, default=4096)
    options = parser.parse_args()
    figures: dict[str, list[float]] = defaultdict(list)
    for case in islice(benchmark("locomo").cases(options.path), options.cases):
        with tempfile.TemporaryDirectory() as root:
            memory = open_memory(Path(root) / "library", model="offline", create=True)
            memory.observe(case.turns)
            memory.consolidate()
            view = memory.view
            turn_of = {place.seq: place.entry.fields["turn"] for place in view.entries("evidence")}
            for question in (one for one in case.questions if one.turns):
                ours = places(best_partitions(view, question.text, FIRST))
                index = places(searcher(view).blocks(question.text, FIRST))
                figures["first ten in the index's"].append(len(ours & index) / max(len(ours), 1))
                evidence = [memory.read(question.text, reader, options.budget).items for reader in READERS]
                figures["hybrid and summary differ"].append(evidence[0] != evidence[1])
                for reader, items in zip(READERS, evidence, strict=True):
                    shown = {turn_of.get(seq) for item in items for seq in item.origin}
                    share = len(shown.intersection(question.turns)) / len(question.turns)
                    figures[f"evidence in {options.budget:,} tokens, {reader}"].append(share)
    for name, values in figures.items():
        print(f"{name}: {100 * sum(values) / len(values):.1f} % of {len(values)} questions")


if __name__ == "__main__":
    main()
