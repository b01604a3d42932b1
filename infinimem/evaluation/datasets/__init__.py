"""Public data sets, read as their official files are, each with its own rules of scoring."""

from __future__ import annotations

from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation.datasets.exports import Beam, FactConsolidation, LoCoMo, LongMemEval
from infinimem.evaluation.datasets.notes import Notes
from infinimem.evaluation.model import Benchmark

NAMES = ("locomo", "longmemeval", "longmemeval-mix", "factconsolidation", "beam", "notes")


def benchmark(name: str, corrections: Path | None = None, split: str | None = None) -> Benchmark:
    """Return a data set by one of `NAMES`; UsageError if there is none, or it is given what it does not take.

    `corrections` is a published audit of LoCoMo's labels; `split` is "dev" or "held", of notes alone.
    """
    if name not in NAMES:
        raise UsageError(f"no data set {name!r}: use one of {', '.join(NAMES)}")
    if split is not None and name != "notes":
        raise UsageError(f"only notes is split: leave --split out for {name}")
    if corrections is not None and name != "locomo":
        raise UsageError(f"corrections are known for locomo only: leave them out for {name}")
    if name.startswith("longmemeval"):
        return LongMemEval(name)
    if name == "locomo":
        return LoCoMo(corrections)
    if name == "notes":
        return Notes(split or "dev")
    return Beam() if name == "beam" else FactConsolidation()
