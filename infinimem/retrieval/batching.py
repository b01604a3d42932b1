"""Long work in portions: each is kept when it is done, and who waits long is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

log = logging.getLogger("infinimem")

_FIRST, _MOST = 64, 4096
"""Texts of a portion."""
_SHORT = 0.5
"""Seconds; after a portion that took less the next is twice as large."""
_LONG = 10.0
"""Seconds that are left where it is told."""


def portions(name: str, count: int, clock: Callable[[], float] = time.monotonic) -> Iterator[slice]:
    """Portions of about a second, as places of texts: so much is lost at most where the process is killed.

    Args:
        name: of the embedder, for the message.
        count: of texts.
        clock: gives seconds; the next portion is asked for when the last one is done.
    """
    done, size, told = 0, _FIRST, False
    while done < count:
        began = clock()
        yield slice(done, done + size)
        took, done = clock() - began, done + size
        left = took * (count - done) / size
        if left > _LONG and not told:
            log.warning("%s reads %d texts, once; about %.0f s", name, count, took + left)
            told = True
        if took < _SHORT:
            size = min(2 * size, _MOST)
