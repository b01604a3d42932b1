"""How many connections there are, and how long a request may take to come: uvicorn would wait for ever."""

from __future__ import annotations

import asyncio
from typing import ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 128
"""Together with BACKLOG (http.py) fewer than the files that a process may have open: 256 on macOS."""
REQUEST_SECONDS = 10.0
"""For a request to arrive whole, body included: from the opening of the connection, or from the first byte of
a later request on it."""


class BoundedConnection(H11Protocol):
    """A connection that is ended if a request is not there in time. Where there are too many, the one that
    has waited longest for its request makes room; what is being answered is never cut off."""

    _waiting: ClassVar[dict[BoundedConnection, asyncio.TimerHandle]] = {}  # the oldest first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        if len(self.connections) > MAX_CONNECTIONS:
            next(iter(self._waiting), self)._end()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Let the time run while a request is on its way."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._arrived()
        elif self not in self._waiting:
            self._waiting[self] = self.loop.call_later(REQUEST_SECONDS, self._end)

    def _arrived(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()

    def _end(self) -> None:
        self._arrived()
        self.transport.abort()
