"""Many writers at once: processes that append while others consolidate with a slow model, and threads."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_library import problems

from infinimem import Turn, open_memory
from infinimem.llm.base import Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.model import NewEntry, Plan
from infinimem.store.library import Library, init
from infinimem.store.view import Applied

TURNS_A_SESSION = 25
PATIENCE = 60.0
"""Seconds that a model waits at most for the append that the test wants to see."""


@dataclass(frozen=True)
class Size:
    """How many processes append how many turns each, and how often the others consolidate in all."""

    writers: int
    appends: int
    consolidators: int
    consolidations: int

    @property
    def total(self) -> int:
        return self.writers * self.appends


class Shared:
    """What the processes of one run know of each other."""

    def __init__(self, size: Size) -> None:
        context = multiprocessing.get_context("spawn")
        self.size = size
        self.start = context.Barrier(size.writers + size.consolidators)
        self.said = context.Value("i", 0)
        self.rounds = context.Value("i", 0)
        self.asked = context.Event()
        """A model has begun to think."""
        self.waited_for = context.Value("i", 0)
        """How many models want to see an append before they answer."""
        self.failed = context.Event()


shared: Shared


def share(given: Shared) -> None:
    global shared
    shared = given


def count(counter: Any, by: int = 1) -> None:
    with counter.get_lock():
        counter.value += by


class Abandoned(Exception):
    """Another process failed, so that this one would wait for ever."""


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        if shared.failed.is_set():
            raise Abandoned
        time.sleep(0.005)


@contextmanager
def together() -> Iterator[None]:
    """Begin when all have begun; let nobody wait for a process that failed."""
    shared.start.wait()
    try:
        yield
    except BaseException:
        shared.failed.set()
        raise


def said(writer: int, number: int) -> Turn:
    text = f"Worker {writer} planted tree {number} in garden {number * 31 % 97}."
    named = str(number) if writer % 4 > 1 else None  # who may have been heard before is looked for everywhere
    return Turn(text, session=f"w{writer}-{number // TURNS_A_SESSION}", turn=named)


def write(root: Path, writer: int) -> dict[int, str]:
    """Append, not far ahead of the consolidations unless a model waits for it; the last when one has begun.

    Returns:
        Text by seq of what was acknowledged.
    """
    size = shared.size
    library = Library(root)
    memory = open_memory(root, model="offline")
    acknowledged: dict[int, str] = {}
    with together():
        for number in range(size.appends):
            due = number * size.consolidations // size.appends - size.consolidators
            until(lambda due=due: shared.rounds.value >= due or shared.waited_for.value > 0)  # type: ignore[misc]
            if number == size.appends - 1:
                until(shared.asked.is_set)
            turn = said(writer, number)
            if writer % 2:
                places = memory.observe([turn])
            else:
                (place,) = library.record([turn])
                outcome = library.apply(Plan(adds=(NewEntry(turn.text, (place.seq,)),)))
                assert isinstance(outcome, Applied)
                places = (place, *outcome.added)
            acknowledged |= {place.seq: place.text for place in places}
            count(shared.said)
    return acknowledged


class Slow:
    """The offline client, which thinks until somebody has appended: the first time however long it takes."""

    name = "slow"

    def __init__(self) -> None:
        self._inner = OfflineClient()
        self.grown = 0

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        before = shared.said.value
        first = self.grown == 0
        count(shared.waited_for, by=first)
        shared.asked.set()
        end = time.monotonic() + (PATIENCE if first else 0.2)
        while shared.said.value == before < shared.size.total and time.monotonic() < end:
            if shared.failed.is_set():
                raise Abandoned
            time.sleep(0.005)
        self.grown += shared.said.value > before
        count(shared.waited_for, by=-first)
        return self._inner.complete(task, variables)


def consolidate(root: Path) -> tuple[int, int]:
    """Consolidate all along; returns the receipts got and the calls during which somebody appended."""
    size, rounds = shared.size, shared.size.consolidations // shared.size.consolidators
    model = Slow()
    memory = open_memory(root, model=model)
    memory.tools.search(query="what is imported when first used")
    receipts = 0
    with together():
        for number in range(rounds):
            until(lambda due=number * size.total // rounds: shared.said.value >= due)  # type: ignore[misc]
            receipts += memory.consolidate() is not None
            count(shared.rounds)
    return receipts, model.grown


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(3, 12, 1, 3), id="short"),
        pytest.param(Size(2, 20, 2, 4), id="two consolidators"),
        pytest.param(Size(8, 1000, 1, 50), id="long", marks=pytest.mark.soak),
        pytest.param(Size(4, 500, 2, 50), id="two consolidators, long", marks=pytest.mark.soak),
    ],
)
def test_processes_append_while_others_consolidate(tmp_path: Path, size: Size, record_property: Any) -> None:
    root = init(tmp_path / "memory").root
    context = multiprocessing.get_context("spawn")
    workers = size.writers + size.consolidators
    with ProcessPoolExecutor(workers, context, share, (Shared(size),)) as pool:
        writing = [pool.submit(write, root, writer) for writer in range(size.writers)]
        sorting = [pool.submit(consolidate, root) for _ in range(size.consolidators)]
        everyone: list[Future[Any]] = [*writing, *sorting]
        wait(everyone)
    failed = [future.exception() for future in everyone]
    assert [repr(error) for error in failed if error and not isinstance(error, Abandoned)] == []
    given = [seq for future in writing for seq in future.result()]
    assert len(set(given)) == len(given), "a seq was given twice"
    acknowledged = {seq: text for future in writing for seq, text in future.result().items()}
    receipts, grown = map(sum, zip(*(future.result() for future in sorting), strict=True))
    assert problems(root, acknowledged) == []
    memory = open_memory(root, model="offline")
    memory.consolidate()
    assert problems(root, acknowledged) == []
    view = memory.view
    every = {said(writer, number).text for writer in range(size.writers) for number in range(size.appends)}
    evidence = list(view.entries("evidence"))
    assert len(evidence) == size.total
    assert {place.text for place in evidence} == every
    entries = [*view.entries(), *view.entries("archive")]
    drawn = Counter(seq for place in entries for seq in place.entry.origin)
    assert drawn == dict.fromkeys((place.seq for place in evidence), 1)
    assert {place.text for place in entries} == every
    numbers = [receipt.number for receipt in memory.receipts()]
    assert len(set(numbers)) == len(numbers) >= receipts > 0
    assert grown > 0, "no append returned while a model was thinking"
    record_property("receipts", len(numbers))
    record_property("calls_with_appends", grown)
