"""Count the files of the package that a turn, retrieve, ask and consolidate pass on their way.

    python benchmarks/walks.py           # one line a walk: how many files, and the bar
    python benchmarks/walks.py --list    # also the files, each with the functions that ran

A file counts when a function of it runs; what runs at import does not. Each walk starts in a process of its
own, with empty caches, over a copy of sample_library/ that has just been opened, offline. Opening the library
does not count, reading its files does. The exit status is 1 where a walk passes more files than its bar.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import multiprocessing
import os
import pkgutil
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType

import infinimem
from infinimem import Memory, Turn, open_memory

CHECKOUT = Path(infinimem.__file__).parents[1]
ROOMS = ("infinimem", "tools", "prompts")
QUESTION = "Where does Nora live?"

FACES = ("__main__", "adapters", "cli", "evaluation", "hooks", "mcp")
"""They call the library and are never called by it."""

Passed = dict[str, list[str]]
"""Files of the package, and the functions of each that ran; both sorted."""

WALKS: dict[str, tuple[int, Callable[[Memory], object]]] = {
    "observe": (25, lambda memory: memory.observe([Turn("I moved to Lisbon in March.", session="new")])),
    "retrieve": (22, lambda memory: memory.retrieve(QUESTION)),
    "ask": (35, lambda memory: memory.ask(QUESTION)),
    "consolidate": (40, lambda memory: memory.consolidate()),
}
"""The most files that each walk may pass, and the walk."""


def walked(name: str) -> Passed:
    """What a walk passes, in a process in which nothing has been asked yet."""
    with tempfile.TemporaryDirectory() as home:
        for kind in ("CACHE", "CONFIG", "DATA"):
            os.environ[f"XDG_{kind}_HOME"] = str(Path(home, kind))
        root = Path(home, "library")
        shutil.copytree(
            CHECKOUT / "sample_library", root, copy_function=shutil.copy
        )  # a buffer that is not stale
        memory = open_memory(root, model="offline")
        return traced(lambda: WALKS[name][1](memory))


def traced(walk: Callable[[], object]) -> Passed:
    """What runs in this call, in this thread and in those that it starts."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    passed: dict[str, set[str]] = {}
    for code in codes:
        # Bodies of modules and classes are not optimised; functions, generators and lambdas are.
        if code.co_flags & inspect.CO_OPTIMIZED and (file := _file(code)):
            passed.setdefault(file, set()).add(code.co_qualname.partition(".<locals>")[0])
    return {file: sorted(names) for file, names in sorted(passed.items())}


def _file(code: CodeType) -> str:
    """Its file, below the checkout; "" where it is none of the package's."""
    path = Path(code.co_filename)
    inside = path.relative_to(CHECKOUT) if path.is_relative_to(CHECKOUT) else Path()
    return str(inside) if inside.parts and inside.parts[0] in ROOMS else ""


def _import_all() -> None:
    """All modules below the faces, so that no walk imports one."""
    for module in pkgutil.walk_packages(infinimem.__path__, "infinimem."):
        if module.name.split(".")[1] not in FACES:
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="also the files, with the functions that ran")
    shown = parser.parse_args().list
    within = True
    _import_all()
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for (name, (bar, _)), passed in zip(WALKS.items(), pool.imap(walked, WALKS), strict=True):
            print(f"{name:12}{len(passed):3} files, bar {bar}")
            for file, functions in passed.items() if shown else ():
                print(f"    {file}: {', '.join(functions)}")
            within &= len(passed) <= bar
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
