"""Over HTTP: who may call, by which name, from where.

Every request needs the token; the SDK checks Host and Origin, so that no page in a browser reaches the
server under a name of its own (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from typing import Any

from infinimem.errors import UsageError

PATH = "/mcp"
TOKEN = "INFINIMEM_MCP_TOKEN"
SHORTEST = 16
"""Characters of a token that one chooses."""
MAX_BODY = 1024 * 1024
MAX_SESSIONS = 200
BACKLOG = 64
"""Connections that the system holds until they are accepted."""


def token_of(chosen: str | None) -> str:
    """The token that was chosen, or a new one.

    Raises:
        UsageError: it could be guessed, or not be sent in a header.
    """
    if chosen is None:
        return secrets.token_urlsafe(32)
    if len(chosen) < SHORTEST or not (chosen.isascii() and chosen.isprintable()) or " " in chosen:
        raise UsageError(f"{TOKEN} needs {SHORTEST} or more ASCII characters without spaces; choose another")
    return chosen


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
    if ip.is_unspecified:
        raise UsageError(f"{host} stands for every address; name the one that clients will call")
    if not (ip.is_loopback or remote):
        raise UsageError(f"{host} is open to other machines; serve 127.0.0.1, or say --remote if you mean it")
    listening = socket.socket(family, socket.SOCK_STREAM)
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
    from where a container's port is passed on. No page of another site has one of these."""
    at = listening.getsockname()
    ip = ipaddress.ip_address(at[0])
    hosts = [address.rpartition(":")[0], f"[{ip}]" if ip.version == 6 else str(ip)]
    hosts += ["localhost", "127.0.0.1", "[::1]"]
    return [f"{host}:{at[1]}" for host in dict.fromkeys(hosts)]


def make_app(server: Any, names: list[str], token: str) -> Any:
    """The ASGI application: a server behind the token and the SDK's checks.

    Args:
        server: see server.py.
        names: HOST:PORT that clients may call, exactly.
        token: what they must carry.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=names,
            allowed_origins=[f"http://{name}" for name in names],
        ),
    )
    return _Guard(inner, token)


def serve_http(server: Any, address: str, listening: socket.socket, token: str) -> None:
    """Serve until the process is told to end."""
    import uvicorn

    from infinimem.mcp.connections import BoundedConnection

    app = make_app(server, names(address, listening), token)
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


class _Guard:
    """Lets through who carries the token; the comparison takes the same time for every wrong one."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._token = token.encode("ascii")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and self._admits(scope["headers"])):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            body = b"a token is needed: Authorization: Bearer TOKEN\n"
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            headers.append((b"connection", b"close"))  # who has no token keeps no connection
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _admits(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name.lower() == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return hmac.compare_digest(token, self._token) and scheme.lower() == b"bearer"
