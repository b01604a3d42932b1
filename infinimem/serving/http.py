"""Over HTTP: at which address, who may call, by which name, from where, over how many connections.

In: an ASGI application and an address. Out: it is served until the process ends. Promise: no page in a
browser reaches it under a name of its own (DNS rebinding), and no other machine unless that was said.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from infinimem.errors import UsageError

BACKLOG = 64  # connections that the system holds until they are accepted
MAX_CONNECTIONS = 128
"""Together with BACKLOG fewer than the files that a process may have open: 256 on macOS."""
REQUEST_SECONDS = 10.0
"""For a request to arrive whole, body included: from the opening of the connection, or from the first byte of
a later request on it; uvicorn would wait for ever."""


def listen(address: str, remote: bool = False) -> socket.socket:
    """Open a socket at HOST:PORT; port 0 takes any, an IPv6 address stands in brackets. UsageError if there
    is no such address, it is taken, or other machines may reach it and that is not meant."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise UsageError(f"{address!r} is no HOST:PORT; write for example 127.0.0.1:8321")
    try:
        family, _, _, _, found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UsageError(f"{host!r} is no address of this machine: {error.strerror}") from error
    ip = ipaddress.ip_address(found[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip  # ::ffff:0.0.0.0 is every address, too
    if ip.is_unspecified:
        raise UsageError(f"{host} stands for every address; name the one that clients will call")
    if not (ip.is_loopback or remote):
        raise UsageError(f"{host} is open to other machines; serve 127.0.0.1, or say --remote if you mean it")
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio: no delay
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(found)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen at {address}: {error.strerror}; choose another") from error
    return listening


def names(address: str, listening: socket.socket) -> list[str]:
    """Return the names with port under which clients may call it: the one that was given, and those of
    loopback, since a container's port is passed on from there. No page of another site has one of these."""
    at = listening.getsockname()
    ip = ipaddress.ip_address(at[0])
    hosts = [address.rpartition(":")[0], f"[{ip}]" if ip.version == 6 else str(ip)]
    hosts += ["localhost", "127.0.0.1", "[::1]"]
    return [f"{host}:{at[1]}" for host in dict.fromkeys(hosts)]


def refused(headers: Iterable[tuple[bytes, bytes]], names: Collection[str]) -> int | None:
    """Return the status by which a request is refused for where it comes from; None if it may pass. Clients
    may call `names` (HOST:PORT), exactly; headers are those of ASGI."""
    values = [(name.lower(), value.decode("latin-1")) for name, value in headers]
    hosts = [value for name, value in values if name == b"host"]
    if len(hosts) != 1 or hosts[0] not in names:
        return 421
    origins = {value for name, value in values if name == b"origin"}
    return 403 if origins - {f"http://{name}" for name in names} else None


async def reply(send: Any, status: int, text: str, headers: Mapping[str, str]) -> None:
    """Answer a request with a line; such a one keeps no connection."""
    named = {"connection": "close", **headers}
    coded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": coded})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})


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


def serve(app: Any, listening: socket.socket) -> None:
    """Serve an ASGI application until the process is told to end."""
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        ws="none",
        backlog=BACKLOG,
        log_level="error",  # a stranger's bad request is no warning
        use_colors=False,  # a log's text and its style cannot be told apart when it is made printable
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listening])
