"""What is measured, each in a process of its own. Started by speed.py: `speed_tasks.py '{"name": …}'`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from speed_engines import ENGINES
from speed_grep import GREPS, GaveUp, limited
from speed_process import peak_mb, summary

FEWEST = 4
"""Queries of a kind that are measured however long they take."""

HANGING = 2
"""Patterns of a kind that are waited for in vain; then the kind is left."""


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def repeated(calls: Iterable[Callable[[], object]], seconds: float) -> list[float]:
    """The time of each, until so many seconds have passed."""
    found: list[float] = []
    ends = time.perf_counter() + seconds
    for call in calls:
        if len(found) >= FEWEST and time.perf_counter() > ends:
            break
        found.append(timed(call))
    return found


def build(task: Mapping[str, Any]) -> dict[str, Any]:
    """From nothing to the first answer."""
    engine = ENGINES[task["engine"]](Path(task["library"]), Path(task["folder"]))
    return {"build_s": timed(engine.build)}


def first(task: Mapping[str, Any]) -> dict[str, Any]:
    """One answer from what `build` left; the whole process is timed from outside."""
    engine = ENGINES[task["engine"]](Path(task["library"]), Path(task["folder"]))
    engine.open()
    engine.search(task["query"])
    return {}


def search(task: Mapping[str, Any]) -> dict[str, Any]:
    """Warm queries of each kind; the last ones of each warm it up."""
    engine = ENGINES[task["engine"]](Path(task["library"]), Path(task["folder"]))
    began = time.perf_counter()
    engine.open()
    kinds = json.loads(Path(task["queries"]).read_bytes())
    engine.search(kinds["one"][-1])
    opened = time.perf_counter() - began
    found = {}
    for kind, queries in kinds.items():
        warming = max(len(queries) - task["count"], 1)
        repeated((lambda q=q: engine.search(q) for q in queries[-warming:]), 1.0)
        measured = (lambda q=q: engine.search(q) for q in queries[:-warming])
        found[kind] = summary(repeated(measured, task["seconds"]))
    return {"open_ms": 1e3 * opened, "kinds": found}


def grep(task: Mapping[str, Any]) -> dict[str, Any]:
    """Warm patterns of each kind over the library, or in one file of it."""
    engine = GREPS[task["engine"]](Path(task["library"]))
    doc = task.get("doc")

    def run(pattern: str, ignore: bool) -> int:
        with limited(task["limit"]):
            return engine.count_in(doc, pattern, ignore) if doc else engine.count(pattern, ignore)

    kinds = json.loads(Path(task["patterns"]).read_bytes())
    began = time.perf_counter()
    run(*kinds["literal"][-1])
    found: dict[str, Any] = {}
    opened = time.perf_counter() - began
    for kind, patterns in kinds.items():
        seconds: list[float] = []
        lines: list[int] = []
        gave_up: list[str] = []
        ends = time.perf_counter() + task["seconds"]
        for _ in range(task["rounds"]):
            for pattern, ignore in patterns:
                enough = len(seconds) + len(gave_up) >= FEWEST and time.perf_counter() > ends
                if pattern in gave_up or enough or len(gave_up) == HANGING:
                    continue
                began = time.perf_counter()
                try:
                    lines.append(run(pattern, ignore))
                    seconds.append(time.perf_counter() - began)
                except GaveUp:
                    gave_up.append(pattern)
        found[kind] = {
            **summary(seconds),
            "max_ms": 1e3 * max(seconds, default=0.0),
            "lines": lines[: len(patterns) - len(gave_up)],
            "gave_up": gave_up,
            "limit_s": task["limit"],
        }
    return {"open_ms": 1e3 * opened, "kinds": found}


def change(task: Mapping[str, Any]) -> dict[str, Any]:
    """A peer takes in a changed document; what the next search takes longer counts too."""
    from speed_engines import notes, numbers

    library = Path(task["library"])
    engine = ENGINES[task["engine"]](library, Path(task["folder"]))
    engine.open()
    numbers(library)
    engine.search("memory")
    seconds, found = [], 0
    for number, path in enumerate(islice(notes(library), 0, None, 7)):
        if number == task["rounds"]:
            break
        word = f"quillon{number}"
        text = path.read_text(encoding="utf-8") + f"\n{word} was here.\n"
        whole = timed(
            lambda path=path, text=text, word=word: (engine.change(path, text), engine.search(word))
        )
        seconds.append(whole - timed(lambda word=word: engine.search(word)))
        found += bool(engine.search(word))
    return {"peer": {**summary(seconds), "found": found}}


def main() -> None:
    from speed_changes import changes, follow

    task = json.loads(sys.argv[1])
    tasks: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "build": build,
        "first": first,
        "search": search,
        "grep": grep,
        "change": change,
        "changes": changes,
        "follow": follow,
    }
    answer = tasks[task["name"]](task)
    print(json.dumps({**answer, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
