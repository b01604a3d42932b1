"""PrecisionMemBench (github tenurehq/precisionMemBench, MIT) through recall: is what is shown what was asked?

    python benchmarks/precision.py [--part closest|all] [--misses]

A belief is recorded as the benchmark's adapter gives it to every provider: name, aliases, content and why it
matters, as one text. A user is a library; `domain:X` is the project /home/X, several are the folder above
them, `user:universal` is said in no project. A belief counts as retrieved where a line of it is among those
that are closest to the prompt; standing instructions and constraints are the block's other parts, as the
adapter reads pinned facts and persona from its own list (`--part all` counts them, too). All else is scored
as `infinimem bench precisionmembench` does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

from infinimem import Memory, Turn, open_memory
from infinimem.evaluation.datasets import benchmark
from infinimem.evaluation.model import Found
from infinimem.hooks.recall import Recall

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("INFINIMEM_DATA", ROOT.parent / "shared" / "data")) / "precisionmembench.json.xz"
Belief = dict[str, Any]


def folder_of(scopes: list[str]) -> str:
    domains = [scope.removeprefix("domain:") for scope in scopes if scope.startswith("domain:")]
    return "/nowhere" if not domains else f"/home/{domains[0]}" if len(domains) == 1 else "/home"


def library(folder: Path, beliefs: list[Belief]) -> Memory:
    memory = open_memory(folder, model="offline", create=True, trust=True)
    for one in beliefs:
        text = " ".join([one["canonical_name"], *one["aliases"], one["content"], one["why_it_matters"]])
        cwd = None if one["scope"] == ["user:universal"] else folder_of(one["scope"])
        memory.observe([Turn(text, key=one["_id"], session=one["_id"], time=one["created_at"][:10], cwd=cwd)])
    return memory


def retrieved(memory: Memory, query: str, cwd: str, parts: set[str]) -> list[str]:
    """Return the ids of the beliefs that are shown."""
    found: dict[str, None] = {}
    places = {f"{place.doc_id}:{place.start_line}": place for place in memory.view.entries("all")}
    for hit in Recall(memory).preview(query, cwd)["lines"]:
        if not hit["why"] and hit["part"] in parts:
            entry = places[hit["where"]].entry
            turns = [entry, *(place.entry for place in map(memory.view.entry, entry.origin) if place)]
            found |= {turn.fields["key"]: None for turn in turns if "key" in turn.fields}
    return [*found]


def main() -> None:
    """Print active passes, all passes and mean precision."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=["closest", "all"], default="closest")
    parser.add_argument("--misses", action="store_true")
    asked = parser.parse_args()
    parts = {"closest"} if asked.part == "closest" else {"closest", "standing", "constraint"}
    data = benchmark("precisionmembench")
    counts: Counter[str] = Counter()
    precisions = []
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for case in list(data.cases(DATA))[:2]:  # without sessions
            memory = library(Path(folder, case.name), list(case.questions[0].about["beliefs"].values()))
            for question in case.questions:
                scope = question.about["scope"]
                hits = retrieved(memory, question.text, folder_of(scope), parts)
                scores = data.retrieval(case, question, [Found("", tuple(hits), 0)])
                precisions += [scores["precision"]] if "precision" in scores else []
                counts["all"] += int(scores["pass"])
                counts["active"] += int(scores.get("active pass", 0))
                if asked.misses and not scores["pass"]:
                    wanted = question.about["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude")
                    print(f"{scope} {question.text[:150]!r}\n  wants {wanted}\n  shows {hits}")
    print(f"active {counts['active']}/43, all {counts['all']}/77, mean precision {mean(precisions):.2f}")


if __name__ == "__main__":
    main()
