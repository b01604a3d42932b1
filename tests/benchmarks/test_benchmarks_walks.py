"""The count of files that a turn and a question pass."""

from __future__ import annotations

import runpy
from threading import Thread
from typing import Any

from infinimem import law, tokens
from infinimem.model import CURRENT


def test_a_file_counts_when_a_function_of_it_runs(load: Any) -> None:
    script = load("walks")

    def walk() -> None:
        runpy.run_path(tokens.__file__)  # defines functions, and calls none
        other = Thread(target=law.is_archive, args=(CURRENT,))
        other.start()
        other.join()

    assert script.traced(walk) == {"infinimem/law.py": ["is_archive"]}
