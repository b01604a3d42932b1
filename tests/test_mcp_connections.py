"""Slow requests and too many connections keep no client of the HTTP server waiting, and no room for ever."""

from __future__ import annotations

import http.client
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fake_server import Say, chat
from fake_server import serve as serve_model
from mcp_client import drive

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")

from mcp_serving import Serving, serve

from infinimem.serving import connections

SECONDS = 2.0
"""For a request, in these tests."""
PATIENCE = 60.0
"""Seconds after which something is lost for good, however busy the machine."""
HASTE = f"from infinimem.serving import connections; connections.REQUEST_SECONDS = {SECONDS}"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("served"), HASTE) as found:
        yield found
    assert found.log.read_text() == ""


def head(serving: Serving, token: str, size: int = 1000) -> bytes:
    host, port = serving.address
    lines = (f"Host: {host}:{port}", f"Authorization: Bearer {token}", f"Content-Length: {size}")
    return "\r\n".join(("POST /mcp HTTP/1.1", *lines, "", "")).encode()


def ended(some: Iterable[socket.socket], within: float = PATIENCE) -> int:
    """How many of these connections the server has ended, when all have or the time is over."""
    open_ = set(some)
    total, deadline = len(open_), time.monotonic() + within
    while open_ and time.monotonic() < deadline:
        for one in select.select(list(open_), [], [], 0.1)[0]:
            with suppress(ConnectionError):
                if one.recv(1 << 16):
                    continue
            open_.remove(one)
            one.close()
    return total - len(open_)


async def work(client: Any) -> None:
    found = await client.call_tool("search", {"query": "tomatoes"})
    assert [hit["doc_id"] for hit in found.structured_content["hits"]] == ["garden"]


def test_half_open_requests_are_ended_and_clients_are_served(serving: Serving) -> None:
    parts = (b"", b"POST /mcp HTT", b"POST /mcp HTTP/1.1\r\nHost: x\r\n", head(serving, serving.token) + b"{")
    some = [serving.send(parts[number % len(parts)]) for number in range(300)]
    for mode in ("auto", "legacy"):
        drive(serving.client(), work, mode)
    assert ended(some) == 300
    drive(serving.client(), work)


def test_slow_senders_are_ended(serving: Serving) -> None:
    """A byte at a time, each of which would start a time-out anew that counts from the last one."""
    second = serving.send(head(serving, serving.token, 2) + b"{}")
    assert second.recv(1 << 16).startswith(b"HTTP/1.1 4")  # no call, but answered
    slow = [serving.send(part) for part in (b"", head(serving, serving.token), head(serving, "x" * 40))]
    slow.append(second)
    over = threading.Event()

    def drip() -> None:
        for byte in b"POST /mcp HTTP/1.1\r\nX: " + b"x" * 10_000:
            for one in slow:
                with suppress(OSError):
                    one.sendall(bytes([byte]))
            if over.wait(0.1):
                return

    sender = threading.Thread(target=drip)
    sender.start()
    try:
        assert ended(slow) == 4
    finally:
        over.set()
        sender.join()


def test_without_a_token_no_connection_is_kept(serving: Serving) -> None:
    with serving.send(head(serving, "x" * 40, 2) + b"{}") as refused:
        answer = b""
        while part := refused.recv(1 << 16):
            answer += part
    assert answer.startswith(b"HTTP/1.1 401 ") and b"connection: close" in answer


def test_a_standing_stream_is_not_cut_off(serving: Serving) -> None:
    connection = http.client.HTTPConnection(*serving.address, timeout=30)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream", **serving.session()})
    with connection.getresponse() as stream:
        assert stream.status == 200
        assert ended([connection.sock], 1.5 * SECONDS) == 0
    connection.close()


def asking(serving: Serving, answers: list[int]) -> threading.Thread:
    """A thread that asks the model, in a session of its own."""
    session = serving.session()

    def ask() -> None:
        asked = {"name": "ask", "arguments": {"question": "Where is Miso?"}}
        with suppress(ConnectionError, http.client.HTTPException):
            answers.append(serving.call("tools/call", asked, **session)[0])

    return threading.Thread(target=ask)


def of_model(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "INFINIMEM_MODEL": "m"}


def test_a_call_that_takes_longer_than_a_request_may_is_answered(tmp_path: Path) -> None:
    answers: list[int] = []
    with (
        serve_model(Say(body=chat("I do not know.").body, wait=2 * SECONDS)) as model,
        serve(tmp_path, HASTE, **of_model(model.url)) as serving,
    ):
        caller = asking(serving, answers)
        caller.start()
        caller.join(PATIENCE)
    assert answers == [200]


def test_too_many_connections_are_refused(tmp_path: Path) -> None:
    """Two at most: a waiting one makes room, one that is being answered does not."""
    begun, release = threading.Semaphore(0), threading.Event()

    def slowly(_: object) -> Say:
        begun.release()
        release.wait(PATIENCE)
        return chat("I do not know.")

    few = "from infinimem.serving import connections; connections.MAX_CONNECTIONS = 2"
    few += f"; connections.REQUEST_SECONDS = {10 * PATIENCE}"
    answers: list[int] = []
    with serve_model(slowly) as model, serve(tmp_path, few, **of_model(model.url)) as serving:
        callers = [asking(serving, answers) for _ in range(2)]
        callers[0].start()
        assert begun.acquire(timeout=PATIENCE)
        waiting = serving.send(b"POST ")
        callers[1].start()
        assert begun.acquire(timeout=PATIENCE)
        assert ended([waiting]) == 1
        refused = serving.send(b"POST ")
        assert ended([refused]) == 1
        assert not answers
        release.set()
        for caller in callers:
            caller.join(PATIENCE)
        assert answers == [200, 200]
        assert serving.post(Authorization=serving.bearer)[0] == 200
        assert serving.log.read_text() == ""


def test_the_limits_are_told() -> None:
    told = " ".join((Path(__file__).parents[1] / "docs" / "MCP.md").read_text().split())
    assert f"{connections.MAX_CONNECTIONS} connections" in told
    assert f"{connections.REQUEST_SECONDS:.0f} seconds" in told
