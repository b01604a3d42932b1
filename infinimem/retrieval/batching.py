"""Long work in portions: each is kept when it is done, and who waits long is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("infinimem")

_FIRST, _MOST = 64, 4096
"""Texts of a portion."""
_SHORT = 0.5
"""Seconds; after a portion that took less the next is twice as large."""
_LONG = 10.0
"""Seconds that are left where it is told."""


class Batches:
    """Cuts texts into portions of about a second: so much is lost at most where the process is killed.

    Args:
        name: of the embedder, for the message.
        count: of texts.
        clock: gives seconds.
    """

    def __init__(self, name: str, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._count = count
        self._clock = clock
        self._size = _FIRST
        self._done = 0
        self._began = clock()
        self._told = False

    def next(self) -> slice | None:
        """The next portion, as places of texts; asked for when the last one is done. None at the end."""
        now = self._clock()
        if self._done:
            took = now - self._began
            left = took * (self._count - self._done) / self._size
            if left > _LONG and not self._told:
                log.warning("%s reads %d texts, once; about %.0f s", self._name, self._count, took + left)
                self._told = True
            if took < _SHORT:
                self._size = min(2 * self._size, _MOST)
        if self._done >= self._count:
            return None
        portion = slice(self._done, self._done + self._size)
        self._done, self._began = portion.stop, now
        return portion
