"""The openai client against real HTTP: formats, fallbacks, retries, and what it says when all fails."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import traceback
from dataclasses import replace
from typing import Any

import pytest
from cases import each
from fake_server import Say, chat, refuse, serve

from infinimem.errors import ModelError, ModelNotConfigured, ModelUnavailable
from infinimem.llm.base import Reply
from infinimem.llm.connect import connect
from infinimem.llm.openai_client import OpenAIClient
from infinimem.llm.tasks import ANSWER
from infinimem.settings import ModelSettings

KEY = "sk-very-secret-0123456789"
ASK: dict[str, Any] = {"question": "Where does she live?", "evidence": [], "now": "2025-03-03"}
GOOD = json.dumps({"answer": "Lisbon", "cites": ["41"]})


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "INFINIMEM_MODEL",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a client waits between its tries: it is recorded instead of slept."""
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


class Patient:
    """A client that tries four times more."""

    def __init__(self, url: str, **more: Any) -> None:
        arguments: dict[str, Any] = {"api_key": KEY, "timeout": 5.0, "retries": 4} | more
        self.client = OpenAIClient("m", url, **arguments)

    def ask(self) -> Reply:
        return self.client.complete(ANSWER, ASK)


def test_asks_for_the_schema_strictly_at_temperature_zero() -> None:
    with serve(chat(GOOD)) as server:
        patient = Patient(server.url)
        reply = patient.ask()
    assert reply.data == {"answer": "Lisbon", "cites": ["41"]} and reply.failure is None
    [request] = server.requests
    assert request["temperature"] == 0 and request["max_tokens"] == ANSWER.max_tokens
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": ANSWER.schema},
    }
    system, user = request["messages"]
    assert "JSON only" in system["content"] and ASK["question"] in user["content"]
    assert server.keys == [f"Bearer {KEY}"]
    assert (reply.usage.calls, reply.usage.tokens_in, reply.usage.tokens_out) == (1, 100, 7)


def test_another_model_of_the_server_is_asked_in_its_own_way() -> None:
    def say(request: dict[str, Any]) -> Say:
        is_small = request["model"] == "m"
        return (
            refuse(400, "temperature is not supported")
            if is_small and "temperature" in request
            else chat(GOOD)
        )

    with serve(say) as server:
        client = Patient(server.url).client
        for model in ("", "big", "m"):
            client.complete(replace(ANSWER, model=model), ASK)
    asked = [(one["model"], "temperature" in one) for one in server.requests]
    assert asked == [("m", True), ("m", False), ("big", True), ("m", False)]


def test_falls_back_to_weaker_formats_and_remembers_the_one_that_worked(waits: list[float]) -> None:
    no = refuse(400, "response_format is not supported")
    with serve(no, no, chat(f"Sure:\n```json\n{GOOD}\n```")) as server:
        patient = Patient(server.url)
        assert patient.ask().data == json.loads(GOOD)
        assert patient.ask().data == json.loads(GOOD)
    formats = [request.get("response_format", {}).get("type") for request in server.requests]
    assert formats == ["json_schema", "json_object", None, None]
    assert waits == []


def test_a_refusal_of_one_prompt_is_not_remembered() -> None:
    with serve(refuse(400, "bad"), refuse(400, "bad"), refuse(400, "bad"), chat(GOOD)) as server:
        patient = Patient(server.url)
        with pytest.raises(ModelUnavailable, match="refuses the request: bad"):
            patient.ask()
        patient.ask()
    assert server.requests[3]["response_format"]["type"] == "json_schema"


def test_adapts_to_reasoning_models() -> None:
    with serve(
        refuse(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refuse(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        chat(GOOD),
    ) as server:
        patient = Patient(server.url)
        assert patient.ask().data and patient.ask().data
    for request in server.requests[2:]:
        assert "temperature" not in request and "max_tokens" not in request
        assert request["max_completion_tokens"] > ANSWER.max_tokens
        assert request["response_format"]["type"] == "json_schema"


def test_a_prompt_that_is_too_long_leaves_out_the_limit_then_counts_as_too_long() -> None:
    full = refuse(400, "This model's maximum context length is 4096 tokens. Use fewer max_completion_tokens.")
    with serve(full, chat(GOOD), full, full, chat(GOOD)) as server:
        patient = Patient(server.url)
        assert patient.ask().data
        reply = patient.ask()
        assert patient.ask().data
    assert (reply.data, reply.failure) == (None, "TOO_LONG")
    assert ["max_tokens" in request for request in server.requests] == [True, False, True, False, True]


@each(
    "say",
    [
        refuse(429, "slow down"),
        refuse(503, "loading model"),
        Say(500, "<html>"),
        Say(200, GOOD, promise=10_000),
        Say(200, chat(GOOD).body[:80]),
    ],
)
def test_transport_failures_are_tried_again(say: Say, waits: list[float]) -> None:
    with serve(say, say, chat(GOOD)) as server:
        patient = Patient(server.url)
        assert patient.ask().data == json.loads(GOOD)
    assert len(server.requests) == 3
    assert waits[-2:] == [pytest.approx(0.5, rel=0.25), pytest.approx(1.0, rel=0.25)]


def _line(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text and len(text) < 300
    assert KEY not in "".join(traceback.format_exception(error))
    return text


def test_a_dead_endpoint_is_one_line_that_names_the_host_only(waits: list[float]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    patient = Patient(f"http://joe:{KEY}@127.0.0.1:{port}/v1", retries=2)
    with pytest.raises(ModelUnavailable) as caught:
        patient.ask()
    assert f"127.0.0.1:{port} does not answer" in _line(caught.value)
    assert "joe" not in str(caught.value)
    assert len(waits) == 2
    assert KEY not in repr(patient.client) and "joe" not in repr(patient.client)


@each(
    ("say", "kind", "advice"),
    [
        (refuse(401, f"Incorrect API key provided: {KEY}"), ModelNotConfigured, "OPENAI_API_KEY"),
        (refuse(403, "no"), ModelNotConfigured, "denies this key the model 'm'"),
        (refuse(404, "no"), ModelNotConfigured, "base_url"),
        (refuse(429, "quota", code="insufficient_quota"), ModelUnavailable, "credit"),
        (refuse(405, "no"), ModelUnavailable, "HTTP 405"),
        (refuse(400, f"the key {KEY} is odd"), ModelUnavailable, "key *** is odd"),
        (Say(200, "[]"), ModelUnavailable, "not as an OpenAI-compatible server"),
        (Say(200, '{"error": "x"}'), ModelUnavailable, "not as an OpenAI-compatible server"),
    ],
)
def test_what_no_retry_mends_is_one_line_with_advice(
    say: Say, kind: type[ModelError], advice: str, waits: list[float]
) -> None:
    with serve(say) as server:
        patient = Patient(server.url)
        with pytest.raises(kind) as caught:
            patient.ask()
    assert advice in _line(caught.value)
    assert waits == []


# ── configuration ───────────────────────────────────────────────────────────────────────────────


def test_without_key_and_address_there_is_no_client() -> None:
    with pytest.raises(ModelNotConfigured, match="set OPENAI_API_KEY"):
        OpenAIClient("gpt-5-mini")


@each("key", ["sk-ä", "sk-a\nb"])
def test_a_broken_key_is_told_without_showing_it(key: str) -> None:
    with pytest.raises(ModelNotConfigured) as caught:
        OpenAIClient("m", api_key=key)
    assert key not in _line(caught.value)


def test_connect_takes_the_argument_then_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    url = "http://127.0.0.1:9/v1"
    settings = ModelSettings(model="from-settings", base_url=url)
    assert connect(None, ModelSettings()).name == "offline"
    assert connect("offline", settings).name == "offline"
    assert connect(None, settings).name == "from-settings"
    assert connect("named", settings).name == "named"
    assert connect(None, ModelSettings(model="")).name == "offline"
    with pytest.raises(ModelNotConfigured):
        connect("m", ModelSettings())


def test_what_is_heavy_is_imported_at_the_first_call_only() -> None:
    code = (
        "import sys; from infinimem.llm.openai_client import OpenAIClient; "
        "OpenAIClient('m', 'http://127.0.0.1:9'); "
        "sys.exit('httpx2' in sys.modules or 'openai' in sys.modules or 'fastjsonschema' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@each(
    "url",
    [
        "localhost:11434",
        "ftp://x/v1",
        "/v1",
        "http://[",
        "http://a:b/v1",
        "http://a:99999",
        "http://a\x1b[2J/v1",
        "a/v1",
    ],
)
def test_an_address_that_is_none_is_told_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ModelNotConfigured, match="base_url"):
        OpenAIClient("m", url, KEY)
