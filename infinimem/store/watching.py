"""A watcher for as long as it can be relied on.

It is started in a thread, for it walks through the whole folder, and relied on once everything was looked at
after its start. Now and then a thread looks at everything again. Where that finds what the watcher should
have told and did not, the folder is one that cannot be watched (on a network, or with more folders than the
system watches), and it is given up.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass

from infinimem.store.watcher import GRACE, ChangeSet, Watcher

REST = 30.0
"""Seconds between two looks at everything."""
SHARE = 100
"""And so many times what the last one took: one percent of the time."""


@dataclass(frozen=True)
class Survey:
    """A look at everything.

    Args:
        paths: what had changed, and nobody knew of.
        took: seconds.
    """

    paths: Collection[str]
    took: float


class Watching:
    """Starts, uses and gives up a watcher.

    Args:
        make: gives the watcher.
        survey: looks at everything; called in a thread.
        clock: seconds, monotonic.
        thread: runs a function later; for tests.
    """

    def __init__(
        self,
        make: Callable[[], Watcher],
        survey: Callable[[], Survey],
        clock: Callable[[], float],
        thread: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._make = make
        self._survey = survey
        self._clock = clock
        self._thread = thread or _in_thread
        self._watcher: Watcher | None = None
        self._state = "new"
        self._due = 0.0
        self._expected = False
        self._busy = False

    def hints(self) -> ChangeSet | None:
        """What changed since the last call; None where nothing is relied on, and the caller has to look."""
        self._begin()
        watcher = self._watcher
        if self._state != "sound" or watcher is None:
            return None
        if not watcher.living or watcher.deaf:
            self.give_up()
            return None
        told = watcher.take()
        if told.lost:  # what came with new folders before they were watched again is found a little later
            self._due, self._expected = self._clock() + GRACE, False
        elif self._clock() >= self._due and not self._busy:
            self._busy = True
            self._thread(self._look_around)
        return told

    def wait(self, seconds: float) -> None:
        """Wait until something is told, so long at most."""
        self._begin()
        if (watcher := self._watcher) is None:
            time.sleep(seconds)
        else:
            watcher.wait(seconds)

    def give_up(self) -> None:
        """Watch no more."""
        self._state = "given up"
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def _begin(self) -> None:
        if self._state == "new":
            self._state = "starting"
            self._thread(self._start)

    def _start(self) -> None:
        watcher = self._make()
        if not watcher.start() or self._state != "starting":
            watcher.stop()
            self._state = "given up"
            return
        weakref.finalize(self, watcher.stop).atexit = False
        self._watcher = watcher
        self._look_around()
        if self._state == "starting":
            self._state = "sound"

    def _look_around(self) -> None:
        if (watcher := self._watcher) is None:
            return
        watcher.listen()
        try:
            survey = self._survey()
        except Exception:  # a disk that cannot be read: the callers look, and say so
            self.give_up()
            return
        finally:
            self._busy = False
        watcher.report(survey.paths, self._expected)
        self._expected = True
        self._due = self._clock() + max(REST, SHARE * survey.took)


def _in_thread(function: Callable[[], None]) -> None:
    threading.Thread(target=function, name="infinimem-watch", daemon=True).start()
