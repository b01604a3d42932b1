"""Over HTTP: every request needs the token, and a name and an origin of ours (serving/http.py)."""

from __future__ import annotations

import hmac
import secrets
import socket
from typing import Any

from infinimem.errors import UsageError
from infinimem.serving.http import names, refused, reply, serve

PATH = "/mcp"
TOKEN = "INFINIMEM_MCP_TOKEN"
SHORTEST = 16  # characters of a token that one chooses
MAX_BODY = 1024 * 1024
MAX_SESSIONS = 200
_PLAIN = {"content-type": "text/plain"}


def token_of(chosen: str | None) -> str:
    """Return the token that was chosen, or a new one; UsageError if it is weak, or cannot stand in a
    header."""
    if chosen is None:
        return secrets.token_urlsafe(32)
    if len(chosen) < SHORTEST or not (chosen.isascii() and chosen.isprintable()) or " " in chosen:
        raise UsageError(f"{TOKEN} needs {SHORTEST} or more ASCII characters without spaces; choose another")
    return chosen


def make_app(server: Any, names: list[str], token: str) -> Any:
    """Make the ASGI application of a server that lets through who carries the token and calls it by one of
    `names`, exactly."""
    from mcp.server.transport_security import TransportSecuritySettings

    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `refused` does
    )

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            if status := refused(scope["headers"], names):
                await reply(send, status, "the server is not called so, or not from there", _PLAIN)
                return
            if not _admits(scope["headers"], token):
                needed = "a token is needed: Authorization: Bearer TOKEN"
                await reply(send, 401, needed, {**_PLAIN, "www-authenticate": "Bearer"})
                return
        if scope["type"] in ("http", "lifespan"):
            await inner(scope, receive, send)

    return guard


def _admits(headers: list[tuple[bytes, bytes]], wanted: str) -> bool:
    """Compare the token in the same time for every wrong one."""
    given = [value for name, value in headers if name.lower() == b"authorization"]
    if len(given) != 1:
        return False
    scheme, _, token = given[0].partition(b" ")
    return hmac.compare_digest(token, wanted.encode("ascii")) and scheme.lower() == b"bearer"


def serve_http(server: Any, address: str, listening: socket.socket, token: str) -> None:
    """Serve until the process is told to end."""
    serve(make_app(server, names(address, listening), token), listening)
