"""PrecisionMemBench (github tenurehq/precisionMemBench, MIT) through recall: is what is shown what was asked?

    python benchmarks/precision.py [--part closest|all] [--misses]

A belief is recorded as the benchmark's adapter gives it to every provider: name, aliases, content and why it
matters, as one text. A user is a library; `domain:X` is the project /home/X, several are the folder above
them, `user:universal` is said in no project. A belief counts as retrieved where a line of it is among those
that are closest to the prompt; standing instructions and constraints are the block's other parts, as the
adapter reads pinned facts and persona from its own list (`--part all` counts them, too). All else is scored
as adapter and runner do: pinned beliefs and open questions are theirs, relations expanded, the budget cuts.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

from infinimem import Memory, Turn, open_memory
from infinimem.hooks.recall import Recall

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("INFINIMEM_DATA", ROOT.parent / "shared" / "data")) / "precisionmembench.json.xz"
USER, CAP = "test-user", 20
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


def judged(case: dict[str, Any], beliefs: list[Belief], hits: list[str]) -> tuple[float | None, bool]:
    """Return a case's precision, None where nothing is wanted and nothing came, and whether it passes."""
    mine = {one["_id"]: one for one in beliefs if one["user_id"] == case.get("userId", USER)}
    cap = case.get("budget", {}).get("maxBeliefs", CAP)
    live = [
        one
        for one in mine.values()
        if one["pinned"] and not one["resolved_at"] and set(one["scope"]) & set(case["scope"])
    ]
    questions = {one["_id"] for one in live if one["type"] == "open_question"}
    pinned = [one["_id"] for one in live if one["_id"] not in questions and not one["superseded_by"]]
    query = case["query"].strip()
    shown = [id_ for id_ in hits if id_ not in pinned][:cap] if query else []
    more = [id_ for hit in shown for id_ in mine[hit].get("participants", ()) if id_ in mine]
    more = [
        id_ for id_ in more if id_ not in (*shown, *pinned) and set(mine[id_]["scope"]) & set(case["scope"])
    ]
    pinned = pinned[:cap]
    relevant = set([*shown, *more][: cap - len(pinned)])
    wanted = case["expect"].get("relevantBeliefs", {})
    only = wanted.get("shouldOnlyInclude")
    facts, asking = case["expect"].get("pinnedFacts", {}), case["expect"].get("openQuestions", {})
    passed = (
        (only is None or relevant == set(only))
        and not {*relevant, *pinned} & {*wanted.get("mustExclude", ())}
        and {*facts.get("mustInclude", ())} <= {*pinned}
        and not {*facts.get("mustExclude", ())} & {*pinned}
        and {*asking.get("mustInclude", ())} <= questions
        and not {*asking.get("mustExclude", ())} & questions
    )
    right = relevant & set(only or ())
    return (len(right) / len(relevant) if relevant else 0.0 if only else None), passed


def main() -> None:
    """Print active passes, all passes and mean precision."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=["closest", "all"], default="closest")
    parser.add_argument("--misses", action="store_true")
    asked = parser.parse_args()
    parts = {"closest"} if asked.part == "closest" else {"closest", "standing", "constraint"}
    with lzma.open(DATA) as file:
        data = json.load(file)
    counts: Counter[str] = Counter()
    precisions = []
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        mine = [one for one in data["beliefs"] if one["user_id"] == USER]
        memories = {USER: library(Path(folder, "mine"), mine), "": library(Path(folder, "none"), [])}
        for case in data["cases"]:
            memory = memories[USER if case.get("userId", USER) == USER else ""]
            hits = retrieved(memory, case["query"], folder_of(case["scope"]), parts)
            precision, passed = judged(case, data["beliefs"], hits)
            precisions += [] if precision is None else [precision]
            counts["all"] += passed
            counts["active"] += passed and bool(precision)
            if asked.misses and not passed:
                only = case["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude")
                print(f"{case['scope']} {case['query'][:150]!r}\n  wants {only}\n  shows {hits}")
    print(f"active {counts['active']}/43, all {counts['all']}/77, mean precision {mean(precisions):.2f}")


if __name__ == "__main__":
    main()
