"""A client of the openai package is the model: ours, bounded, or one that its owner made ready."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_server import Say, chat, refuse, serve
from openai import AsyncOpenAI, AzureOpenAI, OpenAI

from infinimem import InfinimemError, Turn, open_memory

KEY = "sk-a-key-of-the-owner-0123"
EMPTY = json.dumps({"entries": []})
ENV = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "INFINIMEM_MODEL", "OPENAI_API_VERSION", "AZURE_OPENAI_ENDPOINT")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENV:
        monkeypatch.delenv(name, raising=False)


def plain(url: str) -> OpenAI:
    return OpenAI(api_key=KEY, base_url=url, max_retries=0)


def azure(url: str) -> OpenAI:
    return AzureOpenAI(api_key=KEY, api_version="2026-01-01", azure_endpoint=url, max_retries=0)


@pytest.mark.parametrize("make", [plain, azure])
def test_a_ready_client_is_the_model_and_stays_its_owners(
    make: Callable[[str], OpenAI], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`open_memory(model=OpenAI(…))` asks the model that the settings name, and leaves the client open."""
    monkeypatch.setenv("INFINIMEM_MODEL", "the-model")
    with serve(chat(EMPTY)) as server, make(server.url) as client:
        with open_memory(tmp_path / "library", create=True, model=client) as memory:
            memory.observe([Turn("The boiler is serviced in May.")])
        assert server.requests and {request["model"] for request in server.requests} == {"the-model"}
        assert not client.is_closed()
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


def test_a_ready_client_is_tried_again_as_often_as_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`[llm] retries` counts, not what the client was made with, and not both."""
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "infinimem.toml").write_text("[llm]\nretries = 1\n")
    with serve(Say(503, "busy")) as server, OpenAI(api_key=KEY, base_url=server.url, max_retries=3) as client:
        memory = open_memory(tmp_path / "library", create=True, model=client, trust=True)
        with pytest.raises(InfinimemError, match="does not answer"):
            memory.observe([Turn("The boiler is serviced in May.")])
        assert len(server.requests) == 2


def test_what_a_server_says_of_a_ready_clients_key_stands_in_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is ours and one line, and carries no error of the package's that quotes the key."""
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    with serve(refuse(401, f"Incorrect API key provided: {KEY}")) as server, plain(server.url) as client:
        memory = open_memory(tmp_path / "library", create=True, model=client)
        with pytest.raises(InfinimemError, match="does not accept the key") as caught:
            memory.observe([Turn("The boiler is serviced in May.")])
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_ready_client_without_a_named_model_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(InfinimemError, match="INFINIMEM_MODEL") as caught:
        open_memory(tmp_path / "library", create=True, model=plain("http://127.0.0.1:9/v1"))
    assert "\n" not in str(caught.value)


def responses(body: dict[str, Any]) -> Say:
    return Say(body=json.dumps({"object": "response", "error": None, **body}))


def test_a_model_of_the_responses_api_alone_is_asked_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said there is read, its tokens count, and a reply that was cut off is told as one."""
    monkeypatch.setenv("INFINIMEM_MODEL", "thinker")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    text = {"type": "message", "content": [{"type": "output_text", "text": EMPTY}]}
    whole = responses(
        {"output": [{"type": "reasoning"}, text], "usage": {"input_tokens": 90, "output_tokens": 5}}
    )
    cut = responses({"output": [], "incomplete_details": {"reason": "max_output_tokens"}})
    other = refuse(404, "This model is only supported in v1/responses and not in v1/chat/completions.")
    with serve(other, whole, cut) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with open_memory(tmp_path / "library", create=True) as memory:
            assert not memory.observe([Turn("The boiler is serviced in May.")]).unanswered
            assert "messages" in server.requests[0] and "input" in server.requests[1]
            assert memory.llm.usage.tokens_in == 90
            unanswered = memory.observe([Turn("The bike has a new tyre.")]).unanswered
        assert [one.kind for one in unanswered.values()] == ["TRUNCATED"]
        assert all("messages" not in request for request in server.requests[1:])


def test_our_client_tells_a_server_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key, model and prompt go to the server; name and version of system and Python do not."""
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(chat(EMPTY)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}?api-version=1")
        with open_memory(tmp_path / "library", create=True) as memory:
            memory.observe([Turn("The boiler is serviced in May.")])
    (headers, *_) = server.headers
    assert headers["authorization"] == f"Bearer {KEY}" and headers["user-agent"] == "infinimem"
    assert not [name for name in headers if name.startswith("x-stainless")]


@pytest.mark.parametrize("model", [AsyncOpenAI(api_key=KEY), object()])
def test_what_cannot_be_asked_is_one_line(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An asynchronous client, or what is none, is refused when the library is opened."""
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    with pytest.raises(InfinimemError, match="model takes a name"):
        open_memory(tmp_path, create=True, model=model)
