"""What changes in the library while pages are open, told to them as server-sent events.

One thread watches for all pages, from when the first one asks. It signs nothing: to look at a memory does
not write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from threading import Lock, Thread

from infinimem.errors import InfinimemError
from infinimem.memory import Memory
from infinimem.watch import watch

ALIVE = 15.0
"""Seconds after which a page is told that nothing changed: so one that is gone is noticed."""
log = logging.getLogger("infinimem")


class Live:
    """Tells open pages that something changed, not what: they ask again for what they show."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages: set[asyncio.Event] = set()
        self._lock = Lock()
        self._watching = False

    async def stream(self) -> AsyncIterator[str]:
        """The events of one page, until it goes."""
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self._lock:
            self._pages.add(changed)
            begins, self._watching = not self._watching, True
        if begins:
            Thread(target=self._watch, args=(loop,), name="infinimem-web-watch", daemon=True).start()
        try:
            yield "retry: 1000\n\n"
            while True:
                try:
                    await asyncio.wait_for(changed.wait(), ALIVE)
                    changed.clear()
                    yield "event: changed\ndata:\n\n"
                except TimeoutError:
                    yield ": nothing changed\n\n"
        finally:
            with self._lock:
                self._pages.discard(changed)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for _ in watch(self._memory, signs=False):
                with self._lock:
                    pages = tuple(self._pages)
                for page in pages:
                    loop.call_soon_threadsafe(page.set)
        except (InfinimemError, OSError, RuntimeError) as error:  # RuntimeError: the loop has ended
            log.warning("changes are not shown any more (%s)", error)
            with self._lock:
                self._watching = False  # the next page that comes tries again
