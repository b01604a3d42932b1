"""Threads that work through units of work: each is opened by one thread, its tasks are done by any.

As few units are open at once as keep the threads busy: an open one holds a library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

PATIENCE = 10.0
"""Seconds for which a run that was interrupted waits for what its threads are at."""


class Unit(Protocol):
    """Something that is opened, worked at, and closed."""

    def open(self) -> Sequence[Callable[[], None]]:
        """Make ready; gives the tasks."""
        ...

    def close(self) -> None:
        """All tasks are done."""
        ...


@dataclass
class _Open:
    unit: Unit
    waiting: list[Callable[[], None]]
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.waiting)


class Workers:
    """Works through units.

    Args:
        units: asked for as threads get to them.
        jobs: threads.
    """

    def __init__(self, units: Iterator[Unit], jobs: int) -> None:
        self._units = units
        self._jobs = jobs
        self._turn = threading.Condition()
        self._open: list[_Open] = []
        self._opening = 0
        self._over = False
        self._error: BaseException | None = None

    def run(self, interrupted: Callable[[], None]) -> None:
        """Do all of it; the first error of any thread ends it, and is raised.

        Args:
            interrupted: called at a Ctrl-C, before the threads are waited for.
        """
        threads = [
            threading.Thread(target=self._work, name=f"bench-{number}", daemon=True)
            for number in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # a join without end would hear no Ctrl-C
        except BaseException:
            self._end()
            interrupted()
            for thread in threads:
                thread.join(PATIENCE)
            raise
        if self._error is not None:
            raise self._error

    def _end(self, error: BaseException | None = None) -> None:
        with self._turn:
            self._over = True
            self._error = self._error or error
            self._turn.notify_all()

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                task()
        except BaseException as error:
            self._end(error)

    def _next(self) -> Callable[[], None] | None:
        """A task of an open unit, else the opening of another; None when all is done."""
        with self._turn:
            while not self._over:
                for unit in self._open:
                    if unit.waiting:
                        task = unit.waiting.pop(0)
                        return lambda: self._do(unit, task)
                if (unopened := next(self._units, None)) is not None:
                    self._opening += 1
                    return lambda: self._begin(unopened)
                if not self._opening:
                    return None
                self._turn.wait()
            return None

    def _begin(self, unit: Unit) -> None:
        try:
            found = _Open(unit, list(unit.open()))
        finally:
            with self._turn:
                self._opening -= 1
                self._turn.notify_all()
        with self._turn:
            if found.waiting:
                self._open.append(found)
                self._turn.notify_all()
        if not found.left:
            unit.close()

    def _do(self, opened: _Open, task: Callable[[], None]) -> None:
        task()
        with self._turn:
            opened.left -= 1
            is_done = not opened.left
            if is_done:
                self._open.remove(opened)
        if is_done:
            opened.unit.close()
