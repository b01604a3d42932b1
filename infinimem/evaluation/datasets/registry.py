"""From a data set's name to the data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation.datasets.beam import Beam
from infinimem.evaluation.datasets.factconsolidation import FactConsolidation
from infinimem.evaluation.datasets.locomo import LoCoMo
from infinimem.evaluation.datasets.longmemeval import LongMemEval
from infinimem.evaluation.datasets.notes import SPLITS, Notes
from infinimem.evaluation.model import Benchmark

_PLAIN: Mapping[str, Callable[[], Benchmark]] = {
    "longmemeval": LongMemEval,
    "longmemeval-mix": lambda: LongMemEval("longmemeval-mix"),
    "factconsolidation": FactConsolidation,
    Beam.name: Beam,
}
NOTES = "notes"
NAMES: tuple[str, ...] = (LoCoMo.name, *_PLAIN, NOTES)


def benchmark(name: str, corrections: Path | None = None, split: str | None = None) -> Benchmark:
    """A data set by its name.

    Args:
        name: one of `NAMES`.
        corrections: a published audit of LoCoMo's labels; taken by no other.
        split: which half of the questions about notes, "dev" or "held"; no other data set is split.

    Raises:
        UsageError: there is no such data set, or one is given what it does not take.
    """
    if split is not None and name != NOTES:
        raise UsageError(f"only {NOTES} is split: leave --split out for {name}")
    if name == LoCoMo.name:
        return LoCoMo(corrections)
    if name not in NAMES:
        raise UsageError(f"no data set {name!r}: use one of {', '.join(NAMES)}")
    if corrections is not None:
        raise UsageError(f"corrections are known for {LoCoMo.name} only: leave them out for {name}")
    return Notes(split or SPLITS[0]) if name == NOTES else _PLAIN[name]()
