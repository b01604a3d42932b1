"""Whether time grows with the work: one large topic, and turns of 800 KB.

    python benchmarks/growth.py

Prints seconds in one process, offline: `consolidate` after one new turn where all goes to one topic of 20,000
lines under 2,000 headings, and of twice that; `observe` of turns of 800 KB of several kinds.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from infinimem import Turn, open_memory

SIZE = 800_000
TURNS = {
    "dashes": "-" * SIZE,
    "one word": "a" * SIZE,
    "prose": "Ann moved to Lisbon in March, and Bo likes the cat. " * (SIZE // 52),
    "short lines": "a b\n" * (SIZE // 4),
}


def topic(headings: int, lines: int) -> float:
    """Seconds of a consolidation beside a topic of so many headings and lines."""
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(folder, model="offline", create=True, trust=True)
        rows = ["---", "id: topics/lisbon", "---"]
        for number in range(1, lines + 1):
            if number % (lines // headings) == 1:
                rows.append(f"# Part {number}")
            rows.append(f"- <seq={number},time=2025-03-03,source=user> Lisbon walk {number} was long.")
        (Path(folder) / "topics/lisbon.md").write_text("\n".join(rows) + "\n")
        memory.observe([Turn("I took a walk in Lisbon.", time="2025-04-01")])
        began = time.monotonic()
        memory.consolidate()
        return time.monotonic() - began


def turn(text: str) -> float:
    """Seconds of recording a turn and drawing from it."""
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(folder, model="offline", create=True, trust=True)
        began = time.monotonic()
        memory.observe([Turn(text)])
        return time.monotonic() - began


def main() -> None:
    for kind, text in TURNS.items():
        print(f"observe 800 KB of {kind}: {turn(text):.1f} s", flush=True)
    once = topic(2000, 20_000)
    print(f"consolidate, 2,000 headings, 20,000 lines: {once:.1f} s", flush=True)
    twice = topic(4000, 40_000)
    print(f"consolidate, 4,000 headings, 40,000 lines: {twice:.1f} s, {twice / once:.1f} times", flush=True)


if __name__ == "__main__":
    main()
