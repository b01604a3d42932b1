"""Workers that are killed or stopped, jobs that are delivered twice, engines that fail once: all that
was acknowledged is there once, and the work goes on by itself."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from fault_library import seed as seed
from fleet_library import LEASE, Thinking, another, drain, fact, faulty, problems, turn, worker
from fleet_library import fleet as fleet
from fleet_library import psycopg as psycopg

from infinimem.errors import FleetError
from infinimem.fleet.fleet import Fleet

WRITERS, LIBRARIES = 4, 6
Said = dict[str, list[str]]


class Writers:
    """Four threads that append, each turn another one, and note what was acknowledged.

    Args:
        fleet: that they append to.
        pause: seconds between two of one thread.
    """

    def __init__(self, fleet: Fleet, pause: float) -> None:
        self._fleet, self._pause = fleet, pause
        self._stop, self._lock, self._count = threading.Event(), threading.Lock(), 0
        self.said: Said = {f"lib-{n}": [] for n in range(LIBRARIES)}

    def _write(self) -> None:
        while not self._stop.wait(self._pause):
            with self._lock:
                self._count += 1
                number = self._count
            library = f"lib-{number % LIBRARIES}"
            self._fleet.append(library, [turn(number)])
            with self._lock:
                self.said[library].append(fact(number))

    def __enter__(self) -> Writers:
        self._threads = [threading.Thread(target=self._write) for _ in range(WRITERS)]
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for one in self._threads:
            one.join()


@contextmanager
def written(fleet: Fleet, pause: float) -> Iterator[Writers]:
    """Writers for the time of the block; at its end all is consolidated, and must be sound."""
    with Writers(fleet, pause) as writers:
        yield writers
    said = {library: texts for library, texts in writers.said.items() if texts}
    assert said
    drain(fleet)
    assert problems(fleet, said) == []


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.soak)])
def test_workers_that_are_killed(kills: int, fleet: Fleet, tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    with written(fleet, 0.05 if kills < 10 else 1):
        for _ in range(kills):
            with worker(fleet, tmp_path / "theirs", seconds=choose.choice((0, 0.05))):
                time.sleep(choose.uniform(0.05, 0.6))


@pytest.mark.parametrize("stops", [1, pytest.param(50, marks=pytest.mark.soak)])
def test_workers_that_are_stopped_for_longer_than_their_lease(
    stops: int, fleet: Fleet, tmp_path: Path, seed: int
) -> None:
    """The other one takes over meanwhile; whoever wakes up commits nothing that is old."""
    choose = random.Random(seed)
    with (
        written(fleet, 0.05 if stops < 10 else 1),
        worker(fleet, tmp_path / "a", seconds=0.3) as one,
        worker(fleet, tmp_path / "b", seconds=0.1),
    ):
        for _ in range(stops):
            time.sleep(choose.uniform(0.4, 0.9))
            os.kill(one.pid, signal.SIGSTOP)
            time.sleep(2 * LEASE)
            os.kill(one.pid, signal.SIGCONT)


@pytest.mark.parametrize("times", [20, pytest.param(500, marks=pytest.mark.soak)])
def test_a_worker_that_is_ended_as_it_starts(times: int, fleet: Fleet, seed: int) -> None:
    dice = random.Random(seed)

    async def end_early() -> None:
        work = asyncio.create_task(fleet.work())
        await asyncio.sleep(dice.uniform(0.005, 0.04))
        work.cancel()
        assert await asyncio.wait([work], timeout=60) == ({work}, set())

    fleet.append("anna", [turn(1)])
    for _ in range(times):
        asyncio.run(asyncio.wait_for(end_early(), 90))


@pytest.mark.parametrize("doubles", [6, pytest.param(500, marks=pytest.mark.soak)])
def test_jobs_that_are_delivered_twice(doubles: int, fleet: Fleet, tmp_path: Path) -> None:
    with (
        written(fleet, 0.02 if doubles < 100 else 0.5),
        another(fleet, tmp_path / "a", Thinking(0.01)) as a,
        another(fleet, tmp_path / "b", Thinking(0.01)) as b,
        ThreadPoolExecutor(2) as threads,
    ):
        for number in range(doubles):
            for done in [threads.submit(one.serve, f"lib-{number % LIBRARIES}") for one in (a, b)]:
                with suppress(FleetError):  # a third one, and a fourth, were first all the time
                    done.result()


@pytest.mark.parametrize(("appends", "pause"), [(100, 0), pytest.param(1000, 0.05, marks=pytest.mark.soak)])
def test_a_library_that_is_never_quiet_starves_no_other(
    appends: int, pause: float, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute of 1,000 appends: another library waits for what is due before it, and that is `busy`
    once, and once more if it came between the note and the append."""
    real, happened, said = fleet.serve, list[tuple[str, str]](), Said(busy=[])
    was_served = threading.Event()

    def serve(library: str) -> bool:
        happened.append(("served", library))
        served = real(library)
        if library == "busy":
            was_served.set()
        return served

    def write() -> None:
        for number in range(appends):
            library = f"lib-{number}" if number % 20 == 0 else "busy"
            if number == appends // 2:
                was_served.wait()  # or a slow worker serves it once, after all of them
            happened.append(("appended", library))
            fleet.append(library, [turn(number)])
            said.setdefault(library, []).append(fact(number))
            time.sleep(pause)

    monkeypatch.setattr(fleet, "serve", serve)
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        while not writing.done():
            drain(fleet, concurrency=1)
        writing.result()
    drain(fleet)
    for library in said.keys() - {"busy"}:
        since = happened.index(("appended", library))
        waited = happened[since : happened.index(("served", library), since)]
        assert waited.count(("served", "busy")) <= 2
    assert happened.count(("served", "busy")) > 1
    assert problems(fleet, said) == []


# ── engines that fail once ──────────────────────────────────────────────────────────────────────


def until(act: Callable[[], Any]) -> Any:
    """Call again what may be called again."""
    for _ in range(3):
        with suppress(FleetError):
            return act()
    return act()


def life(fleet: Fleet, library: str) -> None:
    """All that is done with a library, and done again where it failed."""
    until(lambda: fleet.append(library, [turn(1)], key="a"))
    until(lambda: fleet.serve(library))
    until(lambda: fleet.append(library, [turn(2), turn(3)], key="b"))
    until(lambda: fleet.serve(library))
    until(lambda: fleet.append(library, [turn(4)], key="c"))
    until(lambda: fleet.forget(library, match="number 2 "))


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_store_that_fails_once_at_each_call(step: int, after: bool, fleet: Fleet, seed: int) -> None:
    """At every ninth in the ordinary run, each time from another one on."""
    store = faulty(fleet)
    life(fleet, "whole")
    calls, wrong = len(store.calls), {}
    assert calls > 15
    for at in range(1 + seed % step, calls + 1, step):
        library = f"lib-{at}"
        store.calls.clear()
        store.at, store.after = at, after
        life(fleet, library)
        drain(fleet)
        if found := problems(fleet, {library: [fact(1), fact(3), fact(4)]}):
            wrong[f"call {at}, {store.calls[at - 1]}"] = found
    assert wrong == {}


class Database:
    """Statements to PostgreSQL counted, and one of them failing: before it is done or after."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = self.at = 0
        self.after, self._lock = False, threading.Lock()
        for kind in (psycopg.Cursor, psycopg.AsyncCursor):
            patch.setattr(kind, "execute", self._wrapped(kind.execute))

    @contextmanager
    def _counted(self) -> Iterator[bool]:
        with self._lock:
            self.count += 1
            failing = self.count == self.at
        if failing and not self.after:
            raise psycopg.OperationalError("the connection is lost")
        yield failing
        if failing:
            raise psycopg.OperationalError("the answer is lost")

    def _wrapped(self, real: Any) -> Any:
        async def later(cursor: Any, *args: Any, **options: Any) -> Any:
            with self._counted() as failing:
                done = await real(cursor, *args, **options)
                if failing:
                    await cursor.connection.commit()
            return done

        def now(cursor: Any, *args: Any, **options: Any) -> Any:
            with self._counted() as failing:
                done = real(cursor, *args, **options)
                if failing:
                    cursor.connection.commit()
            return done

        return later if inspect.iscoroutinefunction(real) else now


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_database_that_fails_once_at_each_statement(
    step: int, after: bool, fleet: Fleet, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is done at last by itself: an append that the database did not hear of waits for the next look
    through the store, which is called here at once."""

    def all_of_it(library: str) -> None:
        heard = fleet.append(library, [turn(1)])
        heard &= fleet.append(library, [turn(2)])
        if not heard:
            until(fleet.requeue)
        until(lambda: drain(fleet))

    database = Database(monkeypatch)
    all_of_it("whole")
    statements, wrong = database.count, {}
    assert statements > 10
    for at in range(1 + seed % step, statements + 1, step):
        database.count, database.at, database.after = 0, at, after
        all_of_it(f"lib-{at}")
        database.at = 0
        if found := problems(fleet, {f"lib-{at}": [fact(1), fact(2)]}):
            wrong[f"statement {at}"] = found
    assert wrong == {}
