"""How near two exchanges must be so that a model is asked about as often as in RecMem's paper.

    python benchmarks/recurrence.py DATA/locomo_dev.json [--embedder static] [--within 0.4,0.8]
    python benchmarks/recurrence.py DATA/locomo_dev.json [--embedder static] --theta 0.45,0.5 [--count 5]

Cosines of two embedders are no measure of each other, and the paper knows one embedder. Its tokens come to
about 0.4 calls an exchange on LoCoMo; the least cosine at which that is so here, with the offline rules,
is the default of `theta_sim` (strategies/recmem/strategy.py). Prints a row for each theta; without `--theta`
it halves the interval until the calls are within 0.01.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infinimem import open_memory
from infinimem.evaluation.datasets import benchmark
from infinimem.evaluation.model import Case
from infinimem.llm.base import Reply, Task, Wrapper
from infinimem.llm.offline import OfflineClient

WANTED = 0.4
"""Calls an exchange: 193 K tokens a conversation, 1.7 K a call, some 290 exchanges."""
CLOSE = 0.01


class Counting(Wrapper):
    """Counts what the rules are asked, by task."""

    def __init__(self) -> None:
        super().__init__(OfflineClient())
        self.calls = Counter[str]()

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`."""
        self.calls[task.name] += 1
        return self._llm.complete(task, variables)


def measured(cases: Sequence[Case], root: Path, embedder: str, theta: float, count: int) -> Counter[str]:
    """What it takes to observe all conversations: calls by task, exchanges and how many of them stay raw."""
    found = Counter[str]()
    for case in cases:
        folder = root / case.name  # the same each time: vectors are kept by the folder's path
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        settings = f"[recmem]\ntheta_sim = {theta}\ntheta_count = {count}\n"
        (folder / "infinimem.toml").write_text(settings)
        llm = Counting()
        memory = open_memory(folder, strategy="recmem", model=llm, create=True, embedder=embedder)
        memory.observe(case.turns)
        memory.consolidate()
        status = memory.status()
        found.update({name: status[name] for name in ("exchanges", "raw", "merged", "episodes", "facts")})
        found.update({f"{name} calls": calls for name, calls in llm.calls.items()})
        found.update(calls=llm.calls.total(), turns=len(case.turns))
    return found


COLUMNS = ("episodes", "facts", "merged", "raw", "merge_episodes calls", "refine calls")


def row(theta: float, found: Counter[str]) -> str:
    """A line of the table."""
    rates = f"{found['calls'] / found['exchanges']:9.3f}  {found['calls'] / found['turns']:5.3f}"
    return f"{theta:6.4f}  {rates}  " + "  ".join(f"{found[name]:>{len(name)}}" for name in COLUMNS)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--theta", default="")
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--within", default="0,1")
    chosen = parser.parse_args()
    cases = list(benchmark("locomo").cases(chosen.data))
    print("theta   calls/ex.  /turn  " + "  ".join(COLUMNS))
    low, high = map(float, chosen.within.split(","))
    given = [float(one) for one in chosen.theta.split(",") if one]
    with tempfile.TemporaryDirectory() as root:
        while given or (not chosen.theta and high - low > 0.001):
            theta = given.pop(0) if given else (low + high) / 2
            found = measured(cases, Path(root), chosen.embedder, theta, chosen.count)
            print(row(theta, found), flush=True)
            rate = found["calls"] / found["exchanges"]
            if not chosen.theta and abs(rate - WANTED) < CLOSE:
                break
            low, high = (theta, high) if rate > WANTED else (low, theta)


if __name__ == "__main__":
    main()
