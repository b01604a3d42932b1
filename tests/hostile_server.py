"""A server on loopback that means harm: each attack is a function of one connection, for any test to play.

with hostile(endless(1 << 30)) as server:
    OpenAIClient("m", server.url).complete(...)
"""

from __future__ import annotations

import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_LONGEST = 60.0
"""Seconds after which an attack ends by itself, whatever the test does."""
_CONNECTIONS = 2000


class Caller:
    """The client at the other end of a connection."""

    def __init__(self, connection: socket.socket, over: threading.Event, server: Hostile) -> None:
        self._connection, self._over, self._server = connection, over, server

    def read(self) -> bytes:
        """A whole request, which is noted."""
        request = self._request()
        self._server.requests.append(request)
        return request

    def _request(self) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head, _, body = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields.get(b"content-length", 0)):
            body += self._received()
        return head + b"\r\n\r\n" + body

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def wait(self, seconds: float = _LONGEST) -> None:
        """Let time pass; the end of the test ends the attack."""
        if self._over.wait(seconds):
            raise ConnectionError

    def _received(self) -> bytes:
        data = self._connection.recv(1 << 16)
        if not data:
            raise ConnectionError
        return data


Attack = Callable[[Caller], None]


@dataclass
class Hostile:
    """Its address and the requests that it has read, head and body."""

    url: str
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0


@contextmanager
def hostile(
    attack: Attack, scheme: str = "http", certificate: ssl.SSLContext | None = None
) -> Iterator[Hostile]:
    """Play an attack on every connection, for the time of the block; with a certificate, over TLS."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    server = Hostile(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1")
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []
    farewell: dict[str, object] = {}

    def play(connection: socket.socket) -> None:
        with suppress(OSError), connection:  # the client hangs up, as it should
            if certificate is None:
                attack(Caller(connection, over, server))
            else:
                with certificate.wrap_socket(connection, server_side=True) as secured:
                    attack(Caller(secured, over, server))

    def accept() -> None:
        with suppress(OSError):
            while server.connections < _CONNECTIONS:
                connection, caller = listener.accept()
                if caller == farewell.get("from"):
                    connection.close()
                    return
                connection.settimeout(_LONGEST)
                server.connections += 1
                opened.append(connection)
                threads.append(threading.Thread(target=play, args=(connection,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        over.set()
        with suppress(OSError), socket.socket() as last:  # whoever came before it is counted, however late
            last.bind(("127.0.0.1", 0))
            farewell["from"] = last.getsockname()
            last.connect(listener.getsockname())
            accepting.join()
        for each in (listener, *opened):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in (accepting, *threads):
            thread.join()


def head(status: int = 200, **fields: object) -> bytes:
    """The beginning of an answer; `content_length=5` is written Content-Length: 5."""
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


HEAD = head(content_length=1 << 20)
"""Of an answer with a long body."""


# ── attacks ─────────────────────────────────────────────────────────────────────────────────────


def say(body: bytes | str, status: int = 200, **fields: object) -> Attack:
    """One whole answer."""
    data = body.encode() if isinstance(body, str) else body

    def attack(caller: Caller) -> None:
        caller.read()
        caller.send(head(status, content_length=len(data), **fields) + data)

    return attack


def endless(size: int, status: int = 200) -> Attack:
    """A body of so many bytes."""

    def attack(caller: Caller) -> None:
        caller.read()
        caller.send(head(status, content_length=size))
        block = b" " * (1 << 20)
        for _ in range(size // len(block)):
            caller.send(block)

    return attack


def crumbs(size: int) -> Attack:
    """A body of so many bytes, each in a chunk of its own."""

    def attack(caller: Caller) -> None:
        caller.read()
        caller.send(head(transfer_encoding="chunked"))
        block = b"1\r\n \r\n" * 10_000
        for _ in range(size // 10_000):
            caller.send(block)

    return attack


def bomb(size: int, coding: str = "gzip") -> Attack:
    """A compressed body that unpacks to so many bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    blank = b" " * (10 << 20)
    first, again = (packer.compress(blank) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))

    def attack(caller: Caller) -> None:
        caller.read()
        caller.send(head(content_encoding=coding, transfer_encoding="chunked"))
        for packed in (first, *[again] * (size // len(blank) - 1)):
            caller.send(b"%x\r\n%s\r\n" % (len(packed), packed))
        caller.send(b"0\r\n\r\n")

    return attack


def drip(start: bytes = HEAD, pause: float = 0.05) -> Attack:
    """An answer that begins like this and goes on with a byte a pause."""

    def attack(caller: Caller) -> None:
        caller.read()
        caller.send(start)
        for _ in range(int(_LONGEST / pause)):
            caller.wait(pause)
            caller.send(b" ")

    return attack


def drip_tls(pause: float = 0.05) -> Attack:
    """A handshake of TLS whose first record never ends; for the scheme https."""

    def attack(caller: Caller) -> None:
        caller.send(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb\x03\x03")
        for _ in range(int(_LONGEST / pause)):
            caller.wait(pause)
            caller.send(b"\0")

    return attack


def head_flood(size: int) -> Attack:
    """So many bytes of header lines."""

    def attack(caller: Caller) -> None:
        caller.read()
        caller.send(b"HTTP/1.1 200 OK\r\n")
        block = b"X-Flood: %s\r\n" % (b"a" * 1000) * 1000
        for _ in range(size // len(block)):
            caller.send(block)

    return attack


def interim_flood() -> Attack:
    """ "Continue" for ever: answers of which each is whole, and none is the last."""

    def attack(caller: Caller) -> None:
        caller.read()
        for _ in range(int(_LONGEST / 0.01)):
            caller.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            caller.wait(0.01)

    return attack


def silent(caller: Caller) -> None:
    """The request is taken, and nothing comes back."""
    caller.read()
    caller.wait()


def deaf(caller: Caller) -> None:
    """The request is not even read."""
    caller.wait()


def redirect(to: str, status: int = 307) -> Attack:
    """To another address."""
    return say("", status, location=to)


def nested(depth: int) -> Attack:
    """JSON of so many lists in each other."""
    return say("[" * depth + "]" * depth)


def wide(size: int, status: int = 200) -> Attack:
    """Sound JSON of so many bytes that would take twenty times as much memory."""
    return say(b"[" + b"[]," * (size // 3 - 1) + b"7]", status)
