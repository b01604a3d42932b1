"""How long it takes to merge two clones of a large library, on this machine.

    python benchmarks/two_machines.py [--topics 200 --turns 14000] [--changes 500]

Makes a library of about 20,000 lines, clones it with git, and has each clone change as many lines: a third
are edited, a third are archived, and a third are said anew. Prints the seconds that `infinimem sync` of the
second takes, fetching, merging and pushing included, wall clock and processor, and what `doctor` finds.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from web import build

from infinimem import Turn, open_memory
from infinimem.model import Move, NewEntry, Plan

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


def git(root: Path, *command: str) -> None:
    subprocess.run([*GIT, *command], cwd=root, check=True, capture_output=True)


def infinimem(root: Path, *command: str) -> tuple[float, float, str]:
    """Run the program; return the seconds that it took, by the clock and of processors, and its output."""
    before, began = os.times(), time.perf_counter()
    called = [sys.executable, "-m", "infinimem", "--library", str(root), *command]
    done = subprocess.run(called, capture_output=True, text=True, check=False)
    after = os.times()
    took = sum(after[2:4]) - sum(before[2:4])
    return time.perf_counter() - began, took, done.stdout + done.stderr


def change(root: Path, changes: int, seed: int) -> None:
    """Edit some lines, have others replaced, and say new ones."""
    chance = random.Random(seed)
    memory = open_memory(root, model="offline")
    library = memory.library
    library.adopt_edits()  # from here on an edit is one
    entries = [place for place in library.view().entries("default") if place.doc_id.startswith("topics/")]
    third = changes // 3
    chosen = chance.sample(entries, 2 * third)
    edited = {place.seq for place in chosen[:third]}
    for doc_id in {place.doc_id for place in chosen[:third]}:
        path = root / f"{doc_id}.md"
        lines = path.read_text().splitlines()
        mine = {place.start_line for place in library.view().document(doc_id).entries if place.seq in edited}
        path.write_text("\n".join(f"{x}, {seed}" if n in mine else x for n, x in enumerate(lines, 1)) + "\n")
    library.adopt_edits()
    said = library.record([Turn(f"Seen again, {seed}: {n}", session=str(seed)) for n in range(third)])
    library.apply(Plan(adds=tuple(NewEntry(turn.text, (turn.seq,)) for turn in said)))
    new = [place.seq for place in library.view().buffer.entries]
    moves = [Move(seq, chosen[0].doc_id) for seq in new]
    pairs = zip(chosen[third:], new, strict=False)
    moves += [Move(old.seq, old.doc_id, why="superseded", by=by) for old, by in pairs]
    library.apply(Plan("consolidate", moves=tuple(moves)), approved=frozenset(range(10**6)))
    memory.close()
    git(root, "add", "--all")
    git(root, "commit", "-qm", f"Changes {seed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--turns", type=int, default=14_000)
    parser.add_argument("--changes", type=int, default=500, help="of each side")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        one, two = place / "one", place / "two"
        build(one, given.topics, given.turns)
        git(place, "init", "-q", "--bare", "remote.git")
        git(one, "init", "-q")
        git(one, "remote", "add", "origin", str(place / "remote.git"))
        git(one, "add", "--all")
        git(one, "commit", "-qm", "Begin")
        git(one, "push", "-q", "origin", "main")
        git(place, "clone", "-q", "remote.git", "two")
        for seed, root in enumerate((one, two), 1):
            change(root, given.changes, seed)
        for root in (one, two, two, one):
            wall, processor, told = infinimem(root, "sync")
            print(f"{root.name}: {wall:.1f} s, of processors {processor:.1f} s; {told.splitlines()[-1]}")
        print("doctor:", infinimem(two, "doctor")[2].splitlines()[-1])


if __name__ == "__main__":
    main()
