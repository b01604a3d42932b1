"""Over HTTP: at which address, who may call, by which name, from where.

In: an ASGI application and an address. Out: it is served until the process ends. Promise: no page in a
browser reaches it under a name of its own (DNS rebinding), and no other machine unless that was said.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable
from types import FrameType
from typing import Any

from infinimem.errors import UsageError

BACKLOG = 64
"""Connections that the system holds until they are accepted."""


def listen(address: str, remote: bool = False) -> socket.socket:
    """A socket at HOST:PORT.

    Args:
        address: port 0 takes any that is free; an IPv6 address stands in brackets.
        remote: whether other machines may reach it.

    Raises:
        UsageError: no such address, it is taken, or not of this machine alone and `remote` is not said.
    """
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
    """The names with port under which clients may call it: the one that was given, and those of loopback,
    since a container's port is passed on from there. No page of another site has one of these."""
    at = listening.getsockname()
    ip = ipaddress.ip_address(at[0])
    hosts = [address.rpartition(":")[0], f"[{ip}]" if ip.version == 6 else str(ip)]
    hosts += ["localhost", "127.0.0.1", "[::1]"]
    return [f"{host}:{at[1]}" for host in dict.fromkeys(hosts)]


def refused(headers: Iterable[tuple[bytes, bytes]], names: Collection[str]) -> int | None:
    """The status by which a request is refused for where it comes from; None where it may pass.

    Args:
        headers: of the request, as ASGI gives them.
        names: HOST:PORT that clients may call, exactly.
    """
    hosts: list[str] = []
    origins: list[str] = []
    for name, value in headers:
        if name.lower() in (b"host", b"origin"):
            (hosts if name.lower() == b"host" else origins).append(value.decode("latin-1"))
    if len(hosts) != 1 or hosts[0] not in names:
        return 421
    return None if {f"http://{name}" for name in names}.issuperset(origins) else 403


def serve(app: Any, listening: socket.socket, ending: Callable[[], None] = lambda: None) -> None:
    """Serve until the process is told to end.

    Args:
        app: an ASGI application.
        listening: see `listen`.
        ending: called when that is so, to end what would go on for ever; it may interrupt anything.
    """
    import uvicorn

    from infinimem.serving.connections import BoundedConnection

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            ending()
            super().handle_exit(sig, frame)

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
    Server(config).run(sockets=[listening])
