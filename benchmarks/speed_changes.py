"""Something is written: does the next call find it, and what does that call cost more?

By hand means by another program, behind infinimem's back. The second process has the library open, too,
and has answered before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speed_engines import Ours, notes
from speed_process import command, summary

PATIENCE = 5.0
"""Seconds for which something written is looked for."""

ROUNDS = 6
"""No round begins after so many times the seconds that a kind of query may take."""


def changes(task: Mapping[str, Any]) -> dict[str, Any]:
    """Documents changed by hand, and turns observed, one at a time; each looked for here and next door.

    Returns:
        For each of `hand`, `observed`, `hand, next door` and `observed, next door`: milliseconds that the
        next search took longer than one afterwards, how often it found what was written, and the
        milliseconds until it was found. `writing`: what `observe` itself took.
    """
    from infinimem.model import Turn

    library = Path(task["library"])
    engine = Ours(library, library)
    engine.open()
    engine.search("memory")
    second = subprocess.Popen(
        command({"name": "follow", "library": str(library)}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert second.stdin and second.stdout
    second.stdout.readline()
    rows: dict[str, list[dict[str, float]]] = {
        name: [] for name in ("hand", "hand, next door", "observed", "observed, next door")
    }
    writing: list[float] = []
    paths = notes(library)
    ends = time.perf_counter() + ROUNDS * task["seconds"]
    for number in range(task["rounds"]):
        if time.perf_counter() > ends:
            break
        for place, name in enumerate(("hand", "hand, next door")):
            path, word = paths[(2 * number + place) * 7 % len(paths)], f"quillon{2 * number + place}"
            before = path.read_bytes()
            try:
                path.write_bytes(before + f"\n{word} was here.\n".encode())
                rows[name].append(_next_door(second, word) if place else look(engine, word))
            finally:
                path.write_bytes(before)
            engine.search("memory")
            _next_door(second, "memory", 0.0)
        for place, name in enumerate(("observed", "observed, next door")):
            word = f"quillotan{2 * number + place}"
            turn = Turn(role="user", text=f"I met {word} in Lisbon.", session="speed")
            began = time.perf_counter()
            engine.memory.observe([turn])
            writing.append(time.perf_counter() - began)
            rows[name].append(_next_door(second, word) if place else look(engine, word))
    second.stdin.close()
    second.wait()
    return {name: _told(found) for name, found in rows.items()} | {"writing": summary(writing)}


def look(engine: Ours, word: str, patience: float = PATIENCE) -> dict[str, float]:
    """Search for a new word until it is found, for so many seconds."""
    began = time.perf_counter()
    found = bool(engine.search(word))
    took = until = time.perf_counter() - began
    at_once = found
    while not found and until < patience:
        time.sleep(0.02)
        found = bool(engine.search(word))
        until = time.perf_counter() - began
    again = time.perf_counter()
    engine.search(word)
    return {"added": took - (time.perf_counter() - again), "at_once": at_once, "found": found, "until": until}


def follow(task: Mapping[str, Any]) -> dict[str, Any]:
    """The second process: a word and seconds of patience come in, a line each; what became of it goes out."""
    engine = Ours(Path(task["library"]), Path(task["library"]))
    engine.open()
    engine.search("memory")
    print("ready", flush=True)
    for line in sys.stdin:
        word, patience = line.split()
        print(json.dumps(look(engine, word, float(patience))), flush=True)
    return {}


def _next_door(second: subprocess.Popen[str], word: str, patience: float = PATIENCE) -> dict[str, float]:
    assert second.stdin and second.stdout
    second.stdin.write(f"{word} {patience}\n")
    second.stdin.flush()
    answer: dict[str, float] = json.loads(second.stdout.readline())
    return answer


def _told(rows: list[dict[str, float]]) -> dict[str, float]:
    return {
        **summary([row["added"] for row in rows]),
        "at_once": sum(row["at_once"] for row in rows),
        "found": sum(row["found"] for row in rows),
        "until_p50_ms": summary([row["until"] for row in rows if row["found"]])["p50_ms"],
        "until_max_ms": 1e3 * max((row["until"] for row in rows if row["found"]), default=0.0),
    }
