"""Vectors from a server on loopback: what is sent, what is made of odd answers, and what people are told."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from cases import each
from fake_server import Say, refuse, serve

from infinimem.embedders.base import connect
from infinimem.embedders.openai import OpenAIEmbedder
from infinimem.errors import ModelNotConfigured, ModelUnavailable
from infinimem.model import Usage
from infinimem.settings import EmbedderSettings


def vectors(request: dict[str, Any], size: int = 3) -> Say:
    data = [
        {"object": "embedding", "index": at, "embedding": [float(len(text)), 1.0, 2.0, 3.0][:size]}
        for at, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return Say(body=json.dumps({"object": "list", "model": "m", "data": data, "usage": usage}))


def test_texts_go_in_batches_and_are_counted() -> None:
    with serve(vectors) as server:
        embedder = OpenAIEmbedder("m", server.url, "sk-secret")
        rows = embedder.embed(["a" * (at % 7 + 1) for at in range(200)] + [""])
    assert [len(request["input"]) for request in server.requests] == [1, 64, 64, 64, 8], (
        "the first asks the size"
    )
    assert {request["model"] for request in server.requests} == {"m"}
    assert set(server.keys) == {"Bearer sk-secret"}
    assert rows.shape == (201, 3) and not rows[200].any()
    assert np.allclose(rows[3], np.array([4, 1, 2]) / 21**0.5)
    assert embedder.usage == {"embed": Usage(5, 25, 0)}


def test_a_request_holds_so_much_text_and_no_more() -> None:
    with serve(vectors) as server:
        OpenAIEmbedder("m", server.url).embed(["b" * 60_000] * 6 + ["c" * 9])
    sizes = [[len(text) for text in request["input"]] for request in server.requests[1:]]
    assert sizes == [[20_000] * 5, [20_000, 9]]


def test_a_server_that_takes_less_is_asked_in_halves_and_with_less_of_a_text() -> None:
    def small(request: dict[str, Any]) -> Say:
        if len(request["input"]) > 2:
            return refuse(413, "too many")
        if any(len(text) > 1000 for text in request["input"]):
            return refuse(400, "input is larger than the physical batch size")
        return vectors(request)

    with serve(small) as server:
        rows = OpenAIEmbedder("m", server.url).embed(["a", "bb", "ccc" * 1000, "dddd", "e"])
    assert np.allclose(rows[2], np.array([750, 1, 2]) / np.linalg.norm([750, 1, 2])), "3,000 were cut to 750"
    assert np.allclose(rows[3], np.array([4, 1, 2]) / 21**0.5)


@each(
    ("answer", "error", "told"),
    [
        (refuse(401, "no such key sk-secret"), ModelNotConfigured, "OPENAI_API_KEY"),
        (refuse(404, "no model"), ModelNotConfigured, "'m'"),
        (refuse(400, "bad model, key sk-secret"), ModelUnavailable, "bad model"),
        (refuse(503, "busy"), ModelUnavailable, "does not answer"),
        (Say(body="<html>"), ModelUnavailable, "/v1"),
        (Say(body='{"data": []}'), ModelUnavailable, "/v1"),
        (Say(body='{"data": [{"index": 0, "embedding": null}]}'), ModelUnavailable, "/v1"),
    ],
)
def test_what_goes_wrong_is_one_line_without_the_key(answer: Say, error: type[Exception], told: str) -> None:
    with serve(answer) as server, pytest.raises(error, match=told) as raised:
        OpenAIEmbedder("m", server.url, "sk-secret", retries=0).embed(["x"])
    assert "\n" not in str(raised.value) and "sk-secret" not in str(raised.value)


def test_no_part_of_a_secret_is_told() -> None:
    key = "sk-" + "k3y" * 12
    with serve(refuse(400, f"{'x' * 150} {key} http://me:pass-word@host/")) as server:
        address = server.url.replace("//", "//me:pass-word@")
        with pytest.raises(ModelUnavailable) as raised:
            OpenAIEmbedder("m", address, key, retries=0).embed(["x"])
    assert "sk-" not in str(raised.value) and "pass-word" not in str(raised.value)


@each("address", ["http://[::1/v1", "http://localhost:99999/v1", "http://localhost:0/v1"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ModelNotConfigured, match="no address"):
        OpenAIEmbedder("m", address)


@each("key", ["sk-é", "sk-\n1"])
def test_a_key_that_cannot_be_sent(key: str) -> None:
    with pytest.raises(ModelNotConfigured, match="no key has"):
        OpenAIEmbedder("m", "http://localhost:9/v1", key)


def test_a_dead_server() -> None:
    with serve(vectors) as server:
        pass
    with pytest.raises(ModelUnavailable, match="does not answer"):
        OpenAIEmbedder("m", server.url, retries=0).embed(["x"])


def test_vectors_of_another_size_are_not_taken() -> None:
    def growing(request: dict[str, Any]) -> Say:
        return vectors(request, 3 if request["input"] == ["size"] else 4)

    with serve(growing) as server, pytest.raises(ModelUnavailable, match="another size"):
        OpenAIEmbedder("m", server.url).embed(["x"])


@each("number", ["NaN", "Infinity"])
def test_numbers_that_are_none_become_zeros(number: str) -> None:
    body = f'{{"data": [{{"index": 0, "embedding": [1.0, {number}, 2.0]}}]}}'
    with serve(Say(body=body)) as server:
        assert not OpenAIEmbedder("m", server.url).embed(["x"]).any()


def test_where_it_connects_to() -> None:
    settings = EmbedderSettings(name="openai", base_url="http://user:word@one.example:1/v1")
    env = {"OPENAI_API_KEY": "sk-secret"}
    found = connect(None, settings, env)
    assert found.name == "openai text-embedding-3-small at one.example:1", "without credentials"
    assert found.size == 1536, "known, so nothing is asked"
    assert "word" not in repr(found) and "secret" not in repr(found)
    assert connect("openai", EmbedderSettings(), {"OPENAI_API_KEY": "k"}).name.endswith("at api.openai.com")
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        connect("openai", EmbedderSettings(), {})
    with pytest.raises(ModelNotConfigured, match="no address"):
        connect("openai", EmbedderSettings(base_url="localhost:1/v1"), {})
