"""What safety costs: each write beside the machine's own fsync, and beside the same write without its syncs.

    python benchmarks/safety.py [--where FOLDER]

Every round times each row once, in turn, so that a busy moment falls on all of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infinimem import Turn, open_memory
from infinimem.model import Move, NewEntry, Plan
from infinimem.store import disk
from infinimem.store.library import Library, init
from infinimem.store.view import Applied

ROUNDS = 200
DOCUMENTS, ENTRIES, LARGE = 20, 100, 3_000
TEXT = "We moved the meeting with Ann to Thursday at noon, in the small room."


@contextmanager
def unsynced() -> Iterator[None]:
    """The same code, its bytes left to the operating system."""
    kept = disk.sync, disk.sync_folder
    disk.sync = disk.sync_folder = lambda _: None  # type: ignore[assignment]
    try:
        yield
    finally:
        disk.sync, disk.sync_folder = kept


def timed(act: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - began)


class Writes:
    """One small write of each kind, again and again."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.raw = os.open(root / "raw", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self.library = init(root / "memory")
        self.memory = open_memory(root / "observed", model="offline", create=True)
        self.number = 0

    def fsync(self) -> None:
        """The machine's own: append a line and wait for the disk."""
        os.write(self.raw, f"- <seq={self.number},source=user> {TEXT}\n".encode())
        disk.sync(self.raw)

    def record(self) -> None:
        """One turn to the evidence: one file."""
        self.number += 1
        (self.told,) = self.library.record([Turn(f"{TEXT} {self.number}", session="s")])

    def append(self) -> None:
        """One entry to CURRENT, and a row that its turn was drawn from: two files."""
        self.library.apply(Plan(adds=(NewEntry(self.told.text, (self.told.seq,)),)))

    def observe(self) -> None:
        """A turn to the evidence, extraction by rules, an entry to CURRENT: three files."""
        self.number += 1
        self.memory.observe([Turn(f"{TEXT} {self.number}", session="s")])


ACTS: dict[str, tuple[int, Callable[[Writes], None]]] = {
    "append and fsync": (1, Writes.fsync),
    "record a turn": (1, Writes.record),
    "append an entry": (2, Writes.append),
    "observe, offline": (3, Writes.observe),
}
"""What is timed, and how many files it appends to."""


def small_writes(root: Path) -> list[tuple[str, float, float, float]]:
    """Name, files, milliseconds with and without syncs."""
    synced, left = Writes(root / "synced"), Writes(root / "left")
    times: dict[str, list[float]] = {name: [] for name in ACTS}
    bare: dict[str, list[float]] = {name: [] for name in ACTS}
    for _ in range(ROUNDS):
        for name, (_, act) in ACTS.items():
            times[name].append(timed(lambda act=act: act(synced)))  # type: ignore[misc]
        for name, (_, act) in ACTS.items():
            with unsynced():
                bare[name].append(timed(lambda act=act: act(left)))  # type: ignore[misc]
    return [
        (name, files, statistics.median(times[name]), statistics.median(bare[name]))
        for name, (files, _) in ACTS.items()
    ]


def consolidation(root: Path) -> float:
    """Milliseconds to move 100 entries into 20 documents, no model asked."""
    library = init(root)
    told = library.record([Turn(f"{TEXT} {n}", session="s") for n in range(2 * ENTRIES)])
    first, second = told[:ENTRIES], told[ENTRIES:]
    taken = 0.0
    for part in (first, second):  # the second finds the documents there
        outcome = library.apply(Plan(adds=tuple(NewEntry(p.text, (p.seq,)) for p in part)))
        assert isinstance(outcome, Applied)
        moves = tuple(
            Move(place.seq, f"topics/topic-{n % DOCUMENTS}", "Notes") for n, place in enumerate(outcome.added)
        )
        plan = Plan("consolidate", moves=moves)
        taken = timed(lambda plan=plan, view=outcome.view: library.apply(plan, base=view))  # type: ignore[misc]
    return taken


def opening(root: Path) -> float:
    """Milliseconds to open a library of 3,000 documents and list what it holds."""
    init(root)
    for n in range(LARGE):
        line = f"- <seq={n + 1},source=user> {TEXT} {n}\n"
        (root / f"topics/topic-{n}.md").write_text(f"---\nid: topics/topic-{n}\n---\n# Notes\n{line}")
    return timed(lambda: Library(root).view().ids())


def main() -> None:
    parser = argparse.ArgumentParser(description="What safety costs.")
    parser.add_argument("--where", type=Path, help="a folder on the disk to be measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.where) as folder:
        root = Path(folder)
        rows = small_writes(root)
        own = rows[0][2]
        print(f"{'median of ' + str(ROUNDS):<28}{'ms':>8}{'unsynced':>10}{'fsyncs a file':>15}")
        for name, files, with_syncs, without in rows:
            print(f"{name:<28}{with_syncs:>8.2f}{without:>10.2f}{with_syncs / own / files:>15.2f}")
        spent = statistics.median(consolidation(root / f"c{n}") for n in range(5))
        print(f"{ENTRIES} entries into {DOCUMENTS} documents: {spent:.0f} ms")
        with_none = []
        with unsynced():
            with_none = [consolidation(root / f"u{n}") for n in range(5)]
        print(f"  without syncs: {statistics.median(with_none):.0f} ms")
        opened = statistics.median(opening(root / f"o{n}") for n in range(3))
        print(f"opening {LARGE} documents: {opened:.0f} ms")


if __name__ == "__main__":
    main()
