"""The installed server over HTTP: the official client with the token, and everybody else."""

from __future__ import annotations

import http.client
import select
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from cli_runner import Shell
from fake_server import Say, chat
from fake_server import serve as serve_model
from mcp_client import drive

import infinimem.mcp
from infinimem.errors import UsageError
from infinimem.mcp.server import TOKEN, token_of
from infinimem.serving.http import MAX_CONNECTIONS, REQUEST_SECONDS, listen, names

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")

from mcp_serving import Serving, serve


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_with_the_token_does_everything(serving: Serving, mode: str) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def work(client: Any) -> None:
        assert len((await client.list_tools()).tools) == 8
        found = await client.call_tool("search", {"query": "tomatoes"})
        assert [hit["doc_id"] for hit in found.structured_content["hits"]] == ["garden"]
        kept = await client.call_tool("remember", {"text": f"Miso met {mode} dogs.", "key": mode})
        assert kept.structured_content["recorded"] is True
        question = {"question": f"Did Miso meet {mode} dogs?"}
        asked = await client.call_tool("ask", question, progress_callback=hear)
        assert "Miso" in asked.structured_content["answer"]
        assert heard[0] == 0.0
        wrong = await client.call_tool("read_lines", {"doc_id": "../outside/secret"})
        assert wrong.is_error
        assert (await client.read_resource("infinimem://doc/garden")).contents[0].text.startswith("---")

    drive(serving.client(), work, mode)


@pytest.mark.sample(2)
@pytest.mark.parametrize("tokens", ["right right", "right wrong", "wrong right"])
def test_two_tokens_are_none(serving: Serving, tokens: str) -> None:
    given = {"right": serving.bearer, "wrong": "Bearer xxxxxxxxxxxxxxxxxxxx"}
    connection = http.client.HTTPConnection(*serving.address, timeout=30)
    connection.putrequest("POST", urlsplit(serving.url).path)
    for name in tokens.split():
        connection.putheader("Authorization", given[name])
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"{}")
    assert connection.getresponse().status == 401
    connection.close()


def test_a_client_that_hangs_up_harms_nobody(serving: Serving) -> None:
    at = urlsplit(serving.url)
    for _ in range(3):
        connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=30)
        connection.putrequest("POST", at.path)
        connection.putheader("Authorization", serving.bearer)
        connection.putheader("Content-Length", "1000")
        connection.endheaders(b'{"jsonrpc": "2.0", ')
        connection.close()

    async def work(client: Any) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "remember", {"text": "Miso sleeps.", "key": "gone"})
            await anyio.sleep(0.05)
            group.cancel_scope.cancel()

    drive(serving.client(), work)
    assert serving.post(Authorization=serving.bearer)[0] == 200
    assert serving.process.poll() is None


def test_it_listens_to_this_machine_alone_unless_told() -> None:
    with pytest.raises(UsageError, match="open to other machines"):
        listen("192.0.2.7:8321")
    for address in ("0.0.0.0:8321", "[::]:8321"):
        with pytest.raises(UsageError, match="stands for every address"):
            listen(address, remote=True)
    for address in ("8321", "127.0.0.1", ":8321", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            listen(address)
    with listen("127.0.0.1:0") as taken:
        port = taken.getsockname()[1]
        of_loopback = {f"{host}:{port}" for host in ("localhost", "127.0.0.1", "[::1]")}
        assert of_loopback == set(names("127.0.0.1:0", taken))
        with pytest.raises(UsageError, match="cannot listen"):
            listen(f"127.0.0.1:{port}")


def test_a_token_is_made_or_chosen_well() -> None:
    made = {token_of(None) for _ in range(3)}
    assert len(made) == 3
    assert all(len(token) > 40 for token in made)
    assert token_of("a-token-of-one's-own") == "a-token-of-one's-own"
    weak = (
        "",
        "short",
        "x" * 15,
        "with a space in it",
        "ünïcödé-is-no-header",
        "line\nbreak-in-it-here",
    )
    for token in weak:
        with pytest.raises(UsageError, match=TOKEN):
            token_of(token)


def test_the_command_says_what_is_wrong(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    shell("mcp", "--remote").failed(2, "--http HOST:PORT")
    shell("mcp", "--http", "8321", "-q").failed(2, "no HOST:PORT")
    shell("--library", "nowhere", "mcp", "-q").failed(1, "nowhere")
    monkeypatch.setenv(TOKEN, "short")
    shell("mcp", "--http", "127.0.0.1:0", "-q").failed(2, TOKEN)


def test_without_the_sdk_the_command_says_what_to_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "infinimem.mcp.server", raising=False)
    monkeypatch.delattr(infinimem.mcp, "server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    shell("mcp", "-q").failed(1, "pip install 'infinimem[mcp]'")


# ── slow requests and too many connections ───────────────────────────────────────────────────────────


SECONDS = 2.0
"""For a request, in these tests."""
PATIENCE = 60.0
"""Seconds after which something is lost for good, however busy the machine."""
HASTE = f"from infinimem.serving import http; http.REQUEST_SECONDS = {SECONDS}"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server that gives a request little time, with a model that takes longer."""
    with (
        serve_model(Say(body=chat("I do not know.").body, wait=1.5 * SECONDS)) as model,
        serve(tmp_path_factory.mktemp("served"), HASTE, **of_model(model.url)) as found,
    ):
        yield found
    assert found.log.read_text() == ""


def head(hasty: Serving, token: str, size: int = 1000) -> bytes:
    host, port = hasty.address
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


def test_half_open_requests_are_ended_and_clients_are_served(hasty: Serving) -> None:
    parts = (b"", b"POST /mcp HTT", b"POST /mcp HTTP/1.1\r\nHost: x\r\n", head(hasty, hasty.token) + b"{")
    some = [hasty.send(parts[number % len(parts)]) for number in range(300)]
    for mode in ("auto", "legacy"):
        drive(hasty.client(), work, mode)
    assert ended(some) == 300
    drive(hasty.client(), work)


def test_slow_senders_are_ended(hasty: Serving) -> None:
    """A byte at a time, each of which would start a time-out anew that counts from the last one."""
    second = hasty.send(head(hasty, hasty.token, 2) + b"{}")
    assert second.recv(1 << 16).startswith(b"HTTP/1.1 4")  # no call, but answered
    slow = [hasty.send(part) for part in (b"", head(hasty, hasty.token), head(hasty, "x" * 40))]
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


def test_without_a_token_no_connection_is_kept(hasty: Serving) -> None:
    with hasty.send(head(hasty, "x" * 40, 2) + b"{}") as refused:
        answer = b""
        while part := refused.recv(1 << 16):
            answer += part
    assert answer.startswith(b"HTTP/1.1 401 ") and b"connection: close" in answer


def test_a_standing_stream_is_not_cut_off(hasty: Serving) -> None:
    connection = http.client.HTTPConnection(*hasty.address, timeout=30)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream", **hasty.session()})
    with connection.getresponse() as stream:
        assert stream.status == 200
        assert ended([connection.sock], 1.25 * SECONDS) == 0
    connection.close()


def asking(hasty: Serving, answers: list[int]) -> threading.Thread:
    """A thread that asks the model, in a session of its own."""
    session = hasty.session()

    def ask() -> None:
        asked = {"name": "ask", "arguments": {"question": "Where is Miso?"}}
        with suppress(ConnectionError, http.client.HTTPException):
            answers.append(hasty.call("tools/call", asked, **session)[0])

    return threading.Thread(target=ask)


def of_model(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "INFINIMEM_MODEL": "m"}


def test_a_call_that_takes_longer_than_a_request_may_is_answered(hasty: Serving) -> None:
    answers: list[int] = []
    caller = asking(hasty, answers)
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

    few = "from infinimem.serving import http; http.MAX_CONNECTIONS = 2"
    few += f"; http.REQUEST_SECONDS = {10 * PATIENCE}"
    answers: list[int] = []
    with serve_model(slowly) as model, serve(tmp_path, few, **of_model(model.url)) as hasty:
        callers = [asking(hasty, answers) for _ in range(2)]
        callers[0].start()
        assert begun.acquire(timeout=PATIENCE)
        waiting = hasty.send(b"POST ")
        callers[1].start()
        assert begun.acquire(timeout=PATIENCE)
        assert ended([waiting]) == 1
        refused = hasty.send(b"POST ")
        assert ended([refused]) == 1
        assert not answers
        release.set()
        for caller in callers:
            caller.join(PATIENCE)
        assert answers == [200, 200]
        assert hasty.post(Authorization=hasty.bearer)[0] == 200
        assert hasty.log.read_text() == ""


def test_the_limits_are_told() -> None:
    told = " ".join((Path(__file__).parents[1] / "docs" / "MCP.md").read_text().split())
    assert f"{MAX_CONNECTIONS} connections" in told
    assert f"{REQUEST_SECONDS:.0f} seconds" in told
