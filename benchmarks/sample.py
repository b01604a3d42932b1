"""A small sample of a data set, as a file of the official form: for readers and judges who are slow or dear.

    python benchmarks/sample.py locomo_dev.json conversation.json --conversation conv-26 --each 10
    python benchmarks/sample.py locomo_dev.json beginning.json --conversation conv-26 --turns 65 --each 4
    python benchmarks/sample.py longmemeval_oracle.json.xz changes.json --each 20 \
        --categories knowledge-update,temporal-reasoning
    python benchmarks/sample.py beam_dev.json.xz chat.json --conversation 1
    python benchmarks/sample.py factconsolidation_dev.json 6k.json \
        --conversation factconsolidation_sh_6k,factconsolidation_mh_6k

Of each category so many questions are taken, evenly spread over the file; of LoCoMo those of the four
categories that are scored, and only questions whose evidence is in what is kept of the conversation. It is
printed how many there are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from infinimem.evaluation.datasets.dialogues import ADVERSARIAL, CATEGORIES, gold_turns

_OPENED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
Row = dict[str, Any]


def spread(rows: Sequence[Row], category: Callable[[Row], str], each: int | None) -> list[Row]:
    """At most so many rows of each category, evenly spread, in their order."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        groups[category(row)].append(at)
    few: list[int] = []
    for places in groups.values():
        count = min(each or len(places), len(places))
        few += (places[len(places) * number // count] for number in range(count))
    return [rows[at] for at in sorted(few)]


def beginning(talk: Row, turns: int | None) -> Row:
    """The first turns of a conversation of LoCoMo; sessions after them are left out."""
    kept, left = {}, turns
    for name, value in talk.items():
        if isinstance(value, list):
            value = value if left is None else value[:left]
            left = None if left is None else left - len(value)
            if not value:
                continue
        kept[name] = value
    return kept


def locomo(record: Row, options: argparse.Namespace) -> Row:
    """A conversation with few questions, or its beginning."""
    talk = beginning(record["conversation"], options.turns)
    known = {turn["dia_id"] for value in talk.values() if isinstance(value, list) for turn in value}
    whole = {
        turn["dia_id"]
        for value in record["conversation"].values()
        if isinstance(value, list)
        for turn in value
    }
    wanted = options.categories or set(CATEGORIES.values()) - {ADVERSARIAL}
    asked = [
        row
        for row in record["qa"]
        if CATEGORIES[row["category"]] in wanted
        and (gold := gold_turns(row.get("evidence", ()), whole))
        and known.issuperset(gold)
    ]
    return {**record, "conversation": talk, "qa": spread(asked, _category, options.each)}


def _category(row: Row) -> str:
    return CATEGORIES[row["category"]]


def sample(records: Sequence[Row], options: argparse.Namespace) -> tuple[list[Row], Counter[str]]:
    """The records that are kept, and how many questions of each category."""
    names = ("sample_id", "chat_id", "question_id")
    own = [{*(str(row[name]) for name in names if name in row)} for row in records]
    own = [ids or {row["metadata"]["source"]} for ids, row in zip(own, records, strict=True)]
    wanted = options.conversation
    named = [row for ids, row in zip(own, records, strict=True) if wanted is None or ids & wanted]
    if "qa" in records[0]:
        found = [locomo(row, options) for row in named]
        return found, Counter(_category(row) for one in found for row in one["qa"])
    if "context" in records[0]:
        return named, Counter({row["metadata"]["source"]: len(row["questions"]) for row in named})
    if "probing_questions" in records[0]:
        asked = (pair for one in named for pair in one["probing_questions"].items())
        return named, Counter(name for name, rows in asked for _ in rows)
    named = [row for row in named if not row["question_id"].endswith("_abs")]
    named = [row for row in named if options.categories is None or row["question_type"] in options.categories]
    found = spread(named, lambda row: str(row["question_type"]), options.each)
    return found, Counter(row["question_type"] for row in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--conversation", type=lambda text: set(text.split(",")), metavar="A,B")
    parser.add_argument("--turns", type=int, metavar="N", help="the first of a conversation of LoCoMo")
    parser.add_argument("--each", type=int, metavar="N", help="questions of a category, at most")
    parser.add_argument("--categories", type=lambda text: set(text.split(",")), metavar="A,B")
    options = parser.parse_args()
    with _OPENED.get(options.data.suffix, open)(options.data, "rt", encoding="utf-8") as file:
        records = json.load(file)
    found, counts = sample(records, options)
    options.out.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{options.out}: {counts.total()} questions ({told})")


if __name__ == "__main__":
    main()
