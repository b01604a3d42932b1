"""What recall and the offline rules do with labelled prompts and questions (tests/labels/README.md).

    python benchmarks/labels.py recall|questions [--half dev|held]
    python benchmarks/labels.py first

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
from infinimem.llm.offline.tell import CLOSEST, NOTHING

ROOT = Path(__file__).parents[1]
LABELS = ROOT / "tests" / "labels"


def library(folder: Path, memories: Iterable[dict[str, Any]], sample: bool = True) -> Memory:
    """A library in which these were said: a copy of the sample, or an empty one."""
    if sample:
        shutil.copytree(ROOT / "sample_library", folder)
    memory = open_memory(folder, model="offline", create=not sample, trust=True)
    memory.observe(
        Turn(
            one["text"],
            role="assistant" if one["speaker"] == "assistant" else "user",
            speaker=one["speaker"],
            time=one["day"],
            session=one["id"],
            cwd=one["project"],
        )
        for one in memories
    )
    return memory


def is_right(text: str, pieces: Iterable[str]) -> bool:
    return any(piece in text for piece in pieces)


def shown(
    prompts: Iterable[dict[str, Any]], recall: Recall, texts: dict[str, str], always: Any = None
) -> str:
    """Show each prompt what a session is shown that begins with it, and print what is wrong where that may be
    seen; return precision, recall, and how often nothing is shown where nothing is deserved. `always` gives
    what a folder deserves whatever the prompt says; without it only what is closest to the prompt counts."""
    counts: Counter[str] = Counter()
    for one in prompts:
        wanted = [texts.get(piece, piece) for piece in one["expects"]]
        standing = always(one["cwd"]) if always else []
        lines = recall.preview(one["prompt"], one["cwd"] or "/nowhere")["lines"]
        hits = [hit for hit in lines if not hit["why"] and (always or hit["part"] == "closest")]
        noise = [hit for hit in hits if not is_right(hit["text"], [*wanted, *standing])]
        is_found = any(is_right(hit["text"], wanted) for hit in hits)
        counts["shown"] += len(hits)
        counts["right"] += len(hits) - len(noise)
        counts["deserving" if wanted else "undeserving"] += 1
        counts["found" if wanted else "silent"] += is_found if wanted else not noise
        if one.get("half") != "held" and (noise or (wanted and not is_found)):
            print(f"\n{one['id']} {one['cwd']} {one['prompt'][:160]!r}\n   expects {wanted}")
            for hit in hits if always is None else noise:
                print(f"   {'-' if hit in noise else '+'} {hit['part']} {hit['score']:.2f} {hit['text']}")
    return (
        f"precision {counts['right']}/{counts['shown']}, recall {counts['found']}/{counts['deserving']}, "
        f"nothing shown {counts['silent']}/{counts['undeserving']}"
    )


def recalled(half: str, folder: Path) -> None:
    """Print what the lines are worth that are closest to a prompt."""
    labels = json.loads((LABELS / "recall.json").read_text())
    texts = {one["id"]: one["text"] for one in labels["memories"]}
    recall = Recall(library(folder, labels["memories"]))
    print(f"{half}: {shown((one for one in labels['prompts'] if one['half'] == half), recall, texts)}")


def first(_: str, folder: Path) -> None:
    """Print what whole blocks are worth, and of them what is closest to the prompt."""
    labels = json.loads((LABELS / "first.json").read_text())
    texts = {one["id"]: one["text"] for one in labels["memories"]}
    recall = Recall(library(folder, labels["memories"], sample=False))

    def always(cwd: str) -> list[str]:
        kinds = {"constraint", "standing"}
        here = (one for one in labels["memories"] if one["project"] in (None, cwd) and one["kind"] in kinds)
        return [one["text"] for one in here]

    print(f"blocks: {shown(labels['prompts'], recall, texts, always)}")
    silent = [{**one, "half": "held"} for one in labels["prompts"]]
    print(f"closest alone: {shown(silent, recall, texts)}")


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
    parser.add_argument("what", choices=["recall", "first", "questions"])
    parser.add_argument("--half", choices=["dev", "held"], default="dev")
    asked_for = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        {"recall": recalled, "first": first, "questions": asked}[asked_for.what](
            asked_for.half, Path(folder, "library")
        )


if __name__ == "__main__":
    main()
