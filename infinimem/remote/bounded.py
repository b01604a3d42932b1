"""A transport of httpx2 whose exchanges are bounded in time and size, whatever the server does.

Each runs in a thread of its own, and its connection is cut at the deadline, which covers all of it. What a
further try may mend is raised as an error of httpx2, and the openai package tries again; all else as an error
of ours, which it passes on.
"""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection, IncompleteRead
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from infinimem.errors import ModelNotConfigured, ModelUnavailable

_LONGEST_WAIT = 60.0
"""Seconds that a server may ask to be left alone."""
_LISTS = 100_000
"""Lists and objects in a reply: an empty one takes thirty times as much memory as bytes."""
_READ = ("content-encoding", "location", "retry-after", "x-should-retry")
"""Headers that are taken in: no cookies, and no charset, which may be a compression or slow to read."""
_NOT_SENT = ("authorization", "connection", "x-stainless-")
"""How headers of the openai package begin that hold a key which is none, or tell of this machine."""


class Transport(httpx2.BaseTransport):
    """Exchanges with one server, through the proxy that the environment names; ModelNotConfigured if it is no
    HTTP proxy. `read` raises what is wrong with a whole answer."""

    def __init__(
        self, url: str, authorization: str, largest: int, read: Callable[[httpx2.Response], object]
    ) -> None:
        self._largest, self._read = largest, read
        self._headers = {"Connection": "close", **({"Authorization": authorization} if authorization else {})}
        self._proxy, self._way = _proxy(url)
        login = b":".join(self._proxy.raw_auth or ()) if self._proxy else b""
        self._login = {"Proxy-Authorization": f"Basic {b64encode(login).decode()}"} if login else {}
        self._certificates = httpx2.create_ssl_context() if urlsplit(url).scheme == "https" else None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read the whole answer within the request's time-out. httpx2.TransportError: no
        answer, or one that broke off; ModelUnavailable: one that takes too much time or memory."""
        host, seconds = request.url.netloc.decode(), request.extensions["timeout"]["read"]
        exchange = _Exchange(*self._connection(request), seconds, self._largest)
        exchange.start()
        exchange.join(seconds)
        late = exchange.is_alive() or isinstance(exchange.problem, TimeoutError)
        exchange.cut()
        if late and exchange.begun:  # the model has had its time; another try would cost as much again
            raise ModelUnavailable(
                f"the answer of {host} was not complete within {seconds:g} s; try again, or set a longer "
                "timeout"
            )
        if late:
            raise httpx2.ReadTimeout(f"no answer within {seconds:g} s{self._way}")
        if exchange.problem:
            raise httpx2.NetworkError(f"{exchange.problem}{self._way}")
        fields = {name.lower(): value for name, value in exchange.fields if name.lower() in _READ}
        body = exchange.body
        if fields.pop("content-encoding", "identity").lower() != "identity":
            raise ModelUnavailable(f"{host} answers in a compressed form; check base_url")
        if len(body) > self._largest:
            raise ModelUnavailable(f"{host} answers with more than {self._largest >> 20} MiB; check base_url")
        if body.count(b"[") + body.count(b"{") > _LISTS:
            raise ModelUnavailable(f"{host} answers with JSON that holds too many lists; check base_url")
        wait = fields.pop("retry-after", "")
        with suppress(ValueError):  # a date, or what is no number, asks for nothing
            fields["retry-after"] = str(min(float(wait), _LONGEST_WAIT))
        answer = httpx2.Response(exchange.status, headers=httpx2.Headers(fields, "latin-1"), content=body)
        self._read(answer)
        return answer

    def _connection(self, request: httpx2.Request) -> tuple[HTTPConnection, Callable[[], None]]:
        """Return a connection to server or proxy that is not yet open, and what sends the request on it."""
        url, proxy = request.url, self._proxy
        headers = {name: value for name, value in request.headers.items() if not name.startswith(_NOT_SENT)}
        headers |= self._headers
        place, target = proxy.url if proxy else url, url.raw_path.decode()
        port = place.port or (443 if place.scheme == "https" else 80)
        connection = HTTPConnection(place.host, port)
        if url.scheme == "https":
            connection = HTTPSConnection(place.host, port, context=self._certificates)
        if proxy and url.scheme == "https":
            connection.set_tunnel(url.host, url.port or 443, self._login)
        elif proxy:
            target, headers = str(url), headers | self._login
        return connection, partial(connection.request, request.method, target, request.read(), headers)


class _Exchange(threading.Thread):
    """A request and its answer (of the body a byte more than the largest), or a `problem`."""

    def __init__(
        self, connection: HTTPConnection, send: Callable[[], None], seconds: float, largest: int
    ) -> None:
        super().__init__(daemon=True)  # the system's resolver takes no deadline: it ends when it gives up
        connection.timeout = seconds / 2  # to connect: an address that is silent leaves time for the next
        self._connection, self._send, self._seconds, self._largest = connection, send, seconds, largest
        self._is_cut = self.begun = False
        self.status, self.body = 0, b""
        self.fields: list[tuple[str, str]] = []
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            self._connection.connect()
            self._connection.sock.settimeout(self._seconds)
            if not self._is_cut:
                with suppress(ConnectionError):  # a server may answer before it has read all
                    self._send()
                with HTTPResponse(self._connection.sock) as answer:
                    self.begun = bool(answer.fp.peek(1))
                    answer.begin()
                    self.status, self.fields = answer.status, answer.getheaders()
                    self.body = answer.read(self._largest + 1)
                    if answer.length and len(self.body) <= self._largest:
                        raise IncompleteRead(self.body)
        except Exception as error:  # of sockets, TLS, HTTP, and of names that are none
            self.problem = error.with_traceback(None)  # its frames may hold a socket open
        finally:
            self._connection.close()

    def cut(self) -> None:
        """End the exchange, whatever it waits for."""
        self._is_cut = True
        with suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)


def _proxy(url: str) -> tuple[httpx2.Proxy | None, str]:
    """Return the proxy that the environment names for an address that is not this machine's, and advice."""
    wanted, named = urlsplit(url), getproxies()
    scheme, host = wanted.scheme if named.get(wanted.scheme) else "all", wanted.hostname or ""
    here = host == "localhost" or host.endswith(".localhost")
    with suppress(ValueError):
        here = ip_address(host).is_loopback or ip_address(host).is_unspecified
    address = named.get(scheme)
    if not address or here or proxy_bypass(host):
        return None, ""
    with suppress(ValueError, httpx2.InvalidURL):
        proxy = httpx2.Proxy(address if "://" in address else f"http://{address}")
        if proxy.url.scheme == "http" and proxy.url.host:
            name = f"{proxy.url.netloc.decode()} of {scheme.upper()}_PROXY"
            return proxy, f" through the proxy {name}; NO_PROXY goes without"
    raise ModelNotConfigured(
        "the proxy that the environment names is no HTTP proxy; correct it, or name the host in NO_PROXY"
    )
