"""Fleets on real engines for tests, and what must hold of their libraries after anything went wrong."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from fleet_engines import Engines, database

from infinimem import Turn
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.offline import OfflineClient

_WHY = "needs the extra: pip install 'infinimem[fleet]'"
psycopg, *_ = (pytest.importorskip(name, reason=_WHY) for name in ("psycopg", "procrastinate", "obstore"))

from infinimem.fleet.fleet import Fleet, open_fleet  # noqa: E402

LEASE = 1.5
PATIENCE = 600.0
"""Seconds until work that does not end counts as hung."""


class Thinking(OfflineClient):
    """The offline client, which takes a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds, self.calls = seconds, 0

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        self.calls += 1
        time.sleep(self._seconds)
        return super().complete(task, variables)


class Faulty:
    """A store that counts its calls, and fails once: at call `at`, before it is done or after.

    Args:
        store: of obstore.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: list[str] = []
        self.at, self.after = 0, False

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)

        def call(*args: Any, **options: Any) -> Any:
            from obstore.exceptions import GenericError

            self.calls.append(name)
            failing = len(self.calls) == self.at
            if failing and not self.after:
                raise GenericError("no answer")
            done = real(*args, **options)
            if failing:
                raise GenericError("the answer is lost")
            return done

        return call


@contextmanager
def made(engines: Engines, folder: Path, llm: LLM | None = None) -> Iterator[Fleet]:
    """A fleet of its own, ready."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name, value in engines.env.items():
            patch.setenv(name, value)
        url = f"s3://{engines.bucket}/{token_hex(6)}"
        fleet = stack.enter_context(
            open_fleet(
                url, database=stack.enter_context(database(engines)), cache=folder, model=llm or "offline"
            )
        )
        fleet.init()
        yield fleet


@pytest.fixture
def fleet(engines: Engines, tmp_path: Path) -> Iterator[Fleet]:
    with made(engines, tmp_path / "cache") as found:
        yield found


def another(fleet: Fleet, cache: Path, llm: LLM | None = None) -> Fleet:
    """The same fleet as another machine sees it."""
    return open_fleet(fleet.home.url, database=fleet.database, cache=cache, model=llm or "offline")


def faulty(fleet: Fleet) -> Faulty:
    """Have a fleet's calls to the store go through a wrapper, which is given."""
    found = Faulty(fleet.home.store)
    fleet.home.store = found
    return found


def drain(fleet: Fleet, concurrency: int = 4) -> None:
    """Work until nothing is due, running or waiting for its next try."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        asyncio.run(fleet.work(concurrency, LEASE, wait=False))
        now = fleet.status()
        if not now["due"] and not now["running"]:
            return
        time.sleep(0.1)
    raise AssertionError(f"it never ends: {fleet.status()}")


def texts(fleet: Fleet, library: str) -> list[str]:
    """What was said in a library, as its head has it, sorted."""
    with fleet.open(library) as memory:
        return sorted(place.text for place in memory.view.entries("evidence"))


def problems(fleet: Fleet, said: Mapping[str, list[str]]) -> list[str]:
    """What is wrong with libraries after a fault, when all is done; empty when nothing is.

    Args:
        said: texts of acknowledged turns, each another one, by library.
    """
    found = []
    for library, expected in said.items():
        there = Counter(texts(fleet, library))
        found += [f"{library}: {text!r} is lost" for text in expected if not there[text]]
        found += [f"{library}: {text!r} is there {count} times" for text, count in there.items() if count > 1]
        with fleet.open(library) as memory:
            found += [
                f"{library}: {one.what} at {one.where}" for one in memory.doctor() if one.level == "error"
            ]
            found += [f"{library}: turn {place.seq} is pending" for place in memory.view.uncited()]
            drawn = Counter(place.text for place in memory.view.entries("default"))
            found += [f"{library}: entry {text!r} stands {n} times" for text, n in drawn.items() if n > 1]
        if left := fleet.home.look(library).inbox:
            found.append(f"{library}: {left} are left in the inbox")
    return found


def fact(number: int) -> str:
    """A text of its own from which rules draw an entry."""
    return f"I planted tree number {number} in garden {number % 7}."


def turn(number: int) -> Turn:
    return Turn(fact(number))


@contextmanager
def worker(
    fleet: Fleet, cache: Path, seconds: float, lease: float = LEASE
) -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own; it has begun to work."""
    arguments = [fleet.home.url, fleet.database, str(cache), str(seconds), str(lease)]
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "working\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _work(url: str, database: str, cache: str, seconds: float, lease: float) -> None:
    with open_fleet(url, database=database, cache=cache, model=Thinking(seconds)) as fleet:
        fleet.status()
        print("working", flush=True)
        asyncio.run(fleet.work(4, lease))


if __name__ == "__main__":
    _work(*sys.argv[1:4], *map(float, sys.argv[4:]))  # type: ignore[arg-type]
