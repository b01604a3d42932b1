"""Another program changes notes: which changes does the next call see, and after how long are all seen?

    python benchmarks/freshness.py --out FOLDER --sizes 300,3000,30000 --rounds 10

Each size is a folder of short notes, 100 to a folder, made once. A call is `Library.view()`, which every tool
makes first. `watched`: whether the system tells of edits; it does not in the first seconds of a process, nor
in folders that cannot be watched. A change is looked for by a call at once, then every 50 ms; `latest_ms` is
when the call began that saw it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infinimem.model import Turn
from infinimem.store.folders import state_of
from infinimem.store.library import Library, init

PATIENCE = 10.0
"""Seconds for which a change is looked for."""
BETWEEN = 0.05
"""Seconds between two calls."""


def made(root: Path, size: int) -> Path:
    """A library beside so many notes."""
    for number in range(size):
        path = root / f"notes{number // 100:03d}" / f"note{number}.md"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# Note {number}\n\nAbout {number}.\n")
    return init(root, trust=True).root


def shown(library: Library, doc_id: str) -> bool:
    """Whether a call knows the file as it is; indexes go by that, and read again only what changed."""
    stored = library.view().stored
    return stored is not None and stored.stamps[doc_id] == state_of(library.root, f"{doc_id}.md")


def in_place(root: Path, number: int) -> Callable[[Library], bool]:
    path = root / "notes000" / f"note{number}.md"
    path.write_text(f"# Note {number}\n\nEdited {time.time_ns()}.\n")
    return lambda library: shown(library, f"notes000/note{number}")


def created(root: Path, number: int) -> Callable[[Library], bool]:
    (root / "notes001" / f"new{number}.md").write_text("# New\n")
    return lambda library: f"notes001/new{number}" in library.view()


def renamed(root: Path, number: int) -> Callable[[Library], bool]:
    (root / "notes001" / f"new{number}.md").rename(root / "notes002" / f"moved{number}.md")
    return lambda library: (
        f"notes001/new{number}" not in (view := library.view()) and f"notes002/moved{number}" in view
    )


def saved_by_renaming(root: Path, number: int) -> Callable[[Library], bool]:
    path = root / "notes002" / f"moved{number}.md"
    path.with_suffix(".swap").write_text(f"# Saved {time.time_ns()}\n")
    path.with_suffix(".swap").rename(path)
    return lambda library: shown(library, f"notes002/moved{number}")


def deleted(root: Path, number: int) -> Callable[[Library], bool]:
    (root / "notes002" / f"moved{number}.md").unlink()
    return lambda library: f"notes002/moved{number}" not in library.view()


KINDS = (created, renamed, saved_by_renaming, deleted, in_place)


def measured(root: Path, rounds: int, watched: bool) -> dict[str, Any]:
    """What one process sees, and the CPU time of its calls."""
    began = time.process_time()
    library = Library(root)
    library.view()
    first = time.process_time() - began
    if watched:
        library.fresh.wait(1.0)  # begins to watch
        time.sleep(5.0)
    else:
        library.fresh.stop()
    library.view()
    rows: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        delays: list[float | None] = []
        for number in range(rounds):
            time.sleep(0.37 * (number % 7))  # any phase between two looks at every file
            seen, then = kind(root, number), time.perf_counter()
            at_once, found = seen(library), None
            while not at_once and found is None and time.perf_counter() - then < PATIENCE:
                time.sleep(BETWEEN)
                begun = time.perf_counter() - then
                found = begun if seen(library) else None
            delays.append(0.0 if at_once else found)
        late = [1e3 * delay for delay in delays if delay is not None]
        rows[kind.__name__] = {
            "of": rounds,
            "next_call": delays.count(0.0),
            "found": len(late),
            "latest_ms": round(max(late, default=0.0)),
        }
    calls = [cpu(library.view) for _ in range(200)]
    appended = [cpu(lambda i=i: library.record([Turn(f"Fact {i}.", session="s")])) for i in range(20)]  # type: ignore[misc]
    library.fresh.doubt()
    everything = cpu(library.view)
    library.fresh.stop()
    cost = {
        "first_ms": 1e3 * first,
        "call_ms": 1e3 * sorted(calls)[len(calls) // 2],
        "everything_ms": 1e3 * everything,
        "record_ms": 1e3 * sorted(appended)[len(appended) // 2],
    }
    return {**rows, "cpu": {name: round(value, 2) for name, value in cost.items()}}


def cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", default="300,3000,30000")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    for size in map(int, args.sizes.split(",")):
        root = made(args.out / str(size), size)
        for watched in (False, True):
            found = measured(root, args.rounds, watched)
            print(json.dumps({"notes": size, "watched": watched, **found}), flush=True)


if __name__ == "__main__":
    main()
