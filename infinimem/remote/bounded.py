"""A transport of httpx2 whose exchanges are bounded in time and size, whatever the server does.

One deadline covers a whole exchange: looking up the name, connecting, TLS, sending, and every byte that comes
back. A reply is cut off at a largest size, and never unpacked. What a further try may mend is raised as an
error of httpx2, after which the openai package tries again; all else as an error of ours, which it passes on.
"""

from __future__ import annotations

import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from infinimem.errors import ModelNotConfigured, ModelUnavailable

_IDLE = 30.0
"""Seconds for which a connection is kept for the next exchange."""
_LONGEST_WAIT = 60.0
"""Seconds that a server may ask to be left alone."""
_SLICE = 16 * 1024
"""Bytes that are sent between two looks at the clock."""
_NOT_SENT = (b"authorization", b"x-stainless-")
"""Headers of the openai package: a key that is none, and what tells of this machine."""
_LISTS = 100_000
"""Lists and objects in a reply: an empty one takes thirty times as much memory as bytes."""


class Transport(httpx2.BaseTransport):
    """Connections to one server, through the proxy that the environment names; several threads may use it.

    Args:
        url: of the server.
        authorization: that header, or "" for none.
        largest: bytes of a reply's body.
        read: raises what is wrong with a whole answer.

    Raises:
        ModelNotConfigured: the proxy is not an HTTP proxy.
    """

    def __init__(
        self, url: str, authorization: str, largest: int, read: Callable[[httpx2.Response], object]
    ) -> None:
        self._authorization, self._largest, self._read = authorization, largest, read
        proxy, self._way = _proxy(url)
        self._pool = httpcore2.ConnectionPool(
            proxy=proxy, max_connections=None, keepalive_expiry=_IDLE, network_backend=_Backend()
        )

    def close(self) -> None:
        """End the connections that are kept."""
        self._pool.close()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read the whole answer within the request's time-out.

        Raises:
            httpx2.TransportError: no answer, or one that broke off.
            ModelUnavailable: one that takes too much time or memory; and what `read` raises.
        """
        host, seconds = request.url.netloc.decode(), request.extensions["timeout"]["read"]
        method, url, content = request.method, str(request.url), request.read()
        headers = [row for row in request.headers.raw if not row[0].lower().startswith(_NOT_SENT)]
        headers += [(b"Authorization", self._authorization.encode())] if self._authorization else []
        body = bytearray()
        _clock.start(seconds)
        try:
            with self._pool.stream(method, url, headers=headers, content=content) as response:
                fields = httpx2.Headers(response.headers)
                if fields.get("content-encoding", "identity").lower() != "identity":
                    raise ModelUnavailable(f"{host} answers in a compressed form; check base_url")
                for part in response.iter_stream():
                    body += part
                    if len(body) > self._largest:
                        size = f"{self._largest >> 20} MiB"
                        raise ModelUnavailable(f"{host} answers with more than {size}; check base_url")
        except httpcore2.TimeoutException:
            if _clock.begun:  # the model has had its time; another try would take as long, and cost as much
                raise ModelUnavailable(
                    f"the answer of {host} was not complete within {seconds:g} s; try again, or set a longer "
                    "timeout"
                ) from None
            raise httpx2.ReadTimeout(f"no answer within {seconds:g} s{self._way}") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
            raise httpx2.NetworkError(f"{error}{self._way}") from None
        if body.count(b"[") + body.count(b"{") > _LISTS:
            raise ModelUnavailable(f"{host} answers with JSON that holds too many lists; check base_url")
        fields.pop("retry-after-ms", None)
        fields["retry-after"] = _capped(fields.get("retry-after", ""))
        answer = httpx2.Response(response.status, headers=fields, content=bytes(body))
        self._read(answer)
        return answer


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


_clock = _Clock()


class _Backend(httpcore2.SyncBackend):
    """Connects before the deadline."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect in a thread: the system's resolver takes no deadline, and ends when it gives up."""
        outcome: queue.SimpleQueue[httpcore2.NetworkStream | Exception] = queue.SimpleQueue()
        plain, left = super().connect_tcp, _clock.left()

        def connect() -> None:
            try:
                outcome.put(plain(host, port, left / 2))  # an address that is silent leaves time for the next
            except httpcore2.TimeoutException as error:
                outcome.put(error)
            except Exception as error:  # UnicodeError: a label that is empty or too long
                outcome.put(httpcore2.ConnectError(str(error)))

        threading.Thread(target=connect, daemon=True).start()
        try:
            connected = outcome.get(timeout=left)
        except queue.Empty:
            raise httpcore2.ConnectTimeout from None
        if isinstance(connected, Exception):
            raise connected
        return _Stream(connected)


class _Stream(httpcore2.NetworkStream):
    """A connection on which nothing waits longer than until the deadline."""

    def __init__(self, plain: httpcore2.NetworkStream) -> None:
        self._plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._plain.read(max_bytes, _clock.left())
        _clock.begun = _clock.begun or bool(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _SLICE):
            self._plain.write(buffer[start : start + _SLICE], _clock.left())

    def close(self) -> None:
        self._plain.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._plain.start_tls(ssl_context, server_hostname, _clock.left()))

    def get_extra_info(self, info: str) -> Any:
        return self._plain.get_extra_info(info)


def _capped(seconds: str) -> str:
    """Return what a server asks to wait, within reason; a date, or what is no number, asks for nothing."""
    with suppress(ValueError):
        return str(min(float(seconds), _LONGEST_WAIT))
    return ""


def _proxy(url: str) -> tuple[httpcore2.Proxy | None, str]:
    """Return the proxy that the environment names for an address that is not this machine's, and advice."""
    wanted, named = urlsplit(url), getproxies()
    scheme, host = wanted.scheme if named.get(wanted.scheme) else "all", wanted.hostname or ""
    here = host == "localhost" or host.endswith(".localhost")
    with suppress(ValueError):
        here = ip_address(host).is_loopback or ip_address(host).is_unspecified
    address = named.get(scheme)
    if not address or here or proxy_bypass(host):
        return None, ""
    try:
        proxy = httpx2.Proxy(address if "://" in address else f"http://{address}")
        if not proxy.url.scheme.startswith("http") or not proxy.url.host:
            raise ValueError
    except (ValueError, httpx2.InvalidURL):
        raise ModelNotConfigured(
            "the proxy that the environment names is no HTTP proxy; correct it, or name the host in NO_PROXY"
        ) from None
    way = f" through the proxy {proxy.url.netloc.decode()} of {scheme.upper()}_PROXY; NO_PROXY goes without"
    return httpcore2.Proxy(str(proxy.url), proxy.raw_auth), way
