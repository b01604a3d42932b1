"""FactConsolidation (MemoryAgentBench): of facts that contradict each other, does the newest answer?

    python benchmarks/factconsolidation.py --data conflict_resolution.json --only factconsolidation_sh_6k

Each context becomes a library, a fact a turn; it is consolidated and asked with the offline rules or with
`--model`. An answer counts if the expected one is a part of it, as the benchmark's own scorer has it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infinimem.bench.metrics.answers import holds
from infinimem.bench.metrics.statistics import mean
from infinimem.importers import read_turns
from infinimem.memory import Memory, open_memory


def run(record: Mapping[str, Any], memory: Memory, data: Path, reader: str | None) -> tuple[float, float]:
    """Import, consolidate and ask one context.

    Args:
        record: an element of the official file.
        memory: a new library.
        data: the file itself, which the importer reads.
        reader: of `ask`; None takes the default.

    Returns:
        The shares of questions answered by the first line that the answer cites, and by the whole answer.
    """
    name = str(record["metadata"]["source"])
    began = time.perf_counter()
    memory.observe(list(read_turns(data, only=name).turns))
    memory.consolidate()
    wrote = time.perf_counter()
    first, whole = [], []
    for question, expected in zip(record["questions"], record["answers"], strict=True):
        answer = memory.ask(question, reader=reader)
        first.append(float(bool(answer.citations) and holds(answer.citations[0].text, expected)))
        whole.append(float(holds(answer.text, expected)))
    asked = time.perf_counter()
    print(
        f"{name}: {len(list(memory.view.entries('evidence')))} facts written in {wrote - began:.1f} s, "
        f"{len(whole)} questions in {asked - wrote:.1f} s; answered by the first cited line "
        f"{100 * mean(first):.0f}, by the whole answer {100 * mean(whole):.0f}",
        flush=True,
    )
    return mean(first), mean(whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="the split as JSON")
    parser.add_argument("--only", action="append", help="a source's name; may be repeated")
    parser.add_argument("--reader", help="agent, hybrid, bm25 or summary")
    parser.add_argument("--model", default="offline")
    options = parser.parse_args()
    for record in json.loads(options.data.read_text(encoding="utf-8")):
        if options.only and record["metadata"]["source"] not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            memory = open_memory(folder, model=options.model, create=True)
            run(record, memory, options.data, options.reader)


if __name__ == "__main__":
    main()
