"""Print a digest of every file that a fixed history leaves, for each of the five systems.

    python benchmarks/recorded.py [--steps 400] [--files]

The history comes from a seed: turns, consolidations, undos, forgetting, a person's edits, moves and
deletions, with an injected clock and the rules as the model. Two versions of the package that print the same
digests write the same bytes and raise the same errors; `--files` prints a digest a file, to see which differ.
The lock file holds the number of a process and is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from infinimem import InfinimemError, Memory, Turn, open_memory

STRATEGIES = ("infini", "allmem", "gam", "recmem", "xmemory")
SIGNED = re.compile(r"^- <seq=(\d+)[,>].*$", re.M)
WHO = (
    "My sister Ines",
    "The boiler",
    "Our dog Rolf",
    "My bike",
    "The tax office",
    "Project Heron",
    "Dr Okafor",
    "We",
)
WHAT = (
    "moved to Porto",
    "was repaired by Mr Lind",
    "needs new tyres",
    "prefers tea to coffee",
    "is due on 4 May",
    "weighs 31 kg",
    "will start in March",
    "no longer likes the old plan",
    "paid 240 euros for the tickets",
)
STEPS = ("say",) * 6 + ("consolidate",) * 2 + ("undo", "forget", "edit", "append", "move", "delete")


class History:
    """One library and the chance that its history follows."""

    def __init__(self, root: Path, strategy: str) -> None:
        self.root, self.said = root, 0
        self.chance = random.Random(strategy)
        self.now = datetime(2026, 1, 1, 9, tzinfo=UTC)
        root.mkdir()
        (root / "infinimem.toml").write_text(f'strategy = "{strategy}"\n')
        self.memory: Memory = open_memory(root, model="offline", strategy=strategy, clock=lambda: self.now)

    def line(self) -> tuple[Path, str] | None:
        """One signed line of the topics, or None."""
        lines = [(path, match[0]) for path in self.topics() for match in SIGNED.finditer(path.read_text())]
        return self.chance.choice(lines) if lines else None

    def topics(self) -> list[Path]:
        return sorted((self.root / "topics").rglob("*.md"))

    def say(self) -> None:
        self.said += 1
        text = f"{self.chance.choice(WHO)} {self.chance.choice(WHAT)}, that is note {self.said}."
        self.memory.observe([Turn(text, time=self.now.isoformat(), session=f"{self.now:%Y-%m-%d}")])

    def consolidate(self) -> None:
        self.memory.consolidate()

    def undo(self) -> None:
        if receipts := self.memory.receipts():
            self.memory.undo(self.chance.choice(receipts[-5:]).id)

    def forget(self) -> None:
        if self.chance.random() < 0.4 and (some := self.line()) and (match := SIGNED.match(some[1])):
            self.memory.forget([int(match[1])])

    def edit(self) -> None:
        if some := self.line():
            some[0].write_text(some[0].read_text().replace(some[1], f"{some[1]} (corrected)", 1))

    def append(self) -> None:
        if topics := self.topics():
            path = self.chance.choice(topics)
            path.write_text(f"{path.read_text().rstrip()}\n- Typed by hand after note {self.said}\n")

    def move(self) -> None:
        if (some := self.line()) and (to := self.chance.choice(self.topics())) != some[0]:
            to.write_text(f"{to.read_text()}\n{some[1]}\n")
            some[0].write_text(some[0].read_text().replace(f"{some[1]}\n", "", 1))

    def delete(self) -> None:
        if some := self.line():
            some[0].write_text(some[0].read_text().replace(f"{some[1]}\n", "", 1))

    def digests(self) -> dict[str, str]:
        """The digest of each file of the library, by its path; state.db has an id of its own each time."""
        digests = {}
        files = (path for path in self.root.rglob("*") if path.is_file())
        for path in sorted(path for path in files if path.name not in ("lock", "state.db")):
            data = path.read_bytes()
            if path.name == "seq":  # the mark alone: whose it is differs from run to run
                data = data.split()[0] + b"\n"
            digests[str(path.relative_to(self.root))] = hashlib.sha256(data).hexdigest()[:16]
        return digests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=400, help="steps for each system")
    parser.add_argument("--files", action="store_true", help="a line a file")
    options = parser.parse_args()
    for strategy in STRATEGIES:
        with tempfile.TemporaryDirectory() as folder:
            history = History(Path(folder) / "library", strategy)
            told = hashlib.sha256()
            for _ in range(options.steps):
                history.now += timedelta(hours=5)
                name = history.chance.choice(STEPS)
                try:
                    getattr(history, name)()
                except InfinimemError as error:
                    told.update(str(error).replace(folder, "").encode())
            digests = history.digests()
            told.update(repr(digests).encode())
            print(f"{strategy:8} {len(digests):4} files  {told.hexdigest()[:16]}")
            if options.files:
                print(*(f"  {digest}  {path}" for path, digest in digests.items()), sep="\n")


if __name__ == "__main__":
    main()
