"""By how much xMemory's cosines are scaled so that a theme has as many facts as in its paper.

    python benchmarks/themes.py DATA/locomo_dev.json [--embedder static] [--within 0.5,1.5]
    python benchmarks/themes.py DATA/locomo_dev.json [--embedder static] --scale 0.9,1.0

Cosines of two embedders are no measure of each other, and the published code's thresholds are those of
text-embedding-3-small. All of them are multiplied by one number; the one at which LoCoMo has 4.48 facts a
theme, with the offline rules, is the default (strategies/xmemory/strategy.py). The conversations are told
once, and their facts are grouped anew for each scale, a block at a time. Prints a row for each; without
`--scale` it halves the interval until the facts a theme are within 0.1.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from infinimem import open_memory
from infinimem.evaluation.datasets import benchmark
from infinimem.evaluation.model import Case
from infinimem.strategies.records.record import number_of, record_id
from infinimem.strategies.records.record_store import Loaded
from infinimem.strategies.xmemory.partition import ThemePartition
from infinimem.strategies.xmemory.spec import XmemorySettings, scaled

WANTED = 4.48
"""Facts a theme (Table 8 of the paper, at most 12)."""
CLOSE = 0.1

Rows = dict[str, NDArray[np.float32]]


def told(case: Case, root: Path, embedder: str) -> Rows:
    """The facts of a conversation in order, with their vectors."""
    memory = open_memory(root, strategy="xmemory", model="offline", create=True, embedder=embedder)
    memory.observe(case.turns)
    memory.consolidate()
    with Loaded().at(memory.view) as (store, index):
        names = sorted((name for name in store.visible if name.startswith("xf-")), key=number_of)
        return {name: np.array(index.row(name)) for name in names}


def grouped(facts: Rows, scale: float) -> tuple[Counter[int], int]:
    """Themes by size, and how many facts are not where they were put first."""
    own = scaled(XmemorySettings(), scale)
    made = list[str]()

    def name(fact: str) -> str:
        made.append(record_id("xt", len(made) + 1))
        return made[-1]

    themes = ThemePartition({}, facts.__getitem__, name, lambda one: (number_of(one), one), own)
    first: dict[str, str] = {}
    for block in dict.fromkeys(number_of(fact)[0] for fact in facts):
        first |= {fact: themes.attach(fact) for fact in facts if number_of(fact)[0] == block}
        themes.split()
        themes.merge()
    moved = sum(first[fact] != theme for theme, those in themes.themes.items() for fact in those)
    return Counter(map(len, themes.themes.values())), moved


def row(scale: float, conversations: Sequence[Rows]) -> tuple[float, str]:
    """Facts a theme, and a line of the table."""
    sizes, moved = Counter[int](), 0
    for facts in conversations:
        found, changed = grouped(facts, scale)
        sizes.update(found)
        moved += changed
    count = sum(size * times for size, times in sizes.items())
    mean = count / sizes.total()
    told = "  ".join(f"{sizes[size]:>4}" for size in range(1, 13))
    return mean, f"{scale:5.3f}  {mean:5.2f}  {moved / count:8.1%}  {sizes.total():6}  {count:5}  {told}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--scale", default="")
    parser.add_argument("--within", default="0.5,1.5")
    chosen = parser.parse_args()
    low, high = map(float, chosen.within.split(","))
    given = [float(one) for one in chosen.scale.split(",") if one]
    with tempfile.TemporaryDirectory() as root:
        cases = benchmark("locomo").cases(chosen.data)
        conversations = [told(case, Path(root) / case.name, chosen.embedder) for case in cases]
        print("scale  facts  reassigned  themes  facts  themes of 1, 2, … 12 facts")
        while given or (not chosen.scale and high - low > 0.001):
            scale = given.pop(0) if given else (low + high) / 2
            mean, line = row(scale, conversations)
            print(line, flush=True)
            if not chosen.scale and abs(mean - WANTED) < CLOSE:
                break
            low, high = (scale, high) if mean > WANTED else (low, scale)


if __name__ == "__main__":
    main()
