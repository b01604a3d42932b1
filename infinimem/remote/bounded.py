"""A transport of httpx whose exchanges are bounded in time and size, whatever the server does.

One deadline covers a whole exchange: looking up the name, connecting, TLS, sending, and every byte that comes
back. A reply is cut off at a largest size, and never unpacked.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

_IDLE = 30.0
"""Seconds for which a connection is kept for the next exchange."""
_SLICE = 16 * 1024
"""Bytes that are sent between two looks at the clock."""
_LISTS = 100_000
"""Lists and objects in a reply: an empty one takes thirty times as much memory as bytes."""


class TimedOut(httpx2.TimeoutException):
    """The deadline has passed; `begun` says whether any of the answer had come."""

    def __init__(self, begun: bool) -> None:
        super().__init__("")
        self.begun = begun


class NotTaken(httpx2.TransportError):
    """The reply is larger or more complex than what is taken, or compressed; says which."""


class Transport(httpx2.BaseTransport):
    """Connections to one server, through the proxy that the environment names; several threads may use it.

    Args:
        url: of the server.
        authorization: that header, or "" for none.
        largest: bytes of a reply's body.

    Raises:
        ValueError: the proxy is not an HTTP proxy.
    """

    def __init__(self, url: str, authorization: str, largest: int) -> None:
        self._authorization, self._largest = authorization, largest
        self._clock = _Clock()
        proxy, variable = _proxy(url)
        self.via = f"{proxy.url.host.decode()}:{proxy.url.port} of {variable}" if proxy else ""
        """The proxy, and the variable that names it."""
        self._pool = httpcore2.ConnectionPool(
            proxy=proxy,
            max_connections=None,
            keepalive_expiry=_IDLE,
            network_backend=_Backend(self._clock),
        )

    def close(self) -> None:
        """End the connections that are kept."""
        self._pool.close()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read the whole answer within the request's time-out.

        Raises:
            TimedOut, NotTaken: see there.
            httpx2.NetworkError: no connection, or one that broke off.
        """
        self._clock.start(request.extensions["timeout"]["read"])
        url, headers, content = str(request.url), self._headers(request), request.read()
        body = bytearray()
        try:
            with self._pool.stream(request.method, url, headers=headers, content=content) as response:
                fields = httpx2.Headers(response.headers)
                if fields.get("content-encoding", "identity").lower() != "identity":
                    raise NotTaken("in a compressed form")
                for part in response.iter_stream():
                    body += part
                    if len(body) > self._largest:
                        raise NotTaken(f"with more than {self._largest >> 20} MiB")
        except httpcore2.TimeoutException:
            raise TimedOut(self._clock.begun) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
            raise httpx2.NetworkError(str(error)) from None
        if body.count(b"[") + body.count(b"{") > _LISTS:
            raise NotTaken("with JSON that is too deep or holds too many lists")
        return httpx2.Response(response.status, headers=fields, content=bytes(body))

    def _headers(self, request: httpx2.Request) -> list[tuple[bytes, bytes]]:
        """Those of a request, without what the openai package tells of this machine."""
        headers = request.headers.copy()
        for name in ("authorization", *(name for name in headers if name.startswith("x-stainless-"))):
            headers.pop(name, None)
        headers.update({"User-Agent": "infinimem", "Accept-Encoding": "identity"})
        if self._authorization:
            headers["Authorization"] = self._authorization
        return list(headers.raw)


class _Clock(threading.local):
    """Of each thread: when its exchange must be over, and whether an answer has begun."""

    end = 0.0
    begun = False

    def start(self, seconds: float) -> None:
        self.end, self.begun = time.monotonic() + seconds, False

    def left(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return left


class _Backend(httpcore2.NetworkBackend):
    """Connects before the deadline; an exchange runs in the thread that asks for it."""

    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self._plain = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = _addresses(host, port, self._clock.left())
        while True:
            share = self._clock.left() / len(addresses)  # one that is silent leaves time for the next
            try:
                stream = self._plain.connect_tcp(addresses.pop(0), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if not addresses:
                    raise
            else:
                return _Stream(stream, self._clock)


class _Stream(httpcore2.NetworkStream):
    """A connection on which nothing waits longer than until the deadline."""

    def __init__(self, plain: httpcore2.NetworkStream, clock: _Clock) -> None:
        self._plain, self._clock = plain, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._plain.read(max_bytes, self._clock.left())
        self._clock.begun = self._clock.begun or bool(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _SLICE):
            self._plain.write(buffer[start : start + _SLICE], self._clock.left())

    def close(self) -> None:
        self._plain.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._plain.start_tls(ssl_context, server_hostname, self._clock.left()), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._plain.get_extra_info(info)


def _addresses(host: str, port: int, seconds: float) -> list[str]:
    """The numeric addresses of a host, at least one.

    The system's resolver takes no deadline: it is asked in a thread, which ends when the resolver gives up.
    """
    found: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except (OSError, UnicodeError) as error:  # UnicodeError: a label that is empty or too long
            found.put(error if isinstance(error, OSError) else OSError("no such name"))

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = found.get(timeout=seconds)
    except queue.Empty:
        raise httpcore2.ConnectTimeout from None
    if isinstance(answer, OSError):
        raise httpcore2.ConnectError(str(answer))
    return answer


def _is_here(host: str) -> bool:
    """Whether a name or address is this machine's own."""
    with suppress(ValueError):
        address = ip_address(host)
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def _proxy(url: str) -> tuple[httpcore2.Proxy | None, str]:
    """The proxy that environment or system name for an address, unless it is this machine's; and where."""
    wanted, named = urlsplit(url), getproxies()
    scheme = wanted.scheme if named.get(wanted.scheme) else "all"
    address, host, variable = named.get(scheme), wanted.hostname or "", f"{scheme.upper()}_PROXY"
    if not address or _is_here(host) or proxy_bypass(host):
        return None, ""
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.hostname.isascii():
        raise ValueError(parts.scheme)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    place = httpcore2.URL(scheme=parts.scheme, host=parts.hostname, port=port, target="/")
    if parts.username is None:
        return httpcore2.Proxy(place), variable
    login = (unquote(parts.username).encode(), unquote(parts.password or "").encode())
    return httpcore2.Proxy(place, login), variable
