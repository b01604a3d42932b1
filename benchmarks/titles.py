"""Print the topics that the offline rules make of conversations, with summaries and lines, to be judged.

    python benchmarks/titles.py DATA/locomo_dev.json [--turns 150] [--shuffle SEED]
    python benchmarks/titles.py EXPORT …            # of any program that `infinimem import` reads

A title is right if all of its lines are about it and there are three or more; a month is never right. The
last line tells how many topics and lines there are, and how many of them stand under months.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from infinimem import open_memory
from infinimem.evaluation.datasets import benchmark
from infinimem.importers import read_turns
from infinimem.model import Turn

MONTH = re.compile(
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{4}"
)


def histories(path: Path, turns: int) -> Iterator[tuple[str, list[Turn]]]:
    """The conversations of LoCoMo, or an export, each with its first turns."""
    if path.name.startswith("locomo"):
        yield from ((case.name, list(case.turns[:turns])) for case in benchmark("locomo").cases(path))
    else:
        yield path.name, list(read_turns(path).turns)[:turns]


def topics(turns: list[Turn]) -> Iterator[tuple[str, str, list[str]]]:
    """Title, summary and lines of each topic."""
    with tempfile.TemporaryDirectory() as root:
        memory = open_memory(Path(root) / "library", model="offline", create=True)
        memory.observe(turns)
        memory.consolidate()
        for doc_id in memory.view.ids():
            if doc_id.startswith("topics/"):
                document = memory.view.document(doc_id)
                lines = [
                    f"{e.time} {e.fields.get('speaker', '')}: {e.text}"
                    for e in (place.entry for place in document.entries)
                ]
                yield document.title or doc_id, document.summary, lines


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="topics of all conversations, mixed")
    options = parser.parse_args()
    given = (history for path in options.paths for history in histories(path, options.turns))
    rows = [(name, *topic) for name, turns in given for topic in topics(turns)]
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(rows)
    for at, (name, title, summary, lines) in enumerate(rows, 1):
        print(f"\n{at}. {title}  [{name}, {len(lines)}]\n   = {summary}")
        print("\n".join(f"   - {line}" for line in lines))
    counted = [(bool(MONTH.search(title)), len(lines)) for _, title, _, lines in rows]
    under = sum(count for month, count in counted if month)
    few = sum(count < 3 for month, count in counted if not month)
    total = sum(count for _, count in counted)
    print(
        f"\n{len(rows)} topics, {total} lines; {sum(m for m, _ in counted)} months with {under} lines "
        f"({100 * under / max(total, 1):.0f} %); {few} other topics of one or two lines"
    )


if __name__ == "__main__":
    main()
