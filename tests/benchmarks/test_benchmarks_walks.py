"""The count of files that a turn and a question pass."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

from infinimem import law, tokens
from infinimem.model import CURRENT

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "walks.py"


def test_a_file_counts_when_a_function_of_it_runs(load: Any) -> None:
    script = load("walks")

    def walk() -> None:
        runpy.run_path(tokens.__file__)  # defines functions, and calls none
        other = Thread(target=law.is_archive, args=(CURRENT,))
        other.start()
        other.join()

    assert script.traced(walk) == {"infinimem/law.py": ["is_archive"]}


def test_each_walk_is_counted_and_its_files_are_listed() -> None:
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--list"], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.stderr == ""
    rows = re.findall(r"^(\w+) +(\d+) files, bar (\d+)\n((?: .*\n)+)", ran.stdout, re.M)
    assert [name for name, *_ in rows] == ["observe", "retrieve", "ask", "consolidate"]
    assert ran.returncode == int(any(int(count) > int(bar) for _, count, bar, _ in rows))
    for name, count, _, files in rows:
        assert files.count("\n") == int(count)
        assert re.search(r"infinimem/store/library.py: .*\bLibrary\.view\b", files)
        assert ("infinimem/law.py" in files) == (name in ("observe", "consolidate"))
        assert ("infinimem/answer.py" in files) == (name == "ask")
