"""The installed server over HTTP: the official client with the token, and everybody else."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from cli_runner import Shell
from mcp_client import drive, texts

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")

from mcp_serving import Serving, serve

import infinimem.mcp
from infinimem.errors import UsageError
from infinimem.mcp.http import TOKEN, token_of
from infinimem.serving.http import listen, names


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
        assert len((await client.list_tools()).tools) == 7
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

        async def call(number: int) -> None:
            assert "Miso" in texts(await client.call_tool("grep", {"pattern": "Miso"})), number

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(call, number)

    drive(serving.client(), work, mode)


def test_a_wrong_token_or_none_is_refused(serving: Serving) -> None:
    assert serving.post(Authorization=serving.bearer)[0] == 200
    assert serving.post(Authorization=f"bearer {serving.token}")[0] == 200
    for wrong in (
        {},
        {"Authorization": ""},
        {"Authorization": serving.token},
        {"Authorization": f"Basic {serving.token}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {serving.token}x"},
        {"Authorization": f"Bearer {serving.token[:-1]}"},
        {"Authorization": "Bearer \xe9\xff"},
        {"X-Token": serving.token},
    ):
        status, body = serving.post(**wrong)
        assert status == 401, wrong
        assert "a token is needed" in body


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


def test_a_foreign_host_is_refused(serving: Serving) -> None:
    port = urlsplit(serving.url).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert serving.post(Authorization=serving.bearer, Host=host)[0] == 200, host
    evil = ("evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example")
    for host in (*evil, *(f"{name}:{port}" for name in evil), "127.0.0.1", "127.0.0.1:1"):
        assert serving.post(Authorization=serving.bearer, Host=host)[0] == 421, host


def test_a_foreign_origin_is_refused(serving: Serving) -> None:
    port = urlsplit(serving.url).port
    assert serving.post(Authorization=serving.bearer, Origin=f"http://localhost:{port}")[0] == 200
    for origin in (
        "http://evil.example",
        f"http://evil.example:{port}",
        "null",
        "http://localhost",
        "file://",
    ):
        assert serving.post(Authorization=serving.bearer, Origin=origin)[0] == 403, origin


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
