"""A measurement in a process of its own, watched from outside: what it answers and the memory it took."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("speed_tasks.py")
TICK = 0.02
"""Seconds between two looks at a process."""


def run(task: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a task of speed_tasks.py answers, with `peak_mb` and `anonymous_mb` of its process.

    Args:
        task: `name` and its arguments.
        environment: variables beside those that there are.

    Raises:
        SystemExit: the process failed; its last words are in the message.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        command(task),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        text=True,
    )
    peaks = [0.0]
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(process.pid, peaks, ended), daemon=True)
    watch.start()
    out, err = process.communicate()
    took = time.perf_counter() - began
    ended.set()
    watch.join()
    if process.returncode:
        raise SystemExit(f"{task['name']} of {task.get('engine')}: {err.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return {**answer, "anonymous_mb": peaks[0] or None, "wall_s": took}


def command(task: Mapping[str, Any]) -> list[str]:
    """The command line of a task."""
    return [sys.executable, str(SCRIPT), json.dumps(task)]


def _watch(pid: int, peaks: list[float], ended: threading.Event) -> None:
    while not ended.wait(TICK):
        peaks[0] = max(peaks[0], _status(f"/proc/{pid}/status", "RssAnon"))


def peak_mb() -> float:
    """The most memory that this process had in use, in MB, mapped files included."""
    used = _status("/proc/self/status", "VmHWM")
    if used:
        return used
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _status(path: str, name: str) -> float:
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(path).read_text(), re.MULTILINE)
    except OSError:
        return 0.0
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of the values does not exceed; 0 of none."""
    ranked = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)] if ranked else 0.0


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds, and of how many."""
    return {
        "n": len(seconds),
        "p50_ms": 1e3 * quantile(seconds, 0.5),
        "p95_ms": 1e3 * quantile(seconds, 0.95),
    }
