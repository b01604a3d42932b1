"""What changes in the library while pages are open, told to them as server-sent events.

One thread watches for all pages, from when the first one asks. It signs nothing: to look at a memory does
not write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import Lock, Thread

from infinimem.errors import InfinimemError
from infinimem.log import log
from infinimem.memory import Memory
from infinimem.watch import watch

ALIVE = 15.0
"""Seconds after which a page is told that nothing changed: so one that is gone is noticed."""


class Live:
    """Tells open pages that something changed, not what: they ask again for what they show."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = Lock()
        self._watching = self._ended = False

    async def stream(self) -> AsyncIterator[str]:
        """The events of one page, until it goes."""
        changed = asyncio.Event()
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._pages.add(changed)
            begins, self._watching = not self._watching, True
        if begins:
            Thread(target=self._watch, name="infinimem-web-watch", daemon=True).start()
        try:
            yield "retry: 1000\n\n"
            while not self._ended:
                try:
                    await asyncio.wait_for(changed.wait(), ALIVE)
                    changed.clear()
                    yield "event: changed\ndata:\n\n"
                except TimeoutError:
                    yield ": nothing changed\n\n"
        finally:
            with self._lock:
                self._pages.discard(changed)

    def end(self) -> None:
        """Let every page go: the server ends."""
        self._ended = True
        self._tell()

    def _watch(self) -> None:
        try:
            for _ in watch(self._memory, signs=False):
                self._tell()
        except (InfinimemError, OSError) as error:
            log.warning("changes are not shown any more (%s)", error)
            with self._lock:
                self._watching = False  # the next page that comes tries again

    def _tell(self) -> None:
        loop = self._loop  # no lock: a signal may have interrupted who holds it
        for page in tuple(self._pages):
            if loop and not loop.is_closed():
                loop.call_soon_threadsafe(page.set)
