"""From a data set's name to the data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation.datasets.factconsolidation import FactConsolidation
from infinimem.evaluation.datasets.locomo import LoCoMo
from infinimem.evaluation.datasets.longmemeval import LongMemEval
from infinimem.evaluation.model import Benchmark

_PLAIN: Mapping[str, Callable[[], Benchmark]] = {
    "longmemeval": LongMemEval,
    "longmemeval-mix": lambda: LongMemEval("longmemeval-mix"),
    "factconsolidation": FactConsolidation,
}
NAMES: tuple[str, ...] = (LoCoMo.name, *_PLAIN)


def benchmark(name: str, corrections: Path | None = None) -> Benchmark:
    """A data set by its name.

    Args:
        name: one of `NAMES`.
        corrections: a published audit of LoCoMo's labels; taken by no other.

    Raises:
        UsageError: there is no such data set, or corrections are given to one that takes none.
    """
    if name == LoCoMo.name:
        return LoCoMo(corrections)
    if name not in _PLAIN:
        raise UsageError(f"no data set {name!r}: use one of {', '.join(NAMES)}")
    if corrections is not None:
        raise UsageError(f"corrections are known for {LoCoMo.name} only: leave them out for {name}")
    return _PLAIN[name]()
