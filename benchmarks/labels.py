"""What recall and the offline rules do with labelled prompts and questions (tests/labels/README.md).

    python benchmarks/labels.py recall|questions [--half dev|held]

Of the half that rules are made with each miss is printed; of the other one only counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from infinimem import Memory, Turn, open_memory
from infinimem.hooks.recall import Recall
from infinimem.llm.offline.answer import CLOSEST, NOTHING

ROOT = Path(__file__).parents[1]
LABELS = ROOT / "tests" / "labels"


def library(folder: Path, memories: Iterable[dict[str, Any]]) -> Memory:
    """A copy of the sample, in which these were said, too."""
    shutil.copytree(ROOT / "sample_library", folder)
    memory = open_memory(folder, model="offline", trust=True)
    memory.observe(
        Turn(one["text"], speaker=one["speaker"], time=one["day"], session=one["id"], cwd=one["project"])
        for one in memories
    )
    return memory


def is_right(text: str, pieces: Iterable[str]) -> bool:
    return any(piece in text for piece in pieces)


def recalled(half: str, folder: Path) -> None:
    """Print precision, recall and how often nothing is shown where nothing is deserved."""
    labels = json.loads((LABELS / "recall.json").read_text())
    texts = {one["id"]: one["text"] for one in labels["memories"]}
    recall = Recall(library(folder, labels["memories"]))
    counts: Counter[str] = Counter()
    for one in (one for one in labels["prompts"] if one["half"] == half):
        pieces = [texts.get(piece, piece) for piece in one["expects"]]
        hits = [hit for hit in recall.near(one["prompt"], one["cwd"] or "/nowhere") if not hit.why]
        right = sum(is_right(hit.text, pieces) for hit in hits)
        counts["shown"] += len(hits)
        counts["right"] += right
        counts["deserving" if pieces else "undeserving"] += 1
        counts["found" if right else "silent"] += bool(pieces) == bool(right) and (bool(right) or not hits)
        if half == "dev" and (bool(pieces) != bool(right) or right < len(hits)):
            print(f"\n{one['id']} {one['cwd']} {one['prompt'][:160]!r}\n   expects {pieces}")
            for hit in hits:
                mark = "+" if is_right(hit.text, pieces) else "-"
                print(f"   {mark} {hit.score:.2f} {', '.join(hit.words)}: {hit.text}")
    print(
        f"{half}: precision {counts['right']}/{counts['shown']}, "
        f"recall {counts['found']}/{counts['deserving']}, "
        f"nothing shown {counts['silent']}/{counts['undeserving']}"
    )


def asked(half: str, folder: Path) -> None:
    """Print how often the first line answers, and how often a wrong one is told as an answer."""
    memory = library(folder, ())
    counts: Counter[str] = Counter()
    labels = json.loads((LABELS / "questions.json").read_text())
    for one in (one for one in labels["questions"] if one["half"] == half):
        answer = memory.ask(one["question"])
        lines = [line[2:] for line in answer.text.split("\n") if line.startswith("- ")]
        sure = not answer.text.startswith((CLOSEST, NOTHING))
        right = (
            is_right(lines[0], one["expects"])
            if lines and one["expects"]
            else not one["expects"] and not sure
        )
        counts["all"] += 1
        counts["right"] += right
        counts["wrong and sure"] += sure and not right
        counts["unsure, and right"] += right and not sure and bool(one["expects"])
        counts["nothing, though found"] += answer.text.startswith(NOTHING) and bool(one["expects"])
        groups: Sequence[Sequence[str]] = one.get("all", ())
        counts["of lists"] += len(groups)
        counts["quoted of lists"] += sum(any(is_right(line, group) for line in lines) for group in groups)
        if half == "dev" and not right:
            print(f"\n{one['id']} {one['question']!r} expects {one['expects'][:2]}\n{answer.text}")
    print(f"{half}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))


def main() -> None:
    """Measure one half in a copy of the library."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["recall", "questions"])
    parser.add_argument("--half", choices=["dev", "held"], default="dev")
    asked_for = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        {"recall": recalled, "questions": asked}[asked_for.what](asked_for.half, Path(folder, "library"))


if __name__ == "__main__":
    main()
