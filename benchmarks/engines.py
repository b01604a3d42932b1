"""Do both engines give the same ten? Questions that people asked, to one library, through each.

    python benchmarks/engines.py --data locomo10.json --library FOLDER

The library is indexed in memory and in the cache directory, whatever its size.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from infinimem.memory import open_memory
from infinimem.retrieval import cache
from infinimem.retrieval.disk import DiskIndex
from infinimem.retrieval.index import Indexed, in_memory
from infinimem.retrieval.searcher import CANDIDATES
from infinimem.terms import analyzer

BEST = 10


def questions(data: Path, limit: int) -> list[str]:
    """The first distinct questions of a LoCoMo file, of all its conversations in turn."""
    conversations = json.loads(data.read_text(encoding="utf-8"))
    asked = [[str(question["question"]) for question in one["qa"]] for one in conversations]
    longest = max(map(len, asked))
    mixed = (one[number] for number in range(longest) for one in asked if number < len(one))
    return list(dict.fromkeys(mixed))[:limit]


def best(index: Indexed, kind: str, question: str) -> list[object]:
    """Places and scores of the ten best."""
    terms = analyzer(index.view.settings.search.language).query_terms(question)
    return list(index.best(kind, question, terms, "default", BEST, CANDIDATES[kind]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json, or a part of it")
    parser.add_argument("--library", type=Path, required=True, help="a memory, or a folder of notes")
    parser.add_argument("--questions", type=int, default=500)
    options = parser.parse_args()
    view = open_memory(options.library, model="offline").view
    folder = cache.cache_folder(str(options.library.absolute()), "engines")
    assert folder, "the cache directory cannot be used"
    memory, disk = in_memory(view), DiskIndex(folder).of(view)
    asked = questions(options.data, options.questions)
    for kind in CANDIDATES:
        same = sum(best(memory, kind, question) == best(disk, kind, question) for question in asked)
        print(f"{kind}: the same {BEST}, with the same scores, on {same} of {len(asked)} questions")


if __name__ == "__main__":
    main()
