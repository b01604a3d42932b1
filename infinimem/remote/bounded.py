"""HTTP exchanges that are bounded in time and size, whatever the server does.

One deadline covers a whole exchange: looking up the name, connecting, TLS, sending, and every byte that comes
back. A reply is cut off at a largest size and never unpacked; no redirect is followed.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2

_IDLE = 30.0
"""Seconds for which a connection is kept for the next exchange."""
_SLICE = 16 * 1024
"""Bytes that are sent between two looks at the clock."""


class Broken(Exception):
    """No connection, or one that broke off; says why."""


class TimedOut(Exception):
    """The deadline has passed; `begun` says whether any of the answer had come."""

    def __init__(self, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class TooLarge(Exception):
    """The body is larger than what is taken."""


@dataclass(frozen=True)
class Answer:
    """Header names are in lower case; the body is as it was sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """To one server, through the proxy that the environment names; several threads may use it.

    Args:
        url: of the server.
        largest: bytes of a reply's body.

    Raises:
        ValueError: the proxy is not an HTTP proxy.
    """

    def __init__(self, url: str, largest: int) -> None:
        self._largest = largest
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
        self.close = weakref.finalize(self, self._pool.close)

    def post(self, url: str, headers: Mapping[str, str], content: bytes, seconds: float) -> Answer:
        """Send a request and read the answer, all within so many seconds.

        Raises:
            TimedOut, TooLarge, Broken: see there.
        """
        self._clock.start(seconds)
        body = bytearray()
        try:
            with self._pool.stream("POST", url, headers=list(headers.items()), content=content) as response:
                for part in response.iter_stream():
                    body += part
                    if len(body) > self._largest:
                        raise TooLarge
        except httpcore2.TimeoutException:
            raise TimedOut(self._clock.begun) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
            raise Broken(str(error)) from None
        fields = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in response.headers}
        return Answer(response.status, fields, bytes(body))


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
